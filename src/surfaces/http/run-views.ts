import type { Event, RunHandle, RunId } from "../../kernel/index.ts";
import { RunHistory } from "../view/run-history.ts";
import { RunPast } from "../view/run-past.ts";
import type { RunView } from "../view/run-view.ts";
import { RecentValues } from "./recent-values.ts";

/** Number of runs whose views are kept. */
const mostRuns = 8;

interface KnownRun {
  readonly history: RunHistory;
  readonly past: RunPast;
  /** Settles when the read in progress has ended. */
  reading: Promise<void>;
}

/**
 * The views of the runs that were requested last. The first view of a run takes O(events), a later view takes O(new
 * events), and a view of an earlier position takes less than 1,000 events.
 */
export class RunViews {
  readonly #runs = new RecentValues<RunId, KnownRun>(mostRuns);

  /** The run at its newest event. */
  async latest(run: RunHandle): Promise<RunView> {
    return (await this.#upToDate(run)).history.latest();
  }

  /** The run as it was after the event `seq`. */
  async at(run: RunHandle, seq: number): Promise<RunView> {
    return (await this.#upToDate(run)).history.at(seq);
  }

  /**
   * Returns the steps of the run and the data for its timeline, up to the newest event. Both change when the run is
   * read again.
   */
  async past(run: RunHandle): Promise<RunPast> {
    return (await this.#upToDate(run)).past;
  }

  async #upToDate(run: RunHandle): Promise<KnownRun> {
    const known = this.#known(run);
    // One read after the other: a history takes each event once, in order.
    known.reading = known.reading.catch(() => undefined).then(() => readNew(run, known));
    await known.reading;
    return known;
  }

  /** Returns the cached run. When the cache is full, the run whose last request is oldest is removed. */
  #known(run: RunHandle): KnownRun {
    const { runId } = run;
    const known = this.#runs.get(runId) ?? {
      history: new RunHistory((from, to) => eventsBetween(run, from, to)),
      past: new RunPast(),
      reading: Promise.resolve(),
    };
    this.#runs.set(runId, known);
    return known;
  }
}

async function readNew(run: RunHandle, { history, past }: KnownRun): Promise<void> {
  for await (const event of run.events({ fromSeq: history.seq + 1, follow: false })) {
    if (!("seq" in event)) continue;
    history.add(event);
    past.add(event, history.after);
  }
}

async function* eventsBetween(run: RunHandle, from: number, to: number): AsyncIterable<Event> {
  for await (const event of run.events({ fromSeq: from, follow: false })) {
    if (!("seq" in event)) continue;
    if (event.seq > to) return;
    yield event;
  }
}
