import type { X11Connection } from "./connection.ts";
import { Request } from "./request.ts";

const [internAtom, getProperty] = [16, 20];
const anyType = 0;
/** Maximum size of one property, in units of four bytes. */
const maxSize = { numbers: 65_536, text: 1_024 } as const;

/** Reads the properties that programs and window managers set on windows. */
export class Properties {
  readonly #x11: X11Connection;
  readonly #atoms = new Map<string, Promise<number>>();

  constructor(x11: X11Connection) {
    this.#x11 = x11;
  }

  /** Returns the atom of a name. */
  atom(name: string): Promise<number> {
    let known = this.#atoms.get(name);
    if (known === undefined) {
      const request = new Request(internAtom).u16(name.length, 0).text(name);
      known = this.#x11.ask(request).then((reply) => reply.readUInt32LE(8));
      this.#atoms.set(name, known);
    }
    return known;
  }

  /** Returns a property as window ids or other numbers, or `undefined` if it is not set. */
  async numbers(window: number, name: string): Promise<readonly number[] | undefined> {
    const { format, value } = await this.#read(window, name, maxSize.numbers);
    if (format !== 32) return undefined;
    return Array.from({ length: value.length / 4 }, (_, index) => value.readUInt32LE(index * 4));
  }

  /** Returns a property as texts. Several texts are separated by zero bytes. */
  async texts(window: number, name: string): Promise<readonly string[]> {
    const [utf8, { type, format, value }] = await Promise.all([
      this.atom("UTF8_STRING"),
      this.#read(window, name, maxSize.text),
    ]);
    if (format !== 8) return [];
    const text = type === utf8 ? value.toString() : fromCompound(value.toString("latin1"));
    return text.replace(/\0$/u, "").split("\0");
  }

  /** Whether a property is set. */
  async isSet(window: number, name: string): Promise<boolean> {
    return (await this.#read(window, name, 0)).format !== 0;
  }

  async #read(
    window: number,
    name: string,
    words: number,
  ): Promise<{ readonly type: number; readonly format: number; readonly value: Buffer }> {
    const request = new Request(getProperty).u32(window, await this.atom(name), anyType, 0, words);
    const reply = await this.#x11.ask(request);
    const format = reply.readUInt8(1);
    const length = reply.readUInt32LE(16) * (format / 8);
    return { type: reply.readUInt32LE(8), format, value: reply.subarray(32, 32 + length) };
  }
}

/** Decodes a text of an older program: Latin-1, with UTF-8 between two escape sequences. */
function fromCompound(text: string): string {
  // oxlint-disable-next-line no-control-regex -- the escapes are control characters
  return text.replaceAll(/\u001b%G(.*?)\u001b%@/gsu, (_, inner: string) =>
    Buffer.from(inner, "latin1").toString(),
  );
}
