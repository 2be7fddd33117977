import { deepFreeze, type Delta, type Event, type TailOptions } from "../../../kernel/index.ts";
import { TailFilter } from "../tail-filter.ts";
import type { RunRow } from "./tables.ts";

type Shown = IteratorResult<Event | Delta, undefined>;

const over: Shown = Object.freeze({ value: undefined, done: true });

export interface MemoryTailOptions extends TailOptions {
  /** Whether the run is still there. */
  readonly stands: (row: RunRow) => boolean;
}

/**
 * What one watcher sees of a run as it happens. By hand, not a generator: text comes in thousands of pieces, and each would wait
 * three times over.
 */
export class MemoryTail implements AsyncIterableIterator<Event | Delta, undefined> {
  readonly #row: RunRow;
  readonly #options: MemoryTailOptions;
  readonly #filter: TailFilter;
  readonly #waiting: ((shown: Shown) => void)[] = [];
  #deltas: ShownDeltas | undefined;
  #seq: number;
  #isOver = false;

  constructor(row: RunRow, options: MemoryTailOptions) {
    this.#row = row;
    this.#options = options;
    this.#filter = new TailFilter(options.types);
    this.#seq = options.fromSeq ?? 0;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Shown> {
    this.#begin();
    const shown = this.#waiting.length > 0 ? undefined : this.#take();
    if (shown !== undefined) return Promise.resolve(shown);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** A watcher that leaves never stops a run (E3). */
  return(): Promise<Shown> {
    this.#end();
    return Promise.resolve(over);
  }

  /** Nobody watches before the first thing is asked for. */
  #begin(): void {
    if (this.#deltas !== undefined) return;
    this.#deltas = new ShownDeltas(this.#filter.showsDeltas ? this.#row : undefined);
    this.#row.watchers = [...this.#row.watchers, this.#watch];
    this.#options.signal?.addEventListener("abort", this.#serve);
  }

  readonly #watch = (events?: readonly Event[], delta?: Delta): void => {
    if (delta !== undefined) {
      if (!this.#filter.showsDeltas) return;
      // Who waits has seen everything before it.
      const resolve = this.#waiting.shift();
      if (resolve === undefined) this.#deltas?.add(delta, this.#row.events.length);
      else resolve({ value: delta, done: false });
      return;
    }
    if (events !== undefined && !this.#filter.wakesFor(events)) return;
    this.#serve();
  };

  readonly #serve = (): void => {
    while (this.#waiting.length > 0) {
      const shown = this.#take();
      if (shown === undefined) return;
      this.#waiting.shift()?.(shown);
    }
  };

  /** E1: nobody who is handed an event can change it for the others. `undefined`: there is nothing yet. */
  #take(): Shown | undefined {
    const { signal, stands } = this.#options;
    const row = this.#row;
    if (this.#isOver) return over;
    if (signal?.aborted === true || !stands(row)) return this.#end();
    for (;;) {
      const delta = this.#deltas?.before(this.#seq);
      if (delta !== undefined) return { value: delta, done: false };
      if (this.#seq >= row.events.length) break;
      const event = row.events[this.#seq++];
      if (event !== undefined && this.#filter.shows(event)) return { value: deepFreeze(event), done: false };
    }
    return row.events.at(-1)?.type === "run_end" ? this.#end() : undefined;
  }

  #end(): Shown {
    this.#isOver = true;
    this.#row.watchers = this.#row.watchers.filter((each) => each !== this.#watch);
    this.#options.signal?.removeEventListener("abort", this.#serve);
    for (const resolve of this.#waiting.splice(0)) resolve(over);
    return over;
  }
}

/** Who is this far behind is shown no more of what was recorded since. */
const mostBehind = 10_000;

/** E2: what one watcher is yet to be shown, each before the event that was next when it came. */
class ShownDeltas {
  #coming: { readonly delta: Delta; readonly next: number }[];
  #place = 0;

  /** What was there before the watcher. */
  constructor(row: RunRow | undefined) {
    this.#coming = row?.deltas.map((delta) => ({ delta, next: row.events.length })) ?? [];
  }

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
