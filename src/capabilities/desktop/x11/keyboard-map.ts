import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../../kernel/index.ts";
import type { X11Connection } from "./connection.ts";
import { Request } from "./request.ts";

const [changeKeyboardMapping, getKeyboardMapping] = [100, 101];
/** Milliseconds that programs get to process earlier key events before a key is assigned another symbol. */
const settleMs = 200;

/** How to type a symbol: a key, with or without Shift. */
export interface KeyPlace {
  readonly keycode: number;
  readonly shifted: boolean;
}

/**
 * Finds the key for each symbol. A symbol that the layout lacks is assigned to an unused key and stays there until
 * `restore()`, because a program looks up a key when it processes the event, not when the key is pressed.
 */
export class KeyboardMap {
  readonly #x11: X11Connection;
  /** Keycodes by the symbol that was assigned to them, the oldest first. */
  readonly #assigned = new Map<number, number>();
  #rows: readonly (readonly number[])[] = [];

  constructor(x11: X11Connection) {
    this.#x11 = x11;
  }

  /** Reads the current layout. */
  async refresh(): Promise<void> {
    const { minKeycode, maxKeycode } = this.#x11.setup;
    const count = maxKeycode - minKeycode + 1;
    const reply = await this.#x11.ask(new Request(getKeyboardMapping).u8(minKeycode, count));
    const width = reply.readUInt8(1);
    this.#rows = Array.from({ length: count }, (_, row) =>
      Array.from({ length: width }, (__, column) => reply.readUInt32LE(32 + (row * width + column) * 4)),
    );
  }

  /** Returns the key for a symbol. `group` is the active layout of the keyboard: 0 or 1. */
  async place(symbol: number, group = 0): Promise<KeyPlace> {
    const lent = this.#assigned.get(symbol);
    if (lent !== undefined) return { keycode: lent, shifted: false };
    for (const [level, shifted] of [false, true].entries()) {
      const row = this.#rows.findIndex((symbols) => symbols[group * 2 + level] === symbol);
      if (row >= 0) return { keycode: this.#x11.setup.minKeycode + row, shifted };
    }
    return { keycode: await this.#assign(symbol), shifted: false };
  }

  /** Removes the assigned symbols. */
  async restore(): Promise<void> {
    const keycodes = [...this.#assigned.values()];
    this.#assigned.clear();
    await this.#x11.perform(...keycodes.map((keycode) => mapping(keycode, 0)));
  }

  async #assign(symbol: number): Promise<number> {
    const keycode = this.#spare() ?? (await this.#oldest());
    await this.#x11.perform(mapping(keycode, symbol));
    this.#assigned.set(symbol, keycode);
    return keycode;
  }

  #spare(): number | undefined {
    const taken = new Set(this.#assigned.values());
    const { minKeycode } = this.#x11.setup;
    const row = this.#rows.findLastIndex(
      (symbols, index) => symbols.every((symbol) => symbol === 0) && !taken.has(minKeycode + index),
    );
    return row < 0 ? undefined : minKeycode + row;
  }

  async #oldest(): Promise<number> {
    const [[symbol, keycode] = []] = this.#assigned;
    if (symbol === undefined || keycode === undefined)
      throw new Fault(
        "unsupported",
        "the keyboard has no unused key for a character that its layout lacks: type the text without that character",
      );
    await delay(settleMs);
    this.#assigned.delete(symbol);
    return keycode;
  }
}

function mapping(keycode: number, symbol: number): Request {
  return new Request(changeKeyboardMapping, 1).u8(keycode, 2, 0, 0).u32(symbol, symbol);
}
