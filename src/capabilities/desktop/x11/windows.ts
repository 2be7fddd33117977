import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../../kernel/index.ts";
import { plainLine } from "../plain-words.ts";
import { isMismatch, isWindowGone, type X11Connection } from "./connection.ts";
import type { Area } from "./picture.ts";
import type { Properties } from "./properties.ts";
import { Request } from "./request.ts";

/** A window of a program; places are those of the screen. */
export interface DesktopWindow extends Area {
  readonly id: number;
  readonly title: string;
  /** The kind of program, such as `XTerm`. */
  readonly class: string;
  /** Which of a program's windows it is, where it says so. */
  readonly role?: string;
  readonly pid?: number;
  readonly focused: boolean;
}

/** A window inside a window: old toolkits make one for each button and field. */
export interface Subwindow extends Area {
  readonly children: readonly Subwindow[];
}

const [getWindowAttributes, getGeometry, queryTree, queryPointer] = [3, 14, 15, 38];
const [translateCoordinates, getInputFocus] = [40, 43];
const [configureWindow, sendEvent, setInputFocus] = [12, 25, 42];
const [stackMode, above, toParent] = [1 << 6, 0, 2];
const [clientMessage, substructureMask, byUser] = [33, 0x18_0000, 2];
const focusChecks = { count: 40, everyMs: 50 };
const viewable = 2;
/** Of windows in one window, so many are looked at. */
const mostChildren = 200;
/** Of what a program calls its window, in characters. */
const mostWords = 200;
/** How far below a window manager's frame a program's window lies at most. */
const frameDepth = 3;

export class Windows {
  readonly #x11: X11Connection;
  readonly #properties: Properties;

  constructor(x11: X11Connection, properties: Properties) {
    this.#x11 = x11;
    this.#properties = properties;
  }

  get #root(): number {
    return this.#x11.screen.root;
  }

  /** Those that are shown, the one on top last. */
  async list(): Promise<readonly DesktopWindow[]> {
    const ids = await this.#ids();
    const focused = await this.#focused(ids);
    const found = await Promise.all(ids.map((id) => unlessGone(this.#describe(id, id === focused))));
    return found.filter((each) => each !== undefined);
  }

  /** The window manager's name; `undefined` when none is there. */
  async manager(): Promise<string | undefined> {
    const [check] = (await this.#properties.numbers(this.#root, "_NET_SUPPORTING_WM_CHECK")) ?? [];
    if (check === undefined) return undefined;
    return unlessGone(
      this.#properties.texts(check, "_NET_WM_NAME").then(([name]) => name || "a window manager"),
    );
  }

  /** In front, with the keyboard. Where there is a window manager, it decides. */
  async raise(window: number): Promise<void> {
    if ((await this.manager()) === undefined) return this.#take(window);
    const message = await this.#properties.atom("_NET_ACTIVE_WINDOW");
    const wish = new Request(sendEvent).u32(this.#root, substructureMask).u8(clientMessage, 32).u16(0);
    await this.#x11.perform(wish.u32(window, message, byUser, 0, 0, 0, 0));
    for (let check = 0; check < focusChecks.count; check++) {
      if ((await this.#active()) === window) return;
      await delay(focusChecks.everyMs);
    }
    throw new Fault("tool_failed", `the window manager did not bring window ${window} to the front`);
  }

  async #take(window: number): Promise<void> {
    try {
      await this.#x11.perform(
        new Request(configureWindow).u32(window).u16(stackMode, 0).u32(above),
        new Request(setInputFocus, toParent).u32(window, 0),
      );
    } catch (error) {
      // What is hidden meanwhile cannot have the keyboard.
      if (!isWindowGone(error) && !isMismatch(error)) throw error;
      throw new Fault("not_found", `window ${window} has gone meanwhile: look again`, { cause: error });
    }
  }

  async #active(): Promise<number | undefined> {
    const [active] = (await this.#properties.numbers(this.#root, "_NET_ACTIVE_WINDOW")) ?? [];
    return active === 0 ? undefined : active;
  }

  async pointer(): Promise<{ readonly x: number; readonly y: number; readonly modifiers: number }> {
    const { x, y, modifiers } = await this.#pointer();
    return { x, y, modifiers };
  }

  /** What is shown inside a window, to `depth` levels. */
  async inside(window: number, depth: number): Promise<readonly Subwindow[]> {
    if (depth === 0) return [];
    const children = (await unlessGone(this.#children(window))) ?? [];
    const found = await Promise.all(
      children.slice(0, mostChildren).map((id) =>
        unlessGone(
          (async () => {
            if (!(await this.#attributes(id)).shown) return undefined;
            return { ...(await this.#area(id)), children: await this.inside(id, depth - 1) };
          })(),
        ),
      ),
    );
    return found.filter((each) => each !== undefined);
  }

  /** Those that the window manager lists, and those on the screen that it does not: their frames are no windows of programs. */
  async #ids(): Promise<readonly number[]> {
    const listed =
      (await this.#properties.numbers(this.#root, "_NET_CLIENT_LIST_STACKING")) ??
      (await this.#properties.numbers(this.#root, "_NET_CLIENT_LIST")) ??
      [];
    const others = await this.#children(this.#root);
    const shown = await Promise.all([
      ...listed.map((id) => unlessGone(this.#shown(id, { managed: true }))),
      ...others.map((id) => unlessGone(this.#shown(id, { managed: false }))),
    ]);
    return [...new Set(shown.filter((id) => id !== undefined))];
  }

  async #shown(window: number, { managed }: { readonly managed: boolean }): Promise<number | undefined> {
    const { shown, unmanaged } = await this.#attributes(window);
    if (!shown || (unmanaged && !managed)) return undefined;
    return managed ? window : this.#programOf(window);
  }

  /** A window manager that lists nothing still marks the program's own window inside its frame. */
  async #programOf(window: number): Promise<number> {
    let level = [window];
    for (let depth = 0; depth < frameDepth && level.length > 0; depth++) {
      const marked = await Promise.all(level.map((id) => unlessGone(this.#properties.isSet(id, "WM_STATE"))));
      const found = level.find((_, index) => marked[index]);
      if (found !== undefined) return found;
      const below = await Promise.all(level.map((id) => unlessGone(this.#children(id))));
      level = below.flatMap((children) => children ?? []).slice(0, mostChildren);
    }
    return window;
  }

  async #focused(ids: readonly number[]): Promise<number | undefined> {
    const active = await this.#active();
    if (active !== undefined) return active;
    const focus = (await this.#x11.ask(new Request(getInputFocus))).readUInt32LE(8);
    // 1 means: the keys go to what is under the pointer.
    let at = focus === 1 ? (await this.#pointer()).child : focus;
    while (at > 1 && at !== this.#root) {
      if (ids.includes(at)) return at;
      const parent = (await unlessGone(this.#x11.ask(new Request(queryTree).u32(at))))?.readUInt32LE(12);
      const inside = parent === this.#root ? await unlessGone(this.#programOf(at)) : undefined;
      if (inside !== undefined && ids.includes(inside)) return inside;
      at = parent ?? 0;
    }
    return undefined;
  }

  async #describe(id: number, focused: boolean): Promise<DesktopWindow> {
    const [area, name, oldName, kind, role, pid] = await Promise.all([
      this.#area(id),
      this.#properties.texts(id, "_NET_WM_NAME"),
      this.#properties.texts(id, "WM_NAME"),
      this.#properties.texts(id, "WM_CLASS"),
      this.#properties.texts(id, "WM_WINDOW_ROLE"),
      this.#properties.numbers(id, "_NET_WM_PID"),
    ]);
    return {
      id,
      title: words(name[0] ?? oldName[0]),
      class: words(kind[1] ?? kind[0]),
      ...(role[0] && { role: words(role[0]) }),
      ...(pid?.[0] !== undefined && { pid: pid[0] }),
      ...area,
      focused,
    };
  }

  async #area(window: number): Promise<Area> {
    const toRoot = new Request(translateCoordinates).u32(window, this.#root).i16(0, 0);
    const [size, place] = await Promise.all([
      this.#x11.ask(new Request(getGeometry).u32(window)),
      this.#x11.ask(toRoot),
    ]);
    const [width, height] = [size.readUInt16LE(16), size.readUInt16LE(18)];
    return { x: place.readInt16LE(12), y: place.readInt16LE(14), width, height };
  }

  async #children(window: number): Promise<number[]> {
    const reply = await this.#x11.ask(new Request(queryTree).u32(window));
    return Array.from({ length: reply.readUInt16LE(16) }, (_, index) => reply.readUInt32LE(32 + index * 4));
  }

  async #attributes(window: number): Promise<{ readonly shown: boolean; readonly unmanaged: boolean }> {
    const reply = await this.#x11.ask(new Request(getWindowAttributes).u32(window));
    // The last of the class is a window without pixels, which only takes input.
    const drawn = reply.readUInt16LE(12) === 1;
    return { shown: drawn && reply.readUInt8(26) === viewable, unmanaged: reply.readUInt8(27) === 1 };
  }

  async #pointer(): Promise<{
    readonly child: number;
    readonly x: number;
    readonly y: number;
    readonly modifiers: number;
  }> {
    const reply = await this.#x11.ask(new Request(queryPointer).u32(this.#root));
    return {
      child: reply.readUInt32LE(12),
      x: reply.readInt16LE(16),
      y: reply.readInt16LE(18),
      modifiers: reply.readUInt16LE(24),
    };
  }
}

function words(text = ""): string {
  return plainLine(text, mostWords);
}

/** Windows come and go between two requests; one that went is not there. */
async function unlessGone<Value>(found: Promise<Value>): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isWindowGone(error)) return undefined;
    throw error;
  }
}
