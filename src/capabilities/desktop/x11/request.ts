/** Builds one request of the X protocol in little-endian order. */
export class Request {
  readonly #parts: Buffer[] = [];

  /** `data` is the byte after the opcode. For a request of an extension, it is the opcode within the extension. */
  constructor(opcode: number, data = 0) {
    this.#parts.push(Buffer.from([opcode, data, 0, 0]));
  }

  u8(...values: readonly number[]): this {
    this.#parts.push(Buffer.from(values));
    return this;
  }

  u16(...values: readonly number[]): this {
    return this.#add(2, values, (bytes, value, at) => bytes.writeUInt16LE(value, at));
  }

  i16(...values: readonly number[]): this {
    return this.#add(2, values, (bytes, value, at) => bytes.writeInt16LE(value, at));
  }

  u32(...values: readonly number[]): this {
    return this.#add(4, values, (bytes, value, at) => bytes.writeUInt32LE(value, at));
  }

  text(value: string): this {
    this.#parts.push(Buffer.from(value, "latin1"));
    return this;
  }

  /** Returns the request, padded and with its length filled in. */
  bytes(): Buffer {
    const all = Buffer.concat(this.#parts);
    const padded = Buffer.concat([all, Buffer.alloc(padding(all.length))]);
    padded.writeUInt16LE(padded.length / 4, 2);
    return padded;
  }

  #add(
    size: number,
    values: readonly number[],
    write: (bytes: Buffer, value: number, at: number) => void,
  ): this {
    const bytes = Buffer.alloc(size * values.length);
    for (const [index, value] of values.entries()) write(bytes, value, index * size);
    this.#parts.push(bytes);
    return this;
  }
}

/** Returns the number of bytes that pad a length to a multiple of four. */
export function padding(length: number): number {
  return (4 - (length % 4)) % 4;
}
