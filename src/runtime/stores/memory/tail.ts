import {
  deepFreeze,
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
 * What one watcher sees of a run as it happens. By hand, not a generator: text comes in thousands of pieces, and each would wait
 * three times over.
 */
export class MemoryTail implements AsyncIterableIterator<Event | Delta, undefined>, RunWatcher, Guest {
  readonly #tables: Tables;
  readonly #row: RunRow;
  readonly #filter: TailFilter;
  readonly #signal: TailOptions["signal"];
  readonly #life: TailOptions["life"];
  /** Who waits, and those who asked while somebody did: a reader in a loop is alone. */
  #waiting: Answer | undefined;
  #behind: Answer[] | undefined;
  #deltas: ComingDeltas | undefined;
  #seq: number;
  #hasBegun = false;
  /** Everything there is has been shown: until something comes, there is nothing to look for. */
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

  /** A watcher that leaves never stops a run (E3). */
  return(): Promise<Shown> {
    this.#end();
    return Promise.resolve(over);
  }

  seeCommit(events: readonly Event[]): void {
    if (this.#filter.wakesFor(events)) this.#serve();
    // Not one of them is to be shown, so who is through stays so.
    else if (this.#isThrough) this.#seq = this.#row.events.length;
  }

  seeDelta(delta: Delta): void {
    if (!this.#filter.showsDeltas) return;
    // Who waits has seen everything before it.
    if (this.#waiting !== undefined) this.#answer({ value: delta, done: false });
    else this.#put(delta);
  }

  seeRemoval(): void {
    this.#end();
  }

  /** Who is not through yet is shown the rest first. */
  lifeEnded(fault: Fault): void {
    if (this.#waiting === undefined) return;
    this.#answer(Promise.reject(fault));
    this.#end();
  }

  #refuse(fault: Fault): Promise<never> {
    this.#end();
    return Promise.reject(fault);
  }

  /** Nobody watches before the first thing is asked for. */
  #begin(): void {
    this.#hasBegun = true;
    const row = this.#row;
    if (this.#isOver || this.#signal?.aborted === true || this.#tables.runs.get(row.record.runId) !== row) {
      this.#end();
      return;
    }
    // E2: what was there before the watcher.
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

  /** E1: nobody who is handed an event can change it for the others. `undefined`: there is nothing yet. */
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
    if (events.at(-1)?.type === "run_end") {
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

/** Who is this far behind is shown no more of what was recorded since. */
const mostBehind = 10_000;

/** E2: what one watcher is yet to be shown, each before the event that was next when it came. */
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
