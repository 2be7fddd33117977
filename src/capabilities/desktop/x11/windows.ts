import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../../kernel/index.ts";
import { plainLine } from "../plain-text.ts";
import { isMismatch, isWindowGone, type X11Connection } from "./connection.ts";
import type { Area } from "./screenshot.ts";
import type { Properties } from "./properties.ts";
import { Request } from "./request.ts";

/** A window of a program. Its position is relative to the screen. */
export interface DesktopWindow extends Area {
  readonly id: number;
  readonly title: string;
  /** Class of the program, such as `XTerm`. */
  readonly class: string;
  /** Role of the window within its program, if the program sets one. */
  readonly role?: string;
  readonly pid?: number;
  /** Whether the window has the keyboard focus. */
  readonly focused: boolean;
}

/** A window inside another window. Old toolkits create one for each button and field. */
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
/** Maximum number of subwindows of one window that are read. */
const maxChildren = 200;
/** Maximum length of a window's title, class or role, in characters. */
const maxNameLength = 200;
/** Maximum depth of a program's window below the frame of the window manager. */
const frameDepth = 3;

/** Lists and raises the windows of a display. */
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

  /** Returns the visible windows, the topmost last. */
  async list(): Promise<readonly DesktopWindow[]> {
    const ids = await this.#ids();
    const focused = await this.#focused(ids);
    const found = await Promise.all(ids.map((id) => unlessGone(this.#describe(id, id === focused))));
    return found.filter((each) => each !== undefined);
  }

  /** Returns the name of the window manager, or `undefined` if there is none. */
  async manager(): Promise<string | undefined> {
    const [check] = (await this.#properties.numbers(this.#root, "_NET_SUPPORTING_WM_CHECK")) ?? [];
    if (check === undefined) return undefined;
    return unlessGone(
      this.#properties.texts(check, "_NET_WM_NAME").then(([name]) => name || "a window manager"),
    );
  }

  /**
   * Brings a window to the front and gives it the keyboard focus. If there is a window manager, it is asked to do so
   * and may refuse.
   */
  async raise(window: number): Promise<void> {
    if ((await this.manager()) === undefined) return this.#take(window);
    const message = await this.#properties.atom("_NET_ACTIVE_WINDOW");
    const wish = new Request(sendEvent).u32(this.#root, substructureMask).u8(clientMessage, 32).u16(0);
    await this.#x11.perform(wish.u32(window, message, byUser, 0, 0, 0, 0));
    for (let check = 0; check < focusChecks.count; check++) {
      if ((await this.#active()) === window) return;
      await delay(focusChecks.everyMs);
    }
    throw new Fault(
      "tool_failed",
      `the window manager did not bring window ${window} to the front: try to click on it`,
    );
  }

  async #take(window: number): Promise<void> {
    try {
      await this.#x11.perform(
        new Request(configureWindow).u32(window).u16(stackMode, 0).u32(above),
        new Request(setInputFocus, toParent).u32(window, 0),
      );
    } catch (error) {
      // A window that was hidden meanwhile cannot have the keyboard focus.
      if (!isWindowGone(error) && !isMismatch(error)) throw error;
      throw new Fault("not_found", `window ${window} has disappeared: list the windows again`, {
        cause: error,
      });
    }
  }

  async #active(): Promise<number | undefined> {
    const [active] = (await this.#properties.numbers(this.#root, "_NET_ACTIVE_WINDOW")) ?? [];
    return active === 0 ? undefined : active;
  }

  /** Returns the position of the pointer and the state of the modifier keys. */
  async pointer(): Promise<{ readonly x: number; readonly y: number; readonly modifiers: number }> {
    const { x, y, modifiers } = await this.#pointer();
    return { x, y, modifiers };
  }

  /** Returns the visible subwindows of a window, down to `depth` levels. */
  async inside(window: number, depth: number): Promise<readonly Subwindow[]> {
    if (depth === 0) return [];
    const children = (await unlessGone(this.#children(window))) ?? [];
    const found = await Promise.all(
      children.slice(0, maxChildren).map((id) =>
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

  /**
   * Returns the ids of the windows that the window manager lists, and of other windows on the screen. In place of a
   * frame of the window manager, it returns the program's window inside the frame.
   */
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

  /**
   * Returns the program's window in a frame. Even a window manager that keeps no list marks this window with
   * `WM_STATE`.
   */
  async #programOf(window: number): Promise<number> {
    let level = [window];
    for (let depth = 0; depth < frameDepth && level.length > 0; depth++) {
      const marked = await Promise.all(level.map((id) => unlessGone(this.#properties.isSet(id, "WM_STATE"))));
      const found = level.find((_, index) => marked[index]);
      if (found !== undefined) return found;
      const below = await Promise.all(level.map((id) => unlessGone(this.#children(id))));
      level = below.flatMap((children) => children ?? []).slice(0, maxChildren);
    }
    return window;
  }

  async #focused(ids: readonly number[]): Promise<number | undefined> {
    const active = await this.#active();
    if (active !== undefined) return active;
    const focus = (await this.#x11.ask(new Request(getInputFocus))).readUInt32LE(8);
    // Focus 1 means that the keyboard follows the pointer.
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
      title: nameLine(name[0] ?? oldName[0]),
      class: nameLine(kind[1] ?? kind[0]),
      ...(role[0] && { role: nameLine(role[0]) }),
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
    // A window of class InputOnly has no pixels.
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

function nameLine(text = ""): string {
  return plainLine(text, maxNameLength);
}

/** Returns the result, or `undefined` if the window no longer exists. */
async function unlessGone<Value>(found: Promise<Value>): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isWindowGone(error)) return undefined;
    throw error;
  }
}
