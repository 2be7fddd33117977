import {
  Fault,
  type Delta,
  type Event,
  type EventLog,
  type Guest,
  type Lease,
  type LogVerdict,
  type RunId,
  type TailOptions,
} from "../../../kernel/index.ts";
import { WakeFlag } from "../wake-flag.ts";
import { TailFilter } from "../tail-filter.ts";
import type { Position } from "../codec/commit-draft.ts";
import { hashesIn } from "../codec/large-values.ts";
import type { CommitRow } from "../codec/commit-row.ts";
import type { StoreWatch } from "./db/store-watch.ts";
import type { CommitRows } from "./rows/commit-rows.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";
import type { LogCheck } from "./rows/log-check.ts";
import type { RunFeed, Watcher } from "../run-feed.ts";
import type { RunFeeds } from "./tail/run-feed.ts";
import type { RunKey } from "../codec/stored-run.ts";
import type { Tables } from "./db/tables.ts";

export interface PostgresEventLogOptions {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly check: LogCheck;
  readonly feeds: RunFeeds;
  readonly deltas: DeltaBoard;
  readonly watch: StoreWatch;
}

/** The position of one reader. */
interface TailPlace {
  /** Seq of the next event, whether the filter shows it or not. */
  next: number;
}

interface Tail {
  readonly filter: TailFilter;
  readonly place: TailPlace;
  readonly signal: TailOptions["signal"];
  readonly life: TailOptions["life"];
}

interface JoinedFeed {
  readonly feed: RunFeed;
  /** Rings when there may be something to read. */
  readonly bell: WakeFlag;
  readonly leave: () => void;
}

/** Maximum length of the text that `keep` holds in memory, in UTF-16 code units. */
const mostKept = 64 * 1_024 * 1_024;

function unitsOf({ body, refs, contents }: CommitRow): number {
  let units = body.length;
  if (refs !== null) for (const hash of hashesIn(refs)) units += contents?.get(hash)?.length ?? 0;
  return units;
}

function tooLarge(runId: RunId): never {
  throw new Fault(
    "too_large",
    `the history of run ${runId} is larger than ${mostKept} characters: read run.events() instead`,
    { details: { runId } },
  );
}

export class PostgresEventLog implements EventLog {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #check: LogCheck;
  readonly #feeds: RunFeeds;
  readonly #deltas: DeltaBoard;
  readonly #watch: StoreWatch;

  constructor({ tables, rows, check, feeds, deltas, watch }: PostgresEventLogOptions) {
    this.#tables = tables;
    this.#rows = rows;
    this.#check = check;
    this.#feeds = feeds;
    this.#deltas = deltas;
    this.#watch = watch;
  }

  async *read(runId: RunId, fromSeq = 0): AsyncIterable<Event> {
    const { run, position } = await this.#position(runId);
    yield* this.#between(run, fromSeq, position.seq, position.number);
  }

  async keep(runId: RunId): Promise<() => readonly Event[]> {
    const { run, position } = await this.#position(runId);
    const kept: CommitRow[] = [];
    let units = 0;
    for await (const page of this.#rows.pages(run, 0, position.number)) {
      for (const row of page) units += unitsOf(row);
      if (units > mostKept) return () => tooLarge(runId);
      kept.push(...page);
    }
    return () => kept.flatMap((row) => this.#rows.events(run, row));
  }

  /** A single generator from the feed to the reader: each nested generator would add three promises per item. */
  async *tail(runId: RunId, options: TailOptions = {}): AsyncIterable<Event | Delta> {
    const { fromSeq = 0, types, signal, life } = options;
    const isStopped = (): boolean => signal?.aborted === true;
    if (isStopped()) return;
    const filter = new TailFilter(types);
    const place: TailPlace = { next: fromSeq };
    const { feed, bell, leave } = await this.#join(runId, { filter, place, signal, life });
    try {
      let shown = 0;
      for (;;) {
        // Cleared before reading, so that a change while the consumer is busy rings again.
        bell.clear();
        while (place.next < feed.end && !feed.isGone) {
          if (place.next > fromSeq && isStopped()) return;
          // Read again each time: the feed may drop events while the consumer is busy.
          const { oldest } = feed;
          if (place.next < oldest) {
            for await (const event of this.#between(feed.run, place.next, oldest, feed.number))
              if (filter.shows(event)) yield event;
            place.next = oldest;
            continue;
          }
          for (const event of feed.from(place.next)) {
            place.next = event.seq + 1;
            if (filter.shows(event)) yield event;
          }
        }
        if (feed.isOver || feed.isGone || isStopped()) return;
        const fault = life?.fault ?? feed.fault;
        if (fault !== undefined) throw fault;
        if (filter.showsDeltas) {
          for (const { id, delta } of this.#deltas.after(feed.run.runId, shown)) {
            shown = id;
            yield delta;
          }
        }
        await bell.raised();
      }
    } finally {
      leave();
    }
  }

  async #join(runId: RunId, { filter, place, signal, life }: Tail): Promise<JoinedFeed> {
    const bell = new WakeFlag();
    const watcher: Watcher = (events) => {
      if (events === undefined || filter.wakesFor(events)) bell.raise();
      // Keeps the position current: a reader that is never woken would otherwise fall behind the feed and have to read
      // the file.
      else if (events[0]?.seq === place.next) place.next += events.length;
    };
    // Before reading, so that writes during the read are noticed.
    const unwatch = this.#watch.hold();
    signal?.addEventListener("abort", bell.raise);
    const guest: Guest = { lifeEnded: () => bell.raise() };
    life?.join(guest);
    const forget = (): void => {
      life?.leave(guest);
      signal?.removeEventListener("abort", bell.raise);
      unwatch();
    };
    try {
      const feed = await this.#feeds.join(runId, watcher);
      const leave = (): void => {
        this.#feeds.leave(feed, watcher);
        forget();
      };
      return { feed, bell, leave };
    } catch (error) {
      forget();
      throw error;
    }
  }

  async lastSeq(runId: RunId): Promise<number> {
    // Only the owner appends events: if this store owns the run, its position is current.
    const known = this.#tables.owned.get(runId)?.position;
    return (known ?? (await this.#position(runId)).position).seq - 1;
  }

  putDelta(lease: Lease, delta: Delta): void {
    if (this.#deltas.put(lease, delta)) this.#feeds.ring(lease.runId);
  }

  async verify(runId: RunId, head?: string): Promise<LogVerdict> {
    return (await this.#check.check(runId, head)).verdict;
  }

  #position(runId: RunId): Promise<{ readonly run: RunKey; readonly position: Position }> {
    return this.#tables.database.read(async (queries) => {
      const run = await this.#tables.run(queries, runId);
      return { run, position: await this.#rows.position(queries, run) };
    });
  }

  /** Yields the events from `fromSeq` up to, but not including, `end`, which are in the commits before `last`. */
  async *#between(known: RunKey, fromSeq: number, end: number, last: number): AsyncIterable<Event> {
    if (fromSeq >= end) return;
    const { run, first } = await this.#tables.database.read(async (queries) => ({
      // Retention may have erased text meanwhile.
      run: (await this.#tables.find(queries, known.runId)) ?? known,
      first: fromSeq === 0 ? 0 : await this.#rows.numberOf(queries, known, fromSeq, last),
    }));
    for await (const page of this.#rows.pages(run, first, last))
      for (const row of page)
        for (const event of this.#rows.events(run, row)) {
          if (event.seq >= end) return;
          if (event.seq >= fromSeq) yield event;
        }
  }
}
