import { Fault, type JsonObject } from "../../kernel/index.ts";
import type { GatewayMeter } from "./access.ts";
import type { RequestBody } from "./request-body.ts";

/** What the log of a run contains about each request, in addition to model, usage and cost. */
export type RecordMode = "none" | "sizes" | "bodies";

export const recordModes: readonly RecordMode[] = ["none", "sizes", "bodies"];

/** Size of the largest part of a request or an answer that is stored, in bytes. */
const maxStoredBytes = 1024 * 1024;

/** Collects what the log stores about one request. It is content of the run: retention erases it like messages. */
export class CallRecord {
  readonly #mode: RecordMode;
  readonly #redact: (text: string) => string;
  readonly #requestBytes: number;
  /**
   * A copy of the beginning of the request, so that the memory of a large body is freed when the provider has
   * received it.
   */
  readonly #request: Buffer;
  readonly #answer: Buffer[] = [];
  #answerBytes = 0;
  #storedBytes = 0;

  constructor(mode: RecordMode, redact: (text: string) => string, request: RequestBody) {
    this.#mode = mode;
    this.#redact = redact;
    this.#requestBytes = request.size;
    this.#request = Buffer.from(request.bytes.subarray(0, mode === "bodies" ? maxStoredBytes : 0));
  }

  /** Adds bytes of the answer, as the program receives them. */
  add(bytes: Buffer): void {
    this.#answerBytes += bytes.byteLength;
    if (this.#mode !== "bodies" || this.#storedBytes >= maxStoredBytes) return;
    this.#storedBytes += bytes.byteLength;
    this.#answer.push(bytes);
  }

  /** Writes the record to the log. `status` is that of the answer, or `null` if there was none. */
  write(meter: GatewayMeter, path: string, status: number | null): void {
    if (this.#mode === "none") return;
    const data: JsonObject = {
      path,
      status,
      requestBytes: this.#requestBytes,
      answerBytes: this.#answerBytes,
      ...(this.#mode === "bodies" && this.#bodies()),
    };
    meter.emitEvent({ type: "architecture_event", data: { architecture: "gateway", name: "request", data } });
  }

  /** Returns the texts for the log. A text that cannot be redacted is not stored. */
  #bodies(): JsonObject {
    try {
      const request = this.#redact(textOf(this.#request, this.#requestBytes));
      const answer = this.#redact(textOf(Buffer.concat(this.#answer), this.#answerBytes));
      if (typeof request !== "string" || typeof answer !== "string")
        throw new Fault("invalid_argument", "redact of openGateway() did not return a text");
      return { request, answer };
    } catch (error) {
      return { notStored: Fault.from(error).message };
    }
  }
}

/** The stored part of a text of `size` bytes. */
function textOf(bytes: Buffer, size: number): string {
  const text = bytes.subarray(0, maxStoredBytes).toString("utf8");
  return size <= maxStoredBytes ? text : `${text} [the rest is not stored]`;
}
