import { endsRun, type Event, type Fault } from "../../kernel/index.ts";
import type { RunKey } from "./codec/stored-run.ts";

/** Number of recent events kept in memory for readers. A reader that is further behind reads the file. */
const mostRecent = 1_024;

/**
 * Callback of a reader. It receives the events of a commit, an empty array for a delta, and `undefined` for any
 * other change.
 */
export type Watcher = (events?: readonly Event[]) => void;

/** The recent events of one run, shared by all readers of this process, so that the file is read only once. */
export class RunFeed {
  readonly run: RunKey;
  /** Number of the next commit. */
  number: number;
  /** Whether the run was deleted. */
  isGone = false;
  /** The error with which reading the file failed. Readers throw it. */
  fault: Fault | undefined;
  readonly bells = new Set<Watcher>();
  #recent: Event[];
  #end: number;
  #isOver: boolean;

  /** `recent` contains the last events before `end`, at least one if there are any. */
  constructor(run: RunKey, end: { readonly number: number; readonly seq: number }, recent: readonly Event[]) {
    this.run = run;
    this.number = end.number;
    this.#end = end.seq;
    this.#recent = [...recent];
    this.#isOver = endsRun(recent.at(-1));
  }

  /** Seq of the next event. */
  get end(): number {
    return this.#end;
  }

  /** Seq of the oldest event in memory. */
  get oldest(): number {
    return this.#end - this.#recent.length;
  }

  /** Whether the last event ends the run. */
  get isOver(): boolean {
    return this.#isOver;
  }

  from(seq: number): readonly Event[] {
    return this.#recent.slice(seq - this.oldest);
  }

  /** Adds the events of the next commit. */
  add(events: readonly Event[]): void {
    this.number++;
    if (events.length === 0) return;
    this.#end += events.length;
    this.#isOver = endsRun(events.at(-1));
    for (const event of events) this.#recent.push(event);
    if (this.#recent.length > 2 * mostRecent) this.#recent = this.#recent.slice(-mostRecent);
  }

  ring(events?: readonly Event[]): void {
    for (const tell of this.bells) tell(events);
  }
}
