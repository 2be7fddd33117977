import type { Delta, Event, JsonValue, RunHandle, RunResult } from "../kernel/index.ts";
import { cancelWithCaller } from "./cancel-with-caller.ts";

/**
 * The events and text deltas of a run, from the first one on. The run starts when the stream is first read or its
 * result is requested.
 */
export class AgentStream<Result = RunResult<JsonValue>> implements AsyncIterable<Event | Delta> {
  readonly #start: () => Promise<RunHandle>;
  readonly #shape: (result: RunResult<JsonValue>) => Result | Promise<Result>;
  readonly #cancelOnBreak: boolean;
  #run: Promise<RunHandle> | undefined;

  /** `shape` converts the result of the run to the type that `result()` returns. */
  constructor(
    start: () => Promise<RunHandle>,
    shape: (result: RunResult<JsonValue>) => Result | Promise<Result>,
    cancelOnBreak: boolean,
  ) {
    this.#start = start;
    this.#shape = shape;
    this.#cancelOnBreak = cancelOnBreak;
  }

  /** The handle of the run, with `cancel`, `steer`, `approve` and the like. */
  run(): Promise<RunHandle> {
    return (this.#run ??= this.#start());
  }

  async result(): Promise<Result> {
    const run = await this.run();
    return this.#shape(await cancelWithCaller(run, () => run.result()));
  }

  /** C3: a reader that leaves the loop detaches, and the run continues, unless `cancelOnBreak` is set. */
  [Symbol.asyncIterator](): AsyncIterator<Event | Delta, undefined> {
    let events: AsyncIterator<Event | Delta> | undefined;
    return {
      // Returns the promise of the run's own iterator once it exists, so that each delta is awaited only once.
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
