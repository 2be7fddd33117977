import {
  deepFreeze,
  endsRun,
  type Delta,
  type Event,
  type Fault,
  type Guest,
  type TailOptions,
} from "../../../kernel/index.ts";
import { TailFilter } from "../tail-filter.ts";
import type { Tables } from "./tables.ts";
import type { RunRow, RunWatcher } from "./run-row.ts";

type Shown = IteratorResult<Event | Delta, undefined>;
type Answer = (shown: Shown | Promise<never>) => void;

const over: Shown = Object.freeze({ value: undefined, done: true });

/**
 * The event stream (tail) of one run for one reader. It is a hand-written iterator, because an async generator
 * waits for three promises per item, and a message has thousands of deltas. Bench: `loop`, row "a streamed delta".
 */
export class MemoryTail implements AsyncIterableIterator<Event | Delta, undefined>, RunWatcher, Guest {
  readonly #tables: Tables;
  readonly #row: RunRow;
  readonly #filter: TailFilter;
  readonly #signal: TailOptions["signal"];
  readonly #life: TailOptions["life"];
  /**
   * The pending call of `next`, and further calls made in the meantime. A reader that uses `for await` has at most
   * one.
   */
  #waiting: Answer | undefined;
  #behind: Answer[] | undefined;
  #deltas: ComingDeltas | undefined;
  #seq: number;
  #hasBegun = false;
  /**
   * Whether the reader has received everything that exists, so that nothing needs to be searched until the next
   * commit or delta.
   */
  #isThrough = false;
  #isOver = false;

  constructor(tables: Tables, row: RunRow, { fromSeq = 0, types, signal, life }: TailOptions) {
    this.#tables = tables;
    this.#row = row;
    this.#filter = new TailFilter(types);
    this.#signal = signal;
    this.#life = life;
    this.#seq = fromSeq;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Shown> {
    const shown = this.#isThrough ? undefined : this.#take();
    if (shown !== undefined) return Promise.resolve(shown);
    return this.#life?.fault === undefined
      ? new Promise((resolve) => this.#wait(resolve))
      : this.#refuse(this.#life.fault);
  }

  /** E3: ends the tail. The run is not affected. */
  return(): Promise<Shown> {
    this.#end();
    return Promise.resolve(over);
  }

  seeCommit(events: readonly Event[]): void {
    if (this.#filter.wakesFor(events)) this.#serve();
    // The reader gets none of these events, so it is still up to date.
    else if (this.#isThrough) this.#seq = this.#row.events.length;
  }

  seeDelta(delta: Delta): void {
    if (!this.#filter.showsDeltas) return;
    // A waiting reader has got everything before this delta.
    if (this.#waiting !== undefined) this.#answer({ value: delta, done: false });
    else this.#put(delta);
  }

  seeRemoval(): void {
    this.#end();
  }

  /** Called when the lifetime has ended. A reader that is behind first gets the remaining events. */
  lifeEnded(fault: Fault): void {
    if (this.#waiting === undefined) return;
    this.#answer(Promise.reject(fault));
    this.#end();
  }

  #refuse(fault: Fault): Promise<never> {
    this.#end();
    return Promise.reject(fault);
  }

  /** Starts to observe the run at the first call of `next`. */
  #begin(): void {
    this.#hasBegun = true;
    const row = this.#row;
    if (this.#isOver || this.#signal?.aborted === true || this.#tables.runs.get(row.record.runId) !== row) {
      this.#end();
      return;
    }
    // E2: deltas that were put before the reader joined.
    if (this.#filter.showsDeltas) for (const delta of row.deltas) this.#put(delta);
    row.watchers = row.watchers.concat(this);
    this.#signal?.addEventListener("abort", this.#end);
    this.#life?.join(this);
  }

  #put(delta: Delta): void {
    this.#isThrough = false;
    (this.#deltas ??= new ComingDeltas()).add(delta, this.#row.events.length);
  }

  #wait(resolve: Answer): void {
    if (this.#waiting === undefined) this.#waiting = resolve;
    else (this.#behind ??= []).push(resolve);
  }

  #answer(shown: Shown | Promise<never>): void {
    const answer = this.#waiting;
    this.#waiting = this.#behind?.shift();
    answer?.(shown);
  }

  #serve(): void {
    this.#isThrough = false;
    while (this.#waiting !== undefined) {
      const shown = this.#take();
      if (shown === undefined) return;
      this.#answer(shown);
    }
  }

  /**
   * Returns the next item, or `undefined` if there is none yet. E1: events are frozen, so that a reader cannot
   * change them for other readers.
   */
  #take(): Shown | undefined {
    if (!this.#hasBegun) this.#begin();
    if (this.#isOver) return over;
    const { events } = this.#row;
    for (;;) {
      const delta = this.#deltas?.before(this.#seq);
      if (delta !== undefined) return { value: delta, done: false };
      if (this.#seq >= events.length) break;
      const event = events[this.#seq++];
      if (event !== undefined && this.#filter.shows(event)) return { value: deepFreeze(event), done: false };
    }
    const last = events.at(-1);
    // Called for every delta, so the common cases are decided without a call.
    if (last?.type === "run_end" || (last?.type === "usage_corrected" && endsRun(last))) {
      this.#end();
      return over;
    }
    this.#isThrough = true;
    return undefined;
  }

  readonly #end = (): void => {
    this.#isOver = true;
    this.#row.watchers = this.#row.watchers.filter((each) => each !== this);
    this.#signal?.removeEventListener("abort", this.#end);
    this.#life?.leave(this);
    this.#serve();
  };
}

/**
 * Number of deltas by which a reader may be behind. A reader that is further behind loses the deltas of messages
 * that are recorded by now.
 */
const mostBehind = 10_000;

/**
 * E2: the deltas that one reader has not received yet. Each comes before the event that was next when the delta was
 * put.
 */
class ComingDeltas {
  #coming: { readonly delta: Delta; readonly next: number }[] = [];
  #place = 0;

  add(delta: Delta, next: number): void {
    this.#coming.push({ delta, next });
    if (this.#coming.length - this.#place > mostBehind)
      this.#coming = this.#coming.slice(this.#place).filter((each) => each.next === next);
    else if (this.#place > mostBehind) this.#coming = this.#coming.slice(this.#place);
    else return;
    this.#place = 0;
  }

  before(seq: number): Delta | undefined {
    const first = this.#coming[this.#place];
    if (first === undefined || first.next > seq) return undefined;
    this.#place++;
    return first.delta;
  }
}
