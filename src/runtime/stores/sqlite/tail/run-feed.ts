import type { Commit, Event, MaybePromise, RunId } from "../../../../kernel/index.ts";
import { type CommitRows, missing } from "../rows/commit-rows.ts";
import type { CommitRow } from "../../codec/commit-row.ts";
import { RunFeed, type Watcher } from "../../run-feed.ts";
import type { DeltaBoard } from "./delta-board.ts";
import { isBusy, sqliteFault } from "../db/sqlite-fault.ts";
import type { RunKey } from "../../codec/stored-run.ts";
import type { Tables } from "../db/tables.ts";

/** The feeds of all runs that have a reader in this process. */
export class RunFeeds {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #deltas: DeltaBoard;
  readonly #feeds = new Map<RunId, RunFeed>();
  /** Feeds without a reader that are kept until the next turn of the event loop. */
  #lingering: RunFeed[] = [];

  constructor(tables: Tables, rows: CommitRows, deltas: DeltaBoard) {
    this.#tables = tables;
    this.#rows = rows;
    this.#deltas = deltas;
  }

  /**
   * Starts the feed of a run that this process has just created and owns. It is kept for one turn of the event loop,
   * because the creator usually reads the events next.
   */
  begin(run: RunKey, { events = [] }: Commit): void {
    const feed = new RunFeed(run, { number: 1, seq: events.length }, events);
    this.#feeds.set(run.runId, feed);
    this.#linger(feed);
  }

  /** Returns the feed of a run if it is in memory. */
  find(runId: RunId): RunFeed | undefined {
    return this.#feeds.get(runId);
  }

  #linger(feed: RunFeed): void {
    if (this.#lingering.push(feed) === 1) setImmediate(this.#endLingering);
  }

  readonly #endLingering = (): void => {
    const lingering = this.#lingering;
    this.#lingering = [];
    for (const feed of lingering) this.#dropUnwatched(feed);
  };

  /** Joins the feed, and reads the file if this is its first reader. */
  join(runId: RunId, bell: Watcher): MaybePromise<RunFeed> {
    return this.#tables.read(() => {
      const feed = this.#feeds.get(runId) ?? this.#open(runId);
      this.#feeds.set(runId, feed);
      feed.bells.add(bell);
      return feed;
    });
  }

  /**
   * Leaves the feed. The feed of a run that has ended is kept for one turn of the event loop, because its reader
   * usually keeps the events next.
   */
  leave(feed: RunFeed, bell: Watcher): void {
    feed.bells.delete(bell);
    if (feed.isOver) this.#linger(feed);
    else this.#dropUnwatched(feed);
  }

  #dropUnwatched(feed: RunFeed): void {
    const { runId } = feed.run;
    if (feed.bells.size > 0 || this.#feeds.get(runId) !== feed) return;
    this.#feeds.delete(runId);
    if (!this.#tables.owned.has(runId)) this.#deltas.forget(runId);
  }

  /** Adds a commit that this process wrote. */
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

  /** Wakes the readers for a delta of this process. */
  ring(runId: RunId): void {
    this.#feeds.get(runId)?.ring([]);
  }

  /** Ends the feed of a deleted run. */
  drop(runId: RunId): void {
    const feed = this.#feeds.get(runId);
    if (feed === undefined) return;
    this.#feeds.delete(runId);
    feed.isGone = true;
    feed.ring();
  }

  /** Reads what other processes wrote. Returns `false` if the file was locked and a feed is behind. */
  catchUp(): boolean {
    let isDone = true;
    for (const feed of this.#feeds.values()) {
      const found = this.#catchUp(feed);
      if (found === "new") feed.ring();
      if (found === "busy") isDone = false;
    }
    return isDone;
  }

  /** Ends all feeds. Readers that wait get the fault. */
  close(fault = this.#tables.closed()): void {
    for (const feed of this.#feeds.values()) {
      feed.fault ??= fault;
      feed.ring();
    }
    this.#feeds.clear();
  }

  #open(runId: RunId): RunFeed {
    return this.#tables.database.transaction("DEFERRED", () => {
      const run = this.#tables.runNow(runId);
      const last = this.#rows.last(run);
      this.#deltas.readNow(run);
      if (last === undefined) return new RunFeed(run, { number: 0, seq: 0 }, []);
      const end = { number: last.number + 1, seq: last.nextEvent };
      return new RunFeed(run, end, this.#lastEvents(run, last));
    });
  }

  /** Returns the events of the last commit that has events. */
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

  /** Reads events and deltas in one transaction, so that no delta comes before the start of its message. */
  #readOn(feed: RunFeed): boolean {
    const { run } = feed;
    if (this.#tables.findNow(run.runId)?.id !== run.id) {
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
