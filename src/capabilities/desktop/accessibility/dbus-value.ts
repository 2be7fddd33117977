/** A value of a D-Bus message. 64-bit integers are `bigint`; a variant is represented by its value. */
export type DBusValue = string | number | bigint | boolean | readonly DBusValue[];

/** Writes strings, paths, signatures and 32-bit integers in little-endian order, each aligned to its boundary. */
export class DBusWriter {
  readonly #parts: Buffer[] = [];
  #length = 0;

  /** Number of bytes that were written. */
  get length(): number {
    return this.#length;
  }

  align(to: number): this {
    return this.raw(Buffer.alloc((to - (this.#length % to)) % to));
  }

  raw(bytes: Buffer): this {
    this.#parts.push(bytes);
    this.#length += bytes.length;
    return this;
  }

  u8(value: number): this {
    return this.raw(Buffer.from([value]));
  }

  u32(value: number): this {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value >>> 0);
    return this.align(4).raw(bytes);
  }

  text(value: string): this {
    const bytes = Buffer.from(value);
    return this.u32(bytes.length).raw(bytes).u8(0);
  }

  signature(value: string): this {
    return this.u8(value.length).raw(Buffer.from(value)).u8(0);
  }

  /** Returns everything that was written. */
  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** Reads values by their signature. Alignment is relative to the start of `bytes`. */
export class DBusReader {
  readonly #bytes: Buffer;
  readonly #little: boolean;
  #at: number;

  constructor(bytes: Buffer, little: boolean, at = 0) {
    this.#bytes = bytes;
    this.#little = little;
    this.#at = at;
  }

  /** Position of the next byte to read. */
  get at(): number {
    return this.#at;
  }

  /** Reads one value for each type of the signature. */
  all(signature: string): readonly DBusValue[] {
    const values: DBusValue[] = [];
    for (let rest = signature; rest !== "";) {
      const type = firstType(rest);
      values.push(this.#read(type));
      rest = rest.slice(type.length);
    }
    return values;
  }

  #read(type: string): DBusValue {
    switch (type[0]) {
      case "y":
        return this.#bytes.readUInt8(this.#step(1));
      case "b":
        return this.#number(4) !== 0;
      case "n":
        return (this.#number(2) << 16) >> 16;
      case "q":
        return this.#number(2);
      case "i":
        return this.#number(4) | 0;
      case "u":
      case "h":
        return this.#number(4);
      case "x":
      case "t":
      case "d":
        return this.#long(type);
      case "s":
      case "o":
        return this.#text(this.#number(4));
      case "g":
        return this.#text(this.#bytes.readUInt8(this.#step(1)));
      case "v":
        return this.all(this.#text(this.#bytes.readUInt8(this.#step(1))))[0] ?? "";
      case "a":
        return this.#list(type.slice(1));
      case "(":
      case "{":
        this.#align(8);
        return this.all(type.slice(1, -1));
      default:
        throw new Error(`a D-Bus message contains the unknown type ${type}`);
    }
  }

  #list(type: string): readonly DBusValue[] {
    const length = this.#number(4);
    this.#align(boundary(type));
    const end = this.#at + length;
    const values: DBusValue[] = [];
    while (this.#at < end) {
      const before = this.#at;
      values.push(this.#read(type));
      if (this.#at === before) throw new Error("a D-Bus message contains an array of empty values");
    }
    return values;
  }

  #number(size: 2 | 4): number {
    this.#align(size);
    const at = this.#step(size);
    return this.#little ? this.#bytes.readUIntLE(at, size) : this.#bytes.readUIntBE(at, size);
  }

  #long(type: string): number | bigint {
    this.#align(8);
    const at = this.#step(8);
    if (type === "d") return this.#little ? this.#bytes.readDoubleLE(at) : this.#bytes.readDoubleBE(at);
    const value = this.#little ? this.#bytes.readBigUInt64LE(at) : this.#bytes.readBigUInt64BE(at);
    return type === "x" ? BigInt.asIntN(64, value) : value;
  }

  #text(length: number): string {
    const at = this.#step(length + 1);
    return this.#bytes.toString("utf8", at, at + length);
  }

  #align(to: number): void {
    this.#at += (to - (this.#at % to)) % to;
  }

  #step(size: number): number {
    const at = this.#at;
    this.#at += size;
    if (this.#at > this.#bytes.length) throw new Error("a D-Bus message ends before its last value");
    return at;
  }
}

/** Returns the first complete type of a signature. */
function firstType(signature: string): string {
  if (signature.startsWith("a")) return `a${firstType(signature.slice(1))}`;
  if (!/^[({]/u.test(signature)) return signature.slice(0, 1);
  let depth = 0;
  for (const [index, sign] of Array.from(signature).entries()) {
    if (sign === "(" || sign === "{") depth++;
    if (sign === ")" || sign === "}") depth--;
    if (depth === 0) return signature.slice(0, index + 1);
  }
  throw new Error(`the D-Bus signature ${signature} is incomplete`);
}

function boundary(type: string): number {
  if (/^[xtd({]/u.test(type)) return 8;
  if (/^[nq]/u.test(type)) return 2;
  return /^[ygv]/u.test(type) ? 1 : 4;
}
