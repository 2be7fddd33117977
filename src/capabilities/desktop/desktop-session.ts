import { setTimeout as delay } from "node:timers/promises";
import {
  Fault,
  type CancelSignal,
  type ChatMessage,
  type EphemeralSource,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { AccessibleTree } from "./accessibility/accessible-tree.ts";
import { describeWindows, stateParts, type DesktopState, type Point } from "./desktop-state.ts";
import { X11Connection } from "./x11/connection.ts";
import { Input } from "./x11/input.ts";
import { parseChord, symbolOf } from "./x11/keys.ts";
import { takeScreenshot, type Area } from "./x11/screenshot.ts";
import { Properties } from "./x11/properties.ts";
import { Windows, type DesktopWindow } from "./x11/windows.ts";

/** Options of `DesktopSession`. */
export interface DesktopOptions {
  /** The X display, such as `:0`. Default: the variable `DISPLAY`. */
  readonly display?: string;
  /** Whether the model sees a screenshot before each of its turns. Default: `false`. */
  readonly useScreenshot?: boolean;
  /**
   * Whether the model sees the content of the windows, element by element, before each of its turns. Default: `false`.
   */
  readonly useAccessibility?: boolean;
  /**
   * D-Bus address of the accessibility bus. Default: `AT_SPI_BUS_ADDRESS`, or the address that the display or the
   * session reports.
   */
  readonly accessibilityBus?: string;
  /** Milliseconds to wait after an action before its effect is read. Default: 200. */
  readonly settleMs?: number;
  /** Maximum time without an answer of the display, in milliseconds. Default: 10_000. */
  readonly answerMs?: number;
}

/** A mouse button. */
export type MouseButton = "left" | "middle" | "right";
/** Direction in which to turn the mouse wheel. */
export type ScrollDirection = "up" | "down" | "left" | "right";

/** Options of `click()`. */
export interface ClickOptions {
  /** Mouse button. Default: `left`. */
  readonly button?: MouseButton;
  /** Number of clicks; 2 is a double click. Default: 1. */
  readonly count?: number;
  /** Keys to hold during the click, such as `Control`. */
  readonly holding?: string;
}

const noDisplay =
  "there is no X display: set DISPLAY or the option display; without a screen start one (on Debian: apt-get install xvfb, then Xvfb :99 -screen 0 1280x800x24, and DISPLAY=:99)";

const stateTable = optionTable({
  useScreenshot: is.boolean(),
  useAccessibility: is.boolean(),
} satisfies OptionKinds<Pick<DesktopOptions, "useScreenshot" | "useAccessibility">>);
const clickTable = optionTable({
  button: is.choice(["left", "middle", "right"], { default: "left" }),
  count: is.number({ default: 1 }),
  holding: is.text(),
} satisfies OptionKinds<ClickOptions>);
const dragTable = optionTable({
  button: is.choice(["left", "middle", "right"], { default: "left" }),
} satisfies OptionKinds<Pick<ClickOptions, "button">>);
const typeTable = optionTable({ signal: is.any } satisfies OptionKinds<{ readonly signal?: CancelSignal }>);

interface Open {
  readonly x11: X11Connection;
  readonly properties: Properties;
  readonly windows: Windows;
  readonly input: Input;
}

const buttons = { left: 1, middle: 2, right: 3 } as const;
const wheel = { up: 4, down: 5, left: 6, right: 7 } as const;
/** Number of moves of a drag. Programs recognise a drag only if there are moves between start and end. */
const dragMoves = 10;
/** Maximum number of windows that an error message lists, from the top of the stack. */
const maxListedWindows = 20;
/** Depth to which windows inside a window are listed, for programs without accessibility support. */
const subwindowDepth = 4;

const knownOptions = optionTable({
  display: is.text(),
  useScreenshot: is.boolean(),
  useAccessibility: is.boolean(),
  accessibilityBus: is.text(),
  settleMs: is.number({ from: 0 }),
  answerMs: is.number({ from: 0 }),
} satisfies OptionKinds<DesktopOptions>);

/**
 * One X11 display for one agent. The connection opens when it is first used. The programs on the display belong to
 * its owner: this class neither starts nor ends programs. Its state is not durable: after a restart, the next state
 * describes what the display then shows.
 */
export class DesktopSession implements EphemeralSource {
  readonly name = "desktop";
  readonly #options: DesktopOptions;
  #opening: Promise<Open> | undefined;
  #accessible: AccessibleTree | undefined;

  constructor(options: DesktopOptions = {}) {
    knownOptions.read("DesktopSession", options);
    this.#options = options;
  }

  /**
   * Returns screen, pointer and windows. Whether the state includes a screenshot and the content of the windows depends
   * on the options; `also` overrides them.
   */
  async getState(
    also: Pick<DesktopOptions, "useScreenshot" | "useAccessibility"> = {},
  ): Promise<DesktopState> {
    stateTable.read("getState()", also);
    const { useScreenshot = false, useAccessibility = false } = { ...this.#options, ...also };
    const { x11, windows: all } = await this.#open();
    const { width, height } = x11.screen;
    const [{ x, y }, windows] = await Promise.all([all.pointer(), all.list()]);
    return {
      screen: { width, height },
      pointer: { x, y },
      windows,
      ...(useScreenshot && { screenshot: (await this.screenshot()).toString("base64") }),
      ...(useAccessibility && { accessibility: await this.#describe(windows) }),
    };
  }

  /** Returns the state as a message for one model call. */
  async messages(): Promise<readonly ChatMessage[]> {
    return [{ role: "user", content: stateParts(await this.getState()) }];
  }

  /** Returns a PNG of the screen or of an area. The part of an area that is outside the screen is left out. */
  async screenshot(area?: Area): Promise<Buffer> {
    const { x11 } = await this.#open();
    const { width, height } = x11.screen;
    const asked = area ?? { x: 0, y: 0, width, height };
    const [x, y] = [Math.max(0, asked.x), Math.max(0, asked.y)];
    const [right, bottom] = [
      Math.min(width, asked.x + asked.width),
      Math.min(height, asked.y + asked.height),
    ];
    if (right <= x || bottom <= y)
      throw new Fault(
        "invalid_argument",
        `the area is outside the screen, which is ${width}x${height}: use one that overlaps it`,
      );
    return takeScreenshot(x11, { x, y, width: right - x, height: bottom - y });
  }

  /** Returns the content of the windows, as far as programs report it. */
  async look(): Promise<string> {
    const { windows } = await this.#open();
    return this.#describe(await windows.list());
  }

  /** Returns a window by its number. Throws `not_found` if there is none. */
  async window(id: number): Promise<DesktopWindow> {
    const { windows } = await this.#open();
    const all = await windows.list();
    const found = all.find((each) => each.id === id);
    if (found !== undefined) return found;
    throw new Fault(
      "not_found",
      `there is no window ${id}; open windows: ${
        all
          .slice(-maxListedWindows)
          .map((each) => `${each.id} (${each.title})`)
          .join(", ") || "none"
      }`,
    );
  }

  /** Brings a window to the front and gives it the keyboard focus. */
  async focus(id: number): Promise<void> {
    await this.window(id);
    await (await this.#open()).windows.raise(id);
    await this.#settle();
  }

  /** Moves the pointer. */
  async move(to: Point): Promise<void> {
    await this.#moveTo(to);
    await this.#settle();
  }

  /** Clicks at a position. */
  async click(at: Point, options: ClickOptions = {}): Promise<void> {
    const { button, count, holding } = clickTable.read("click()", options);
    const { input } = await this.#open();
    const held = holding === undefined ? [] : parseChord(holding);
    await this.#moveTo(at);
    await input.keys(held, "press");
    try {
      for (let done = 0; done < count; done++) {
        await input.button(buttons[button], "press");
        await input.button(buttons[button], "release");
      }
    } finally {
      await input.keys(held, "release");
    }
    await this.#settle();
  }

  /** Drags from one position to another. */
  async drag(from: Point, to: Point, options: Pick<ClickOptions, "button"> = {}): Promise<void> {
    const { button } = dragTable.read("drag()", options);
    const { input } = await this.#open();
    await this.#onScreen(to);
    await this.#moveTo(from);
    await input.button(buttons[button], "press");
    try {
      for (let move = 1; move <= dragMoves; move++) {
        const part = (start: number, end: number): number =>
          Math.round(start + ((end - start) * move) / dragMoves);
        await input.move(part(from.x, to.x), part(from.y, to.y));
      }
    } finally {
      await input.button(buttons[button], "release");
    }
    await this.#settle();
  }

  /** Turns the mouse wheel by a number of notches. */
  async scroll(at: Point, direction: ScrollDirection, notches = 3): Promise<void> {
    const { input } = await this.#open();
    await this.#moveTo(at);
    for (let done = 0; done < notches; done++) {
      await input.button(wheel[direction], "press");
      await input.button(wheel[direction], "release");
    }
    await this.#settle();
  }

  /**
   * Types a text into the window with the keyboard focus. A line break is Enter. The signal stops the typing between
   * two characters.
   */
  async type(text: string, options: { readonly signal?: CancelSignal } = {}): Promise<void> {
    const { signal } = typeTable.read("type()", options);
    const { input, windows } = await this.#open();
    const symbols = Array.from(text.replaceAll("\r\n", "\n"), symbolOf);
    await input.type(symbols, (await windows.pointer()).modifiers, signal);
    await this.#settle();
  }

  /** Presses a key by its name, with modifiers: `Enter`, `Control+Shift+T`. */
  async press(chord: string): Promise<void> {
    const { input } = await this.#open();
    const symbols = parseChord(chord);
    await input.keys(symbols, "press");
    await input.keys(symbols, "release");
    await this.#settle();
  }

  /** Closes the connection. The display stays as it is. */
  async close(): Promise<void> {
    const [opening, accessible] = [this.#opening, this.#accessible];
    [this.#opening, this.#accessible] = [undefined, undefined];
    accessible?.close();
    const open = await opening?.catch(() => undefined);
    if (open === undefined) return;
    try {
      if (open.x11.isOpen) await open.input.close();
    } finally {
      open.x11.close();
    }
  }

  /** Calls `close` at the end of the block that declares the session with `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #moveTo(at: Point): Promise<void> {
    await this.#onScreen(at);
    await (await this.#open()).input.move(at.x, at.y);
  }

  async #onScreen({ x, y }: Point): Promise<void> {
    const { width, height } = (await this.#open()).x11.screen;
    const inside = Number.isInteger(x) && Number.isInteger(y) && x >= 0 && y >= 0 && x < width && y < height;
    if (!inside)
      throw new Fault(
        "invalid_argument",
        `${x},${y} is outside the screen: x must be 0 to ${width - 1}, y must be 0 to ${height - 1}`,
      );
  }

  async #describe(windows: readonly DesktopWindow[]): Promise<string> {
    const { x11, properties, windows: all } = await this.#open();
    this.#accessible ??= new AccessibleTree();
    const { accessibilityBus = process.env["AT_SPI_BUS_ADDRESS"] } = this.#options;
    const [onRoot] = await properties.texts(x11.screen.root, "AT_SPI_BUS");
    const told = await this.#accessible.describe(accessibilityBus || onRoot);
    const titles = told.windows.map(({ title }) => title);
    const silent = windows.filter(({ title }) => !titles.includes(title));
    const inside = await Promise.all(
      silent.map(async (window) => ({ window, subwindows: await all.inside(window.id, subwindowDepth) })),
    );
    return describeWindows(told, inside);
  }

  #settle(): Promise<void> {
    const { settleMs = 200 } = this.#options;
    return settleMs === 0 ? Promise.resolve() : delay(settleMs);
  }

  /**
   * Returns why there is no display here, and how to get one. `undefined` if a display is named. It does not
   * connect to the display.
   */
  async problem(): Promise<string | undefined> {
    return this.#display === "" ? noDisplay : undefined;
  }

  get #display(): string {
    return this.#options.display ?? process.env["DISPLAY"] ?? "";
  }

  async #open(): Promise<Open> {
    const opening = (this.#opening ??= this.#connect());
    const open = await opening.catch((error: unknown) => {
      this.#forget(opening);
      throw error;
    });
    if (open.x11.isOpen) return open;
    this.#forget(opening);
    return this.#open();
  }

  #forget(opening: Promise<Open>): void {
    if (this.#opening === opening) this.#opening = undefined;
  }

  async #connect(): Promise<Open> {
    if (this.#display === "") throw new Fault("dependency_missing", noDisplay);
    const x11 = await X11Connection.open(this.#display, this.#options.answerMs ?? 10_000);
    const properties = new Properties(x11);
    return { x11, properties, windows: new Windows(x11, properties), input: new Input(x11) };
  }
}
