import { Fault, type CancelSignal } from "../../../kernel/index.ts";
import type { X11Connection } from "./connection.ts";
import { KeyboardMap, type KeyPlace } from "./keyboard-map.ts";
import { shiftKey } from "./keys.ts";
import { Request } from "./request.ts";

const queryExtension = 98;
const [keyPress, keyRelease, buttonPress, buttonRelease, motion] = [2, 3, 4, 5, 6];
const fakeInput = 2;
/**
 * Bits of the modifier state: the first says that Caps Lock is on, the second that the second keyboard layout is
 * active.
 */
const [lockMask, secondGroup] = [1 << 1, 1 << 13];

type Action = "press" | "release";

/** One simulated input event. */
interface InputEvent {
  readonly kind: number;
  readonly detail: number;
  readonly x?: number;
  readonly y?: number;
}

/**
 * Simulates mouse and keyboard with the server's XTEST extension. Programs cannot distinguish the events from a
 * person's.
 */
export class Input {
  readonly #x11: X11Connection;
  readonly #keys: KeyboardMap;
  #extension: Promise<number> | undefined;

  constructor(x11: X11Connection) {
    this.#x11 = x11;
    this.#keys = new KeyboardMap(x11);
  }

  /** Moves the pointer. */
  move(x: number, y: number): Promise<void> {
    return this.#send({ kind: motion, detail: 0, x, y });
  }

  /** Presses or releases a mouse button. */
  button(number: number, action: Action): Promise<void> {
    return this.#send({ kind: action === "press" ? buttonPress : buttonRelease, detail: number });
  }

  /** Presses keys in order, or releases them in reverse order. */
  async keys(symbols: readonly number[], action: Action): Promise<void> {
    await this.#keys.refresh();
    const held: number[] = [];
    for (const symbol of symbols) held.push(...(await this.#codes(await this.#keys.place(symbol))));
    const inOrder = action === "press" ? held : held.toReversed();
    await this.#send(...inOrder.map((keycode) => key(keycode, action)));
  }

  /** Types symbols one after the other. `modifiers` is the current modifier state, as `pointer()` returns it. */
  async type(symbols: readonly number[], modifiers: number, signal?: CancelSignal): Promise<void> {
    await this.#keys.refresh();
    const group = (modifiers & secondGroup) === 0 ? 0 : 1;
    const capsLock = (modifiers & lockMask) !== 0;
    for (const symbol of symbols) {
      signal?.throwIfAborted();
      const { keycode, shifted } = await this.#keys.place(symbol, group);
      const codes = await this.#codes({ keycode, shifted: shifted !== (capsLock && isLetter(symbol)) });
      await this.#send(
        ...codes.map((code) => key(code, "press")),
        ...codes.toReversed().map((code) => key(code, "release")),
      );
    }
  }

  /** Restores the keyboard layout. */
  close(): Promise<void> {
    return this.#keys.restore();
  }

  async #codes({ keycode, shifted }: KeyPlace): Promise<readonly number[]> {
    return shifted ? [(await this.#keys.place(shiftKey)).keycode, keycode] : [keycode];
  }

  async #send(...all: readonly InputEvent[]): Promise<void> {
    this.#extension ??= this.#find();
    const opcode = await this.#extension;
    await this.#x11.perform(
      ...all.map(({ kind, detail, x = 0, y = 0 }) =>
        new Request(opcode, fakeInput)
          .u8(kind, detail, 0, 0)
          .u32(0, kind === motion ? this.#x11.screen.root : 0, 0, 0)
          .i16(x, y)
          .u32(0, 0),
      ),
    );
  }

  async #find(): Promise<number> {
    const reply = await this.#x11.ask(new Request(queryExtension).u16(5, 0).text("XTEST"));
    if (reply.readUInt8(8) === 1) return reply.readUInt8(9);
    throw new Fault(
      "dependency_missing",
      `the X server of ${this.#x11.display} has no XTEST extension, which simulates mouse and keyboard: enable it, or use Xvfb or Xorg`,
    );
  }
}

function key(keycode: number, action: Action): InputEvent {
  return { kind: action === "press" ? keyPress : keyRelease, detail: keycode };
}

function isLetter(symbol: number): boolean {
  return /\p{L}/u.test(String.fromCodePoint(symbol & 0x1f_ffff));
}
