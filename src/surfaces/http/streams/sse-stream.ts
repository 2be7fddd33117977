/** Number of bytes that a stream buffers for its reader before the writer waits. */
const bufferBytes = 65_536;
const encoder = new TextEncoder();

export interface SseStreamOptions {
  /**
   * Number of bytes that a stream may buffer for a reader that does not read. If there are more, the reader is
   * disconnected.
   */
  readonly maxQueuedBytes: number;
  /** Ends the connection at once. */
  readonly disconnect?: () => void;
  readonly onEnd: () => void;
}

/**
 * The events of one response, in the format of server-sent events. A slow reader never slows down other parts of
 * the server: a writer that can wait uses `send`; any other writer uses `push`, which disconnects a reader that is
 * too far behind. The reader can resume with `Last-Event-ID`.
 */
export class SseStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #options: SseStreamOptions;
  readonly #ended = new AbortController();
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  /** Writers that wait until the reader needs more data. */
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

  /** Writes a text and waits until the reader needs more data. Returns `false` if the stream has ended. */
  async send(text: string | Uint8Array): Promise<boolean> {
    this.push(typeof text === "string" ? encoder.encode(text) : text);
    if (this.isOver || (this.#controller.desiredSize ?? 0) > 0) return !this.isOver;
    await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    return !this.isOver;
  }

  /** Writes bytes without waiting. Several streams may share the same bytes. */
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

  /** Closes the connection and drops the data that the reader has not read. */
  disconnect(): void {
    if (this.isOver) return;
    this.#over();
    this.#options.disconnect?.();
    this.#controller.error(new DOMException("the reader was too slow", "AbortError"));
  }

  /**
   * Sends a heartbeat if nothing was sent since the last call. Disconnects the reader if it has not read since the
   * last call.
   */
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

/** Formats one event of a stream. Its JSON contains no line breaks, so it needs only one line. */
export function sseFrame(
  data: unknown,
  { id, event }: { readonly id?: string; readonly event?: string } = {},
): string {
  const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
  return `${head}data: ${JSON.stringify(data)}\n\n`;
}
