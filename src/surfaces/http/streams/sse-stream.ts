/** Bytes that a stream holds for its reader before the writer waits. */
const bufferBytes = 65_536;
const encoder = new TextEncoder();

export interface SseStreamOptions {
  /** Bytes that a stream may hold for a reader that does not read. A reader that is further behind is disconnected. */
  readonly maxQueuedBytes: number;
  /** Ends the connection at once. */
  readonly disconnect?: () => void;
  readonly onEnd: () => void;
}

/**
 * The events of one response, in the format of server-sent events. A slow reader never slows anything down: a writer that
 * can wait uses `send`, any other uses `push`, after which a reader that is too far behind is disconnected. It can resume
 * with `Last-Event-ID`.
 */
export class SseStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #options: SseStreamOptions;
  readonly #ended = new AbortController();
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  /** Writers that wait until the reader needs more. */
  #waiting: (() => void)[] = [];
  /** Whether the reader has read since the last call of `tick`. */
  #hasRead = true;
  #hasWritten = false;

  constructor(options: SseStreamOptions) {
    this.#options = options;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#pulled(),
        cancel: () => this.#over(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: bufferBytes }),
    );
  }

  /** Aborts when the reader has left or the stream has ended. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  get isOver(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Writes a text and waits until the reader needs more. Returns `false` if the stream has ended. */
  async send(text: string | Uint8Array): Promise<boolean> {
    this.push(typeof text === "string" ? encoder.encode(text) : text);
    if (this.isOver || (this.#controller.desiredSize ?? 0) > 0) return !this.isOver;
    await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    return !this.isOver;
  }

  /** Writes without waiting. Several streams may share the bytes. */
  push(bytes: Uint8Array): void {
    if (this.isOver) return;
    this.#hasWritten = true;
    this.#controller.enqueue(bytes);
    if (this.#queuedBytes > this.#options.maxQueuedBytes) this.disconnect();
  }

  /** Ends the stream after what was written. */
  end(text = ""): void {
    if (this.isOver) return;
    if (text !== "") this.#controller.enqueue(encoder.encode(text));
    this.#controller.close();
    this.#over();
  }

  /** Ends the connection, without what the reader has not read. */
  disconnect(): void {
    if (this.isOver) return;
    this.#over();
    this.#options.disconnect?.();
    this.#controller.error(new DOMException("the reader was too slow", "AbortError"));
  }

  /** Sends a heartbeat if nothing was sent since the last call, and disconnects a reader that has not read since. */
  tick(): void {
    if (this.#queuedBytes > 0 && !this.#hasRead) {
      this.disconnect();
      return;
    }
    if (!this.#hasWritten) this.push(heartbeat);
    this.#hasWritten = false;
    this.#hasRead = this.#queuedBytes === 0;
  }

  get #queuedBytes(): number {
    return bufferBytes - (this.#controller.desiredSize ?? bufferBytes);
  }

  #pulled(): void {
    this.#hasRead = true;
    this.#resume();
  }

  #resume(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  #over(): void {
    if (this.isOver) return;
    this.#ended.abort();
    this.#resume();
    this.#options.onEnd();
  }
}

const heartbeat = encoder.encode(": heartbeat\n\n");

/** One event of a stream. JSON contains no line breaks, so that it is one line. */
export function sseFrame(
  data: unknown,
  { id, event }: { readonly id?: string; readonly event?: string } = {},
): string {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
  return `${head}data: ${JSON.stringify(data)}\n\n`;
}
