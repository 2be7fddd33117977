import type { Delta, Event, JsonValue, RunHandle, RunResult } from "../kernel/index.ts";

/** A run as it happens: its events and the pieces of its text, from the first. It starts when it is first read, or asked for. */
export class AgentStream<Result = RunResult<JsonValue>> implements AsyncIterable<Event | Delta> {
  readonly #start: () => Promise<RunHandle>;
  readonly #shape: (result: RunResult<JsonValue>) => Result | Promise<Result>;
  readonly #cancelOnBreak: boolean;
  #run: Promise<RunHandle> | undefined;

  /** `shape`: how a result is given to whoever asks for it. */
  constructor(
    start: () => Promise<RunHandle>,
    shape: (result: RunResult<JsonValue>) => Result | Promise<Result>,
    cancelOnBreak: boolean,
  ) {
    this.#start = start;
    this.#shape = shape;
    this.#cancelOnBreak = cancelOnBreak;
  }

  /** For orders: `cancel`, `steer`, `approve` and the like. */
  run(): Promise<RunHandle> {
    return (this.#run ??= this.#start());
  }

  async result(): Promise<Result> {
    const run = await this.run();
    return this.#shape(await run.result());
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
