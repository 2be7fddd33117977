import {
  andThen,
  Fault,
  type Delta,
  type Event,
  type EventLog,
  type Guest,
  type Lease,
  type LogVerdict,
  type MaybePromise,
  type RunId,
  type TailOptions,
} from "../../../kernel/index.ts";
import type { CommitRow } from "../codec/commit-row.ts";
import { hashesIn } from "../codec/large-values.ts";
import type { RunKey } from "../codec/stored-run.ts";
import type { RunFeed, Watcher } from "../run-feed.ts";
import { TailFilter } from "../tail-filter.ts";
import type { EntryCheck } from "./entry-check.ts";
import type { LogCheck } from "./log-check.ts";
import type { ShownDelta } from "./delta-memory.ts";

/** The end of the log of a run. */
interface LogEnd {
  readonly run: RunKey;
  /** Number of the next commit. */
  readonly number: number;
  /** Seq of the next event. */
  readonly seq: number;
}

/** Reads the commits of runs for `SqlEventLog`. */
export interface EventSource {
  /** Returns the end of a log. Rejects with `not_found` if the run does not exist. */
  end(runId: RunId): MaybePromise<LogEnd>;
  /**
   * Returns the number of the commit before `end` that contains the event with this sequence number. It reads the
   * run again, because retention may have erased text. If the run was deleted, it returns `run` itself.
   */
  start(
    run: RunKey,
    seq: number,
    end: number,
  ): MaybePromise<{ readonly run: RunKey; readonly first: number }>;
  /** Yields the commits from `first` up to, but not including, `end` that have events, one page at a time. */
  pages(run: RunKey, first: number, end: number): AsyncIterable<readonly CommitRow[]>;
  /** Returns the events of a commit without the text that retention erased. */
  events(run: RunKey, row: CommitRow): readonly Event[];
}

export interface SqlEventLogOptions {
  readonly source: EventSource;
  readonly check: LogCheck;
  readonly entries: EntryCheck;
  /** The runs that this store owns. */
  readonly owned: ReadonlyMap<RunId, { readonly position?: { readonly seq: number } | undefined }>;
  readonly feeds: {
    join(runId: RunId, watcher: Watcher): MaybePromise<RunFeed>;
    leave(feed: RunFeed, watcher: Watcher): void;
    find(runId: RunId): RunFeed | undefined;
    ring(runId: RunId): void;
  };
  readonly deltas: {
    put(lease: Lease, delta: Delta): boolean;
    after(runId: RunId, id: number): readonly ShownDelta[];
  };
  /** Detects what other processes write, while at least one caller holds it. */
  readonly watch: { hold(): () => void };
}

/** The position of one reader. */
interface TailPlace {
  /** Sequence number of the next event, even if the filter does not select it. */
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
  /** Signals that there may be something to read. */
  readonly bell: WakeFlag;
  readonly leave: () => void;
}

/** Maximum length of the text that `keep` may hold in memory, in UTF-16 code units. */
const mostKept = 64 * 1_024 * 1_024;

/** The event log of a store that keeps commits in SQL tables. */
export class SqlEventLog implements EventLog {
  readonly #options: SqlEventLogOptions;
  readonly #source: EventSource;

  constructor(options: SqlEventLogOptions) {
    this.#options = options;
    this.#source = options.source;
  }

  async *read(runId: RunId, fromSeq = 0): AsyncIterable<Event> {
    const { run, number, seq } = await this.#source.end(runId);
    yield* this.#between(run, fromSeq, seq, number);
  }

  async keep(runId: RunId): Promise<() => readonly Event[]> {
    const feed = this.#options.feeds.find(runId);
    const { run, number, seq } = await this.#source.end(runId);
    // Short runs are still in memory. Reading them again would also read their large values. Bench: `sessions`, row "large results".
    if (feed !== undefined && holdsAll(feed, run, seq)) {
      const events = feed.from(0);
      return () => events;
    }
    const kept: CommitRow[] = [];
    let units = 0;
    for await (const page of this.#source.pages(run, 0, number)) {
      for (const row of page) units += unitsOf(row);
      if (units > mostKept) return () => tooLarge(runId);
      kept.push(...page);
    }
    return () => kept.flatMap((row) => this.#source.events(run, row));
  }

  /**
   * Yields the items of a feed to the reader. It is a single generator, because each nested generator would add
   * three promises per item.
   */
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
          for (const { id, delta } of this.#options.deltas.after(feed.run.runId, shown)) {
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
    const { feeds, watch } = this.#options;
    const bell = new WakeFlag();
    const watcher: Watcher = (events) => {
      if (events === undefined || filter.wakesFor(events)) bell.raise();
      // Keeps the position current: a reader that is never woken would otherwise fall behind the feed and have to read
      // the tables.
      else if (events[0]?.seq === place.next) place.next += events.length;
    };
    // Before reading, so that writes during the read are noticed.
    const unwatch = watch.hold();
    signal?.addEventListener("abort", bell.raise);
    const guest: Guest = { lifeEnded: () => bell.raise() };
    life?.join(guest);
    const forget = (): void => {
      life?.leave(guest);
      signal?.removeEventListener("abort", bell.raise);
      unwatch();
    };
    try {
      const feed = await feeds.join(runId, watcher);
      const leave = (): void => {
        feeds.leave(feed, watcher);
        forget();
      };
      return { feed, bell, leave };
    } catch (error) {
      forget();
      throw error;
    }
  }

  lastSeq(runId: RunId): MaybePromise<number> {
    // Only the owner appends events: if this store owns the run, its position is current.
    const position = this.#options.owned.get(runId)?.position;
    if (position !== undefined) return position.seq - 1;
    return andThen(this.#source.end(runId), ({ seq }) => seq - 1);
  }

  putDelta(lease: Lease, delta: Delta): void {
    const { deltas, feeds } = this.#options;
    if (deltas.put(lease, delta)) feeds.ring(lease.runId);
  }

  async verify(runId: RunId, head?: string): Promise<LogVerdict> {
    const { run, verdict } = await this.#options.check.check(runId, head);
    if (!verdict.ok) return verdict;
    const edited = await this.#options.entries.check(run);
    return edited === undefined ? verdict : { ok: false, seq: verdict.events, ...edited };
  }

  /** Yields the events from `fromSeq` up to, but not including, `end`, which are in the commits before `last`. */
  async *#between(known: RunKey, fromSeq: number, end: number, last: number): AsyncIterable<Event> {
    if (fromSeq >= end) return;
    const { run, first } = await this.#source.start(known, fromSeq, last);
    for await (const page of this.#source.pages(run, first, last))
      for (const row of page)
        for (const event of this.#source.events(run, row)) {
          if (event.seq >= end) return;
          if (event.seq >= fromSeq) yield event;
        }
  }
}

/**
 * Whether a feed has all events of a run with the same content as the tables. Retention erases text only in the
 * tables.
 */
function holdsAll(feed: RunFeed, run: RunKey, end: number): boolean {
  const isErased = (run.erases ?? null) !== null;
  return feed.run.id === run.id && feed.oldest === 0 && feed.end === end && !isErased;
}

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

/** A flag with which one reader waits for a change. It stays raised until `clear`, even if no reader waits. */
class WakeFlag {
  #isRaised = false;
  #wake: (() => void) | undefined;

  readonly raise = (): void => {
    this.#isRaised = true;
    this.#wake?.();
  };

  clear(): void {
    this.#isRaised = false;
  }

  raised(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isRaised) resolve();
      else this.#wake = resolve;
    });
  }
}
