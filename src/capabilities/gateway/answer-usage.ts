import type { ReportedUsage } from "../../kernel/index.ts";
import { isObject, type StreamedUsage, type Wire } from "./wire.ts";

/**
 * Reads the usage out of an answer while its bytes pass. `push` returns the bytes for the client: those that it was given,
 * without the events that exist only because the gateway asked for usage.
 */
abstract class AnswerUsage {
  protected readonly wire: Wire;
  #usage: StreamedUsage = {};

  constructor(wire: Wire) {
    this.wire = wire;
  }

  abstract push(bytes: Buffer): Buffer;
  /** The rest of the bytes, when the answer has ended. */
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
  readonly #bytes: Buffer[] = [];

  push(bytes: Buffer): Buffer {
    this.#bytes.push(bytes);
    return bytes;
  }

  end(): Buffer {
    const json = parsed(Buffer.concat(this.#bytes).toString("utf8"));
    // Gemini answers a stream without `alt=sse` with a list.
    for (const each of Array.isArray(json) ? json : [json]) this.note(each);
    return nothing;
  }
}

/** A stream of server-sent events. */
export class EventStream extends AnswerUsage {
  readonly #hidesUsage: boolean;
  #rest: Buffer = nothing;

  constructor(wire: Wire, hidesUsage: boolean) {
    super(wire);
    this.#hidesUsage = hidesUsage;
  }

  push(bytes: Buffer): Buffer {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let start = 0;
    const kept: Buffer[] = [];
    for (let end = endOfEvent(all, start); end !== -1; end = endOfEvent(all, start)) {
      const event = all.subarray(start, end);
      if (this.#read(event)) kept.push(event);
      start = end;
    }
    this.#rest = all.subarray(start);
    // Without events to hide, the bytes pass at once, also if an event is not complete yet.
    return this.#hidesUsage ? Buffer.concat(kept) : bytes;
  }

  end(): Buffer {
    const rest = this.#rest;
    const isKept = this.#read(rest);
    return this.#hidesUsage && isKept ? rest : nothing;
  }

  /** Returns whether the client receives the event. */
  #read(event: Buffer): boolean {
    // Most events hold a piece of text. Only those with counts are parsed.
    if (!event.includes("sage")) return true;
    const json = parsed(dataOf(event.toString("utf8")));
    if (!isObject(json)) return true;
    this.note(json);
    return !(this.#hidesUsage && this.wire.isUsageOnly?.(json) === true);
  }
}

const nothing = Buffer.alloc(0);

/** Index after the blank line that ends the event which starts at `from`. -1 if the event is not complete. */
function endOfEvent(bytes: Buffer, from: number): number {
  const plain = bytes.indexOf("\n\n", from);
  const returned = bytes.indexOf("\r\n\r\n", from);
  if (returned !== -1 && (plain === -1 || returned < plain)) return returned + 4;
  return plain === -1 ? -1 : plain + 2;
}

function dataOf(event: string): string {
  return event
    .split(/\r?\n/)
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
