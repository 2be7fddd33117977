import { Fault, type Event } from "../../kernel/index.ts";
import { RunFold } from "./run-fold.ts";
import type { RunView } from "./run-view.ts";

/** Number of events between two kept views. Returning to a position folds fewer events than this. */
const eventsPerView = 1_000;

/** Reads the events of the run with `fromSeq <= seq <= toSeq`, in order. */
export type ReadEvents = (fromSeq: number, toSeq: number) => AsyncIterable<Event>;

/**
 * The view of a run at its newest event and at any earlier one. It keeps no events: a return to an earlier position starts
 * from the nearest kept view before it and reads at most 1,000 events.
 */
export class RunHistory {
  readonly #read: ReadEvents;
  readonly #fold = new RunFold();
  /** The views after 1,000, 2,000, ... events. */
  readonly #kept: RunView[] = [];

  constructor(read: ReadEvents) {
    this.#read = read;
  }

  /** Number of the newest event, or -1. */
  get seq(): number {
    return this.#fold.seq;
  }

  /** H1: number of seats that are taken at the newest event. */
  get seats(): number {
    return this.#fold.seats;
  }

  /** Adds the next event of the log. Ignores an event that was added before; throws `invalid_argument` for a gap. */
  add(event: Event): void {
    if (event.seq <= this.seq) return;
    if (event.seq !== this.seq + 1)
      throw new Fault(
        "invalid_argument",
        `invalid event ${event.seq}: expected event ${this.seq + 1}; read the log from there`,
      );
    this.#fold.add(event);
    if ((event.seq + 1) % eventsPerView === 0) this.#kept.push(this.#fold.view());
  }

  /** The run at its newest event. */
  latest(): RunView {
    return this.#fold.view();
  }

  /** The run as it was after the event `seq`. Later events change nothing in the returned view. */
  async at(seq: number): Promise<RunView> {
    if (!Number.isSafeInteger(seq) || seq < 0)
      throw new Fault("invalid_argument", `invalid event number ${seq}: expected an integer from 0`);
    if (seq >= this.seq) return this.latest();
    const fold = new RunFold(this.#kept[Math.floor((seq + 1) / eventsPerView) - 1]);
    if (fold.seq < seq) for await (const event of this.#read(fold.seq + 1, seq)) fold.add(event);
    return fold.view();
  }
}
