import type { ReportedUsage } from "../../kernel/index.ts";
import { isObject } from "./json-values.ts";
import type { StreamedUsage, Wire } from "./wire.ts";

/**
 * Size of the largest answer, or event of a stream, whose usage is read, in bytes. A larger one is passed on and
 * charged in full.
 */
const maxReadBytes = 32 * 1024 * 1024;

/**
 * Reads the usage in an answer while its bytes pass. `push` returns the bytes for the client. Events that exist
 * only because the gateway asked for usage are removed.
 */
abstract class AnswerUsage {
  protected readonly wire: Wire;
  #usage: StreamedUsage = {};

  constructor(wire: Wire) {
    this.wire = wire;
  }

  abstract push(bytes: Buffer): Buffer;
  /** Returns the rest of the bytes, after the answer has ended. */
  abstract end(): Buffer;

  /** What the provider has reported so far. `undefined` until it has reported the input. */
  get reported(): ReportedUsage | undefined {
    const { inputTokens, outputTokens = 0, ...rest } = this.#usage;
    return inputTokens === undefined ? undefined : { inputTokens, outputTokens, ...rest };
  }

  /** Whether the provider has reported the input and the output. */
  get isComplete(): boolean {
    return this.#usage.inputTokens !== undefined && this.#usage.outputTokens !== undefined;
  }

  protected note(json: unknown): void {
    if (!isObject(json)) return;
    const usage = this.wire.usageOf(json);
    if (usage !== undefined) this.#usage = { ...this.#usage, ...usage };
  }
}

/** An answer that is one JSON value. */
export class WholeAnswer extends AnswerUsage {
  #bytes: Buffer[] = [];
  #size = 0;

  push(bytes: Buffer): Buffer {
    this.#size += bytes.byteLength;
    if (this.#size <= maxReadBytes) this.#bytes.push(bytes);
    else this.#bytes = [];
    return bytes;
  }

  end(): Buffer {
    const json = parsed(Buffer.concat(this.#bytes).toString("utf8"));
    // Gemini answers a stream without `alt=sse` with a list.
    for (const each of Array.isArray(json) ? (json as readonly unknown[]) : [json]) this.note(each);
    return nothing;
  }
}

const [lineFeed, carriageReturn] = [0x0a, 0x0d];

/** A stream of server-sent events. A line ends with a line feed, a carriage return, or both. An empty line ends an event. */
export class EventStream extends AnswerUsage {
  readonly #hidesUsage: boolean;
  /** The bytes of the event so far that have arrived earlier. */
  #pieces: Buffer[] = [];
  #size = 0;
  #isLineEmpty = true;
  #isAfterReturn = false;
  /**
   * Whether the client received the event that ended with the last byte, if that byte is a carriage return. A line
   * feed may follow it.
   */
  #ended: "kept" | "hidden" | undefined;
  #hasLast = false;

  constructor(wire: Wire, hidesUsage: boolean) {
    super(wire);
    this.#hidesUsage = hidesUsage;
  }

  override get isComplete(): boolean {
    return super.isComplete && (this.#hasLast || this.wire.isLast === undefined);
  }

  push(bytes: Buffer): Buffer {
    const kept: Buffer[] = [];
    let start = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte !== lineFeed && byte !== carriageReturn) {
        this.#isLineEmpty = this.#isAfterReturn = false;
        this.#ended = undefined;
        continue;
      }
      if (byte === lineFeed && this.#isAfterReturn) {
        this.#isAfterReturn = false;
        if (this.#ended === undefined) continue;
        // The line feed belongs to the event before it.
        if (this.#ended === "kept") kept.push(bytes.subarray(at, at + 1));
        this.#ended = undefined;
        start = at + 1;
        continue;
      }
      this.#isAfterReturn = byte === carriageReturn;
      this.#ended = undefined;
      if (this.#isLineEmpty) {
        const event = this.#take(bytes.subarray(start, at + 1));
        start = at + 1;
        const isKept = this.#read(event);
        if (isKept) kept.push(event);
        if (this.#isAfterReturn) this.#ended = isKept ? "kept" : "hidden";
      }
      this.#isLineEmpty = true;
    }
    const rest = bytes.subarray(start);
    // Without events to hide, the bytes pass at once, also if an event is not complete yet.
    if (!this.#hidesUsage) {
      this.#keep(rest);
      return bytes;
    }
    if (this.#size + rest.byteLength > maxReadBytes) kept.push(this.#take(rest));
    else this.#keep(rest);
    return Buffer.concat(kept);
  }

  end(): Buffer {
    const rest = this.#take(nothing);
    const isKept = this.#read(rest);
    return this.#hidesUsage && isKept ? rest : nothing;
  }

  #keep(bytes: Buffer): void {
    if (bytes.byteLength === 0) return;
    this.#size += bytes.byteLength;
    if (this.#size <= maxReadBytes) this.#pieces.push(bytes);
    else this.#pieces = [];
  }

  /** Returns the bytes of the event with its last ones. */
  #take(last: Buffer): Buffer {
    const event = this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, last]);
    this.#pieces = [];
    this.#size = 0;
    return event;
  }

  /** Returns whether the client receives the event. */
  #read(event: Buffer): boolean {
    // Most events hold a piece of text. Only those with counts are parsed.
    if (!event.includes("sage")) return true;
    const json = parsed(dataOf(event.toString("utf8")));
    if (!isObject(json)) return true;
    this.note(json);
    if (this.wire.isLast?.(json) === true) this.#hasLast = true;
    return !(this.#hidesUsage && this.wire.isUsageOnly?.(json) === true);
  }
}

const nothing = Buffer.alloc(0);

function dataOf(event: string): string {
  return event
    .split(/\r\n|\n|\r/)
    .flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trimStart()] : []))
    .join("\n");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON, such as the mark `[DONE]`, or a page of a proxy: it reports no usage.
    return undefined;
  }
}
