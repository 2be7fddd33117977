import type { Delta, Event, JsonValue, RunHandle, RunResult } from "../kernel/index.ts";

/** A run as it happens: its events and the pieces of its text, from the first. It starts when it is first read, or asked for. */
export class AgentStream implements AsyncIterable<Event | Delta> {
  readonly #start: () => Promise<RunHandle>;
  readonly #cancelOnBreak: boolean;
  #run: Promise<RunHandle> | undefined;

  constructor(start: () => Promise<RunHandle>, cancelOnBreak: boolean) {
    this.#start = start;
    this.#cancelOnBreak = cancelOnBreak;
  }

  /** For orders: `cancel`, `steer`, `approve` and the like. */
  run(): Promise<RunHandle> {
    return (this.#run ??= this.#start());
  }

  async result(): Promise<RunResult<JsonValue>> {
    return (await this.run()).result();
  }

  /** C3: whoever leaves detaches, unless `cancelOnBreak` was asked for. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Event | Delta, void> {
    const run = await this.run();
    let ended = false;
    try {
      yield* run.events();
      ended = true;
    } finally {
      if (!ended && this.#cancelOnBreak) await run.cancel("its reader left");
    }
  }
}
