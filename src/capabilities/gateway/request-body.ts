import type { IncomingMessage } from "node:http";
import { deepestJson, Fault, JsonCounter } from "../../kernel/index.ts";
import { isObject, type Json } from "./json-values.ts";
import { JsonText } from "./json-text.ts";
import { Refusal } from "./refusal.ts";

/** A limit of the bytes that may be in memory at the same time. */
export class ByteLimit {
  readonly #maxBytes: number;
  #held = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  take(bytes: number): void {
    this.#held += bytes;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }

  /** Throws if more bytes are used than the limit allows. */
  check(): void {
    if (this.#held > this.#maxBytes)
      throw new Refusal(
        429,
        `the open requests have more than ${this.#maxBytes} bytes; wait for one of them`,
        1,
      );
  }
}

/** The body of an open request. Its bytes count against the limit while the gateway keeps them. */
export class RequestBody {
  readonly #limits: readonly ByteLimit[];
  #bytes: Buffer | undefined = Buffer.alloc(0);
  #size = 0;

  private constructor(limits: readonly ByteLimit[]) {
    this.#limits = limits;
  }

  /** Reads a JSON body. The number of its values is limited, because each of them is visited. */
  static async read(
    from: IncomingMessage,
    maxBytes: number,
    limits: readonly ByteLimit[],
  ): Promise<RequestBody> {
    const body = new RequestBody(limits);
    const counter = new JsonCounter("the body of the request", deepestJson);
    const pieces: Buffer[] = [];
    try {
      // A request that is refused while it arrives is not destroyed, because its sender must receive the answer.
      for await (const piece of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        body.#take(piece.byteLength);
        if (body.#size > maxBytes) throw new Refusal(413, `the body has more than ${maxBytes} bytes`);
        counter.add(piece);
        pieces.push(piece);
      }
    } catch (error) {
      body.drop();
      throw error instanceof Fault ? new Refusal(413, error.message) : error;
    }
    body.#bytes = Buffer.concat(pieces);
    return body;
  }

  /** Number of bytes. */
  get size(): number {
    return this.#size;
  }

  get bytes(): Buffer {
    if (this.#bytes === undefined) throw new Fault("internal", "the body of the request was dropped");
    return this.#bytes;
  }

  /** The text of the body, which must be valid. */
  get text(): JsonText {
    return new JsonText(decoder.decode(this.bytes));
  }

  /** Reads the body as a JSON object. The values are not kept. */
  parse(): { readonly text: JsonText; readonly json: Json } {
    return parseObject(this.bytes);
  }

  /** Drops the bytes, because they are not needed any more. */
  drop(): void {
    if (this.#bytes === undefined) return;
    this.#bytes = undefined;
    for (const limit of this.#limits) limit.give(this.#size);
  }

  #take(bytes: number): void {
    this.#size += bytes;
    for (const limit of this.#limits) limit.take(bytes);
    for (const limit of this.#limits) limit.check();
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads a body that is a JSON object. */
export function parseObject(body: Buffer): { readonly text: JsonText; readonly json: Json } {
  try {
    const text = decoder.decode(body);
    const json: unknown = JSON.parse(text);
    if (!isObject(json)) throw new Error("it is not an object");
    return { text: new JsonText(text), json };
  } catch (error) {
    throw new Refusal(400, `the body is not a JSON object in UTF-8: ${Fault.from(error).message}`);
  }
}

/** Reads a short answer of the provider. */
export async function readAnswer(from: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of from) {
    size += piece.byteLength;
    if (size > maxBytes)
      throw new Fault("too_large", `the answer of the provider has more than ${maxBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
