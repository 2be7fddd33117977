import type { Commit, Event, Fault, RunId } from "../../../../kernel/index.ts";
import { objectArray } from "../../../process/object-array.ts";
import { type CommitRows, missing } from "../rows/commit-rows.ts";
import type { CommitRow } from "../db/commit-row.ts";
import type { DeltaBoard } from "./delta-board.ts";
import { isBusy, sqliteFault } from "../db/sqlite-fault.ts";
import type { RunKey } from "../db/run-row.ts";
import type { Tables } from "../db/tables.ts";

/** So many of the newest events are kept for those who tail; who is further behind reads the file. */
const mostRecent = 1_024;

/** Told of the events of a commit, if it has any; of a delta with none, and with nothing of all else. */
export type Watcher = (events?: readonly Event[]) => void;

/** What this process shows of one run to those who tail it: read once, however many they are. */
export class RunFeed {
  readonly run: RunKey;
  /** Of the next commit. */
  number: number;
  /** The run was deleted: there is nothing more to come. */
  isGone = false;
  /** It could not be read on: those who tail are told. */
  fault: Fault | undefined;
  readonly bells = new Set<Watcher>();
  #recent: Event[];
  #end: number;
  #isOver: boolean;

  /** `recent`: the last events before that end, some of them if there are any. */
  constructor(run: RunKey, end: { readonly number: number; readonly seq: number }, recent: readonly Event[]) {
    this.run = run;
    this.number = end.number;
    this.#end = end.seq;
    this.#recent = [...recent];
    this.#isOver = endsRun(recent);
  }

  /** The seq of the next event. */
  get end(): number {
    return this.#end;
  }

  /** The seq of the oldest event kept. */
  get oldest(): number {
    return this.#end - this.#recent.length;
  }

  /** The last event so far ends the run. */
  get isOver(): boolean {
    return this.#isOver;
  }

  from(seq: number): readonly Event[] {
    return this.#recent.slice(seq - this.oldest);
  }

  /** The next commit. */
  add(events: readonly Event[]): void {
    this.number++;
    if (events.length === 0) return;
    this.#end += events.length;
    this.#isOver = endsRun(events);
    for (const event of events) this.#recent.push(event);
    if (this.#recent.length > 2 * mostRecent) this.#recent = this.#recent.slice(-mostRecent);
  }

  ring(events?: readonly Event[]): void {
    for (const tell of this.bells) tell(events);
  }
}

function endsRun(events: readonly Event[]): boolean {
  return events.at(-1)?.type === "run_end";
}

/** The feeds of the runs that are tailed in this process. */
export class RunFeeds {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #deltas: DeltaBoard;
  readonly #feeds = new Map<RunId, RunFeed>();
  /** Begun and not joined yet. */
  #begun = objectArray<RunFeed>();

  constructor(tables: Tables, rows: CommitRows, deltas: DeltaBoard) {
    this.#tables = tables;
    this.#rows = rows;
    this.#deltas = deltas;
  }

  /** Of a run that this process has just created and works on: kept for a moment, since whoever created it is about to tail it. */
  begin(run: RunKey, { events = [] }: Commit): void {
    const feed = new RunFeed(run, { number: 1, seq: events.length }, events);
    this.#feeds.set(run.runId, feed);
    if (this.#begun.push(feed) === 1) setImmediate(this.#endBeginnings);
  }

  readonly #endBeginnings = (): void => {
    const begun = this.#begun;
    this.#begun = objectArray();
    for (const feed of begun) this.#dropUnwatched(feed);
  };

  /** To be called where a read may fail and be tried again. */
  join(runId: RunId, bell: Watcher): RunFeed {
    const feed = this.#feeds.get(runId) ?? this.#open(runId);
    this.#feeds.set(runId, feed);
    feed.bells.add(bell);
    return feed;
  }

  leave(feed: RunFeed, bell: Watcher): void {
    feed.bells.delete(bell);
    this.#dropUnwatched(feed);
  }

  #dropUnwatched(feed: RunFeed): void {
    const { runId } = feed.run;
    if (feed.bells.size > 0 || this.#feeds.get(runId) !== feed) return;
    this.#feeds.delete(runId);
    if (!this.#tables.owned.has(runId)) this.#deltas.forget(runId);
  }

  /** A commit of this process. */
  add(runId: RunId, { number, events = [] }: Commit): void {
    const feed = this.#feeds.get(runId);
    if (feed === undefined) return;
    if (number === feed.number) {
      feed.add(events);
      if (events.length > 0) feed.ring(events);
      return;
    }
    this.#catchUp(feed);
    feed.ring();
  }

  /** A delta of this process. */
  ring(runId: RunId): void {
    this.#feeds.get(runId)?.ring([]);
  }

  /** The run is gone. */
  drop(runId: RunId): void {
    const feed = this.#feeds.get(runId);
    if (feed === undefined) return;
    this.#feeds.delete(runId);
    feed.isGone = true;
    feed.ring();
  }

  /** Another process wrote something. False: the file was locked, and some are behind. */
  catchUp(): boolean {
    let isDone = true;
    for (const feed of this.#feeds.values()) {
      const found = this.#catchUp(feed);
      if (found === "new") feed.ring();
      if (found === "busy") isDone = false;
    }
    return isDone;
  }

  close(): void {
    for (const feed of this.#feeds.values()) {
      feed.fault ??= this.#tables.closed();
      feed.ring();
    }
    this.#feeds.clear();
  }

  #open(runId: RunId): RunFeed {
    return this.#tables.database.transaction("DEFERRED", () => {
      const run = this.#tables.run(runId);
      const last = this.#rows.last(run);
      this.#deltas.readNow(run);
      if (last === undefined) return new RunFeed(run, { number: 0, seq: 0 }, []);
      const end = { number: last.number + 1, seq: last.nextEvent };
      return new RunFeed(run, end, this.#lastEvents(run, last));
    });
  }

  /** Of the last commit that has any. */
  #lastEvents(run: RunKey, last: CommitRow): readonly Event[] {
    const events = this.#rows.events(run, last);
    if (events.length > 0 || last.nextEvent === 0) return events;
    const teller = this.#rows.row(run, this.#rows.numberOf(run, last.nextEvent - 1));
    return teller === undefined ? [] : this.#rows.events(run, teller);
  }

  #catchUp(feed: RunFeed): "new" | "nothing" | "busy" {
    try {
      const isNew = this.#tables.database.transaction("DEFERRED", () => this.#readOn(feed));
      return isNew ? "new" : "nothing";
    } catch (error) {
      if (isBusy(error)) return "busy";
      feed.fault = sqliteFault(error, this.#tables.database.path);
      return "new";
    }
  }

  /** Events and deltas are read as of one moment: no piece of a message comes before its start. */
  #readOn(feed: RunFeed): boolean {
    const { run } = feed;
    if (this.#tables.find(run.runId)?.id !== run.id) {
      this.drop(run.runId);
      return false;
    }
    const end = this.#rows.endNumber(run);
    const before = feed.number;
    while (feed.number < end) {
      const rows = this.#rows.page(run, feed.number, end);
      if (rows[0]?.number !== feed.number) throw missing(run, feed.number);
      for (const row of rows) {
        const events = this.#rows.events(run, row);
        this.#deltas.recorded(run.runId, events);
        feed.add(events);
      }
    }
    return this.#deltas.readNow(run) || feed.number > before;
  }
}
