import type { CancelSignal, Delta, Event, JsonValue, RunHandle, RunResult } from "../kernel/index.ts";
import { AbortWatch } from "./abort-watch.ts";
import { cancelWithCaller } from "./cancel-with-caller.ts";

/** How a stream ends its run. */
export interface StreamEnd {
  /** C3: whether leaving the loop cancels the run. */
  readonly cancelOnBreak: boolean;
  /** Cancels the run when it aborts, also after a reader has left the loop. */
  readonly signal?: CancelSignal | undefined;
}

/**
 * The events and text deltas of a run, from the first one on. The run starts when the stream is first read or its
 * result is requested.
 */
export class AgentStream<Result = RunResult<JsonValue>> implements AsyncIterable<Event | Delta> {
  readonly #start: () => Promise<RunHandle>;
  readonly #shape: (result: RunResult<JsonValue>) => Result | Promise<Result>;
  readonly #cancelOnBreak: boolean;
  readonly #watch: AbortWatch | undefined;
  #run: Promise<RunHandle> | undefined;

  /** `shape` converts the result of the run to the type that `result()` returns. */
  constructor(
    start: () => Promise<RunHandle>,
    shape: (result: RunResult<JsonValue>) => Result | Promise<Result>,
    { cancelOnBreak, signal }: StreamEnd,
  ) {
    this.#start = start;
    this.#shape = shape;
    this.#cancelOnBreak = cancelOnBreak;
    this.#watch = signal && new AbortWatch(signal);
  }

  /** The handle of the run, with `cancel`, `steer`, `approve` and the like. */
  run(): Promise<RunHandle> {
    return (this.#run ??= this.#watch === undefined ? this.#start() : this.#startWatched(this.#watch));
  }

  async #startWatched(watch: AbortWatch): Promise<RunHandle> {
    watch.assertNotAborted();
    const run = await this.#start();
    watch.start(run);
    return run;
  }

  async result(): Promise<Result> {
    const run = await this.run();
    const end = cancelWithCaller(run, () => run.result());
    return this.#shape(await (this.#watch === undefined ? end : this.#watch.untilEnd(end)));
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
    const events = run.events();
    const watched = this.#watch === undefined ? events : watchedEvents(events, this.#watch);
    return watched[Symbol.asyncIterator]();
  }
}

/** The events of a run with a signal. Stops watching the signal after the last event, not when a reader leaves. */
async function* watchedEvents(
  events: AsyncIterable<Event | Delta>,
  watch: AbortWatch,
): AsyncIterable<Event | Delta> {
  for await (const event of events) {
    watch.check();
    yield event;
  }
  watch.stop();
}
