import { Fault, type Event } from "../../kernel/index.ts";
import { RunFold, type AfterEvent } from "./run-fold.ts";
import type { RunView } from "./run-view.ts";

/**
 * Number of events between two stored views. To return to an earlier position, fewer events than this are
 * processed.
 */
const eventsPerView = 1_000;

/** Reads the events of the run with `fromSeq <= seq <= toSeq`, in order. */
export type ReadEvents = (fromSeq: number, toSeq: number) => AsyncIterable<Event>;

export interface RunHistoryOptions {
  /** The view from which the history continues. If absent, the history starts before the first event. */
  readonly from?: RunView;
  /**
   * Reads the view after the event `seq`, if the history no longer contains it. If absent, the history keeps all
   * views.
   */
  readonly readView?: (seq: number) => Promise<RunView>;
}

/** Maximum number of views that a history keeps if `readView` can read others. */
const mostViews = 16;

/**
 * The view of a run at its newest event and at any earlier event. The history keeps no events. To return to an
 * earlier position, it starts from the nearest earlier view, one of which is stored after every 1,000 events, and
 * reads fewer than 1,000 events.
 */
export class RunHistory {
  readonly #read: ReadEvents;
  readonly #readView: RunHistoryOptions["readView"];
  readonly #fold: RunFold;
  /**
   * The views after 1,000, 2,000, … events, by their number: 1, 2, … When there are too many, the view that was
   * added first is removed.
   */
  readonly #kept = new Map<number, RunView>();

  constructor(read: ReadEvents, { from, readView }: RunHistoryOptions = {}) {
    this.#read = read;
    this.#readView = readView;
    this.#fold = new RunFold(from);
  }

  /** Number of the newest event, or -1. */
  get seq(): number {
    return this.#fold.seq;
  }

  /** What the newest event left behind. */
  get after(): AfterEvent {
    return this.#fold.after;
  }

  /** Number of views that the history keeps. */
  get keptViews(): number {
    return this.#kept.size;
  }

  /**
   * Adds the next event of the log. Ignores an event that was already added. Throws `invalid_argument` if an event
   * before it is missing.
   */
  add(event: Event): void {
    if (event.seq <= this.seq) return;
    if (event.seq !== this.seq + 1)
      throw new Fault(
        "invalid_argument",
        `invalid event ${event.seq}: expected event ${this.seq + 1}; read the log from there`,
      );
    this.#fold.add(event);
    const events = event.seq + 1;
    if (events % eventsPerView === 0) this.#keep(events / eventsPerView, this.#fold.view());
  }

  /** The run at its newest event. */
  latest(): RunView {
    return this.#fold.view();
  }

  /** Returns the state of the run after the event `seq`. Later events do not change the returned view. */
  async at(seq: number): Promise<RunView> {
    if (!Number.isSafeInteger(seq) || seq < 0)
      throw new Fault("invalid_argument", `invalid event number ${seq}: expected an integer from 0`);
    if (seq >= this.seq) return this.latest();
    const fold = new RunFold(await this.#viewBefore(Math.floor((seq + 1) / eventsPerView)));
    if (fold.seq < seq) for await (const event of this.#read(fold.seq + 1, seq)) fold.add(event);
    return fold.view();
  }

  /** The view after so many thousand events. */
  async #viewBefore(number: number): Promise<RunView | undefined> {
    const known = this.#kept.get(number);
    if (known !== undefined || number === 0 || this.#readView === undefined) return known;
    const view = await this.#readView(number * eventsPerView - 1);
    this.#keep(number, view);
    return view;
  }

  #keep(number: number, view: RunView): void {
    this.#kept.set(number, view);
    const [first] = this.#kept.keys();
    if (this.#readView !== undefined && this.#kept.size > mostViews && first !== undefined)
      this.#kept.delete(first);
  }
}
