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
  [Symbol.asyncIterator](): AsyncIterator<Event | Delta, undefined> {
    let events: AsyncIterator<Event | Delta> | undefined;
    return {
      // The run's own promise, once it is there: a delta does not wait a second time.
      next: () => {
        if (events !== undefined) return events.next() as Promise<IteratorResult<Event | Delta, undefined>>;
        return this.#begin().then((begun) => {
          events = begun;
          return begun.next() as Promise<IteratorResult<Event | Delta, undefined>>;
        });
      },
      return: async () => {
        await events?.return?.();
        if (this.#cancelOnBreak && this.#run !== undefined) await (await this.#run).cancel("its reader left");
        return { value: undefined, done: true };
      },
    };
  }

  async #begin(): Promise<AsyncIterator<Event | Delta>> {
    const run = await this.run();
    return run.events()[Symbol.asyncIterator]();
  }
}
