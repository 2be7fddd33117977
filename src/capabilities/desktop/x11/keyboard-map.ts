import { setTimeout as delay } from "node:timers/promises";
import { Fault } from "../../../kernel/index.ts";
import type { X11Connection } from "./connection.ts";
import { Request } from "./request.ts";

const [changeKeyboardMapping, getKeyboardMapping] = [100, 101];
/** For programs to take in the keys that were played before one of them means something else. */
const takenInMs = 200;

export interface KeyPlace {
  readonly keycode: number;
  readonly shifted: boolean;
}

/**
 * Which key gives which character. A character that the layout does not have is lent to a key without one, and stays there until the end: a
 * program looks a key up when it gets to it, not when it is pressed.
 */
export class KeyboardMap {
  readonly #x11: X11Connection;
  /** Keys by the symbol lent to them, the oldest first. */
  readonly #lent = new Map<number, number>();
  #rows: readonly (readonly number[])[] = [];

  constructor(x11: X11Connection) {
    this.#x11 = x11;
  }

  /** Reads the layout as it is now. */
  async refresh(): Promise<void> {
    const { minKeycode, maxKeycode } = this.#x11.setup;
    const count = maxKeycode - minKeycode + 1;
    const reply = await this.#x11.ask(new Request(getKeyboardMapping).u8(minKeycode, count));
    const width = reply.readUInt8(1);
    this.#rows = Array.from({ length: count }, (_, row) =>
      Array.from({ length: width }, (__, column) => reply.readUInt32LE(32 + (row * width + column) * 4)),
    );
  }

  /** `group` is the layout in use, of those the keyboard has: the first or the second. */
  async place(symbol: number, group = 0): Promise<KeyPlace> {
    const lent = this.#lent.get(symbol);
    if (lent !== undefined) return { keycode: lent, shifted: false };
    for (const [level, shifted] of [false, true].entries()) {
      const row = this.#rows.findIndex((symbols) => symbols[group * 2 + level] === symbol);
      if (row >= 0) return { keycode: this.#x11.setup.minKeycode + row, shifted };
    }
    return { keycode: await this.#lend(symbol), shifted: false };
  }

  /** Takes back what was lent. */
  async restore(): Promise<void> {
    const keycodes = [...this.#lent.values()];
    this.#lent.clear();
    await this.#x11.perform(...keycodes.map((keycode) => mapping(keycode, 0)));
  }

  async #lend(symbol: number): Promise<number> {
    const keycode = this.#spare() ?? (await this.#oldest());
    await this.#x11.perform(mapping(keycode, symbol));
    this.#lent.set(symbol, keycode);
    return keycode;
  }

  #spare(): number | undefined {
    const taken = new Set(this.#lent.values());
    const { minKeycode } = this.#x11.setup;
    const row = this.#rows.findLastIndex(
      (symbols, index) => symbols.every((symbol) => symbol === 0) && !taken.has(minKeycode + index),
    );
    return row < 0 ? undefined : minKeycode + row;
  }

  async #oldest(): Promise<number> {
    const [[symbol, keycode] = []] = this.#lent;
    if (symbol === undefined || keycode === undefined)
      throw new Fault(
        "unsupported",
        "this keyboard has no key to spare for characters that its layout lacks",
      );
    await delay(takenInMs);
    this.#lent.delete(symbol);
    return keycode;
  }
}

function mapping(keycode: number, symbol: number): Request {
  return new Request(changeKeyboardMapping, 1).u8(keycode, 2, 0, 0).u32(symbol, symbol);
}
