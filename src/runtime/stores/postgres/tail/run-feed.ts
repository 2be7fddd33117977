import type { Commit, Event, RunId } from "../../../../kernel/index.ts";
import type { CommitRow } from "../../codec/commit-row.ts";
import { RunFeed, type Watcher } from "../../run-feed.ts";
import { postgresFault } from "../db/postgres-fault.ts";
import type { Queries } from "../db/queries.ts";
import type { Tables } from "../db/tables.ts";
import { missing, type CommitRows } from "../rows/commit-rows.ts";
import type { DeltaRow } from "../../sql/delta-memory.ts";
import type { DeltaBoard } from "./delta-board.ts";

/** The changes of a run since its feed was last read. */
interface News {
  readonly isGone: boolean;
  readonly rows: readonly CommitRow[];
  readonly deltas: readonly DeltaRow[];
}

/** A feed that is being read from the tables. */
interface Opening {
  readonly opened: Promise<void>;
  /** Whether this process wrote a commit in the meantime, which the read may not contain. */
  isBehind: boolean;
}

const findNews = `SELECT runs.id, EXISTS (SELECT 1 FROM {commits} WHERE run = runs.id AND number >= wanted.next) OR
    EXISTS (SELECT 1 FROM {deltas} AS deltas WHERE deltas.run = runs.id AND deltas.id > wanted.delta) AS "isNew"
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS wanted (id, next, delta) JOIN {runs} AS runs ON runs.id = wanted.id
  WHERE runs.run_id IS NOT NULL`;

/** The feeds of all runs that have a reader in this process. */
export class RunFeeds {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #deltas: DeltaBoard;
  readonly #feeds = new Map<RunId, RunFeed>();
  readonly #opening = new Map<RunId, Opening>();
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
  begin(run: RunFeed["run"], { events = [] }: Commit): void {
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

  /** Joins the feed, and reads the tables if this is its first reader. */
  async join(runId: RunId, bell: Watcher): Promise<RunFeed> {
    for (;;) {
      const feed = this.#feeds.get(runId);
      if (feed !== undefined) {
        feed.bells.add(bell);
        return feed;
      }
      await this.#open(runId);
    }
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
    const opening = this.#opening.get(runId);
    if (opening !== undefined) opening.isBehind = true;
    if (feed === undefined || number < feed.number) return;
    if (number > feed.number) {
      void this.#catchUp(feed);
      return;
    }
    feed.add(events);
    if (events.length > 0) feed.ring(events);
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

  /** Reads what other processes wrote. One query finds the runs that have changed. */
  async catchUp(): Promise<void> {
    const feeds = [...this.#feeds.values()].filter(({ run }) => !this.#tables.owned.has(run.runId));
    if (feeds.length === 0) return;
    const found = await this.#tables.database.statements.all<{
      readonly id: number;
      readonly isNew: boolean;
    }>(
      findNews,
      feeds.map(({ run }) => run.id),
      feeds.map(({ number }) => number),
      feeds.map(({ run }) => this.#deltas.lastRowOf(run.runId)),
    );
    const isNew = new Map(found.map((row) => [row.id, row.isNew]));
    for (const feed of feeds) if (isNew.get(feed.run.id) !== false) await this.#catchUp(feed);
  }

  close(): void {
    for (const feed of this.#feeds.values()) {
      feed.fault ??= this.#tables.database.closed();
      feed.ring();
    }
    this.#feeds.clear();
  }

  /** Opens the feed of a run. Several readers that come at the same time share one read. */
  #open(runId: RunId): Promise<void> {
    const known = this.#opening.get(runId);
    if (known !== undefined) return known.opened;
    const opening: Opening = { opened: this.#opened(runId), isBehind: false };
    this.#opening.set(runId, opening);
    return opening.opened;
  }

  /**
   * Reads the feed of a run from the tables. Commits that this process writes during the read are read afterwards,
   * because `catchUp` skips the runs of this process.
   */
  async #opened(runId: RunId): Promise<void> {
    try {
      const feed = await this.#tables.database.read((queries) => this.#read(queries, runId));
      if (this.#feeds.has(runId)) return;
      this.#feeds.set(runId, feed);
      if (this.#opening.get(runId)?.isBehind === true) void this.#catchUp(feed);
    } finally {
      this.#opening.delete(runId);
    }
  }

  async #read(queries: Queries, runId: RunId): Promise<RunFeed> {
    const run = await queries.do(this.#tables.run(runId));
    const last = await queries.do(this.#rows.last(run));
    this.#deltas.add(run, await this.#deltas.rowsOf(queries, run));
    if (last === undefined) return new RunFeed(run, { number: 0, seq: 0 }, []);
    const end = { number: last.number + 1, seq: last.nextEvent };
    return new RunFeed(run, end, await this.#lastEvents(queries, run, last));
  }

  /** Returns the events of the last commit that has events. */
  async #lastEvents(queries: Queries, run: RunFeed["run"], last: CommitRow): Promise<readonly Event[]> {
    const events = this.#rows.events(run, last);
    if (events.length > 0 || last.nextEvent === 0) return events;
    const number = await queries.do(this.#rows.numberOf(run, last.nextEvent - 1, last.number));
    const teller = await queries.do(this.#rows.row(run, number));
    return teller === undefined ? [] : this.#rows.events(run, teller);
  }

  async #catchUp(feed: RunFeed): Promise<void> {
    const { run } = feed;
    try {
      let news: News;
      do {
        const from = feed.number;
        news = await this.#tables.database.read((queries) => this.#news(queries, feed, from));
        if (this.#feeds.get(run.runId) !== feed) return;
        if (news.isGone) this.drop(run.runId);
        else if (this.#show(feed, news)) feed.ring();
      } while (news.rows.length > 0);
    } catch (error) {
      feed.fault = postgresFault(error, this.#tables.database.address);
      feed.ring();
    }
  }

  /** Reads events and deltas in one transaction, so that no delta comes before the start of its message. */
  async #news(queries: Queries, { run }: RunFeed, from: number): Promise<News> {
    const now = await queries.do(this.#tables.find(run.runId));
    if (now?.id !== run.id) return { isGone: true, rows: [], deltas: [] };
    const rows = await queries.do(this.#rows.page(run, from, Number.MAX_SAFE_INTEGER));
    return { isGone: false, rows, deltas: await this.#deltas.rowsOf(queries, run) };
  }

  /**
   * Shows changes to readers. Returns whether anything was new. A commit that this process has added in the
   * meantime is not added again.
   */
  #show(feed: RunFeed, { rows, deltas }: News): boolean {
    const { run, number: before } = feed;
    for (const row of rows) {
      if (row.number < feed.number) continue;
      if (row.number > feed.number) throw missing(run, feed.number);
      const events = this.#rows.events(run, row);
      this.#deltas.recorded(run.runId, events);
      feed.add(events);
    }
    return this.#deltas.add(run, deltas) || feed.number > before;
  }
}
