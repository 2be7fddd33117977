import type { SseStream } from "./sse-stream.ts";

const chunkChars = 65_536;

/** Collects the frames of one turn of the event loop into one chunk. */
export class BatchWriter {
  readonly #stream: SseStream;
  #chunk = "";
  #immediate: NodeJS.Immediate | undefined;

  constructor(stream: SseStream) {
    this.#stream = stream;
  }

  async add(frame: string): Promise<void> {
    this.#chunk += frame;
    if (this.#chunk.length >= chunkChars) await this.flush();
    else this.#immediate ??= setImmediate(() => void this.flush());
  }

  async flush(): Promise<void> {
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    const chunk = this.#chunk;
    this.#chunk = "";
    if (chunk !== "") await this.#stream.send(chunk);
  }
}
