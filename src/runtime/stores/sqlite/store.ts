import type { RunKey } from "../codec/stored-run.ts";
import {
  Fault,
  type Clock,
  type Hash,
  type InboxSettings,
  type Store,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { sha256 } from "../../process/sha256.ts";
import { systemClock } from "../../process/system-sources.ts";
import { ChangeWatch } from "./db/change-watch.ts";
import { Checkpointer } from "./db/checkpointer.ts";
import { Collector } from "./retention/collector.ts";
import { CommitRows } from "./rows/commit-rows.ts";
import { Database, type Durability } from "./db/database.ts";
import { DeltaBoard } from "./tail/delta-board.ts";
import { Eraser } from "./retention/eraser.ts";
import type { EventSource } from "../sql/event-log.ts";
import { GroupCommit } from "./db/group-commit.ts";
import { SqliteJournal } from "./journal.ts";
import { SqliteLeases } from "./leases.ts";
import { LogCheck, type LogSource } from "../sql/log-check.ts";
import { createTables } from "./db/migrate.ts";
import { storeSchema } from "./db/schema.ts";
import { RunFeeds } from "./tail/run-feed.ts";
import { done } from "../sql/work.ts";
import { Tables } from "./db/tables.ts";
import { sqlStore, storeTools } from "../sql/store.ts";
import { WorkerLocks } from "./db/worker-lock.ts";

/** Reads events from the file. */
function eventSource(tables: Tables, rows: CommitRows): EventSource {
  return {
    end: (runId) =>
      tables.read(() => {
        const run = tables.runNow(runId);
        return { run, ...rows.end(run) };
      }),
    start: (known, seq) =>
      tables.read(() => ({
        run: tables.findNow(known.runId) ?? known,
        first: seq === 0 ? 0 : rows.numberOf(known, seq),
      })),
    pages: (run, first, end) => rows.eventPages(run, first, end),
    events: (run, row) => rows.events(run, row),
  };
}

/** Creates a reader of logs in the file, for their check. */
function logSource(tables: Tables, rows: CommitRows): LogSource {
  return {
    end: (runId) =>
      tables.read(() =>
        tables.database.transaction("DEFERRED", () => {
          const run = tables.runNow(runId);
          return { run, number: rows.endNumber(run) };
        }),
      ),
    pages: (run, first, end) => rows.pages(run, first, end),
    decode: (run: RunKey, row) => rows.decodeAlone(run, row),
  };
}

/** Options of `sqliteStore`. */
export interface SqliteStoreOptions {
  /** Path of the file. The file is created if it does not exist; its folder must exist. */
  readonly path: string;
  /** Hash function for content and the event chain. Every process that opens the file needs the same. Default: SHA-256. */
  readonly hash?: Hash;
  /**
   * What an acknowledged write survives. `normal`: the death of the process at any moment (`kill -9`). After a
   * power failure the last writes may be missing, but the file is intact. `full`: power failures too, at the cost
   * of a disk sync per commit. Default: `normal`.
   */
  readonly durability?: Durability;
  /** How often, and after which delay, messages that are handed back through this store are delivered again. */
  readonly inbox?: Partial<InboxSettings>;
  /** Clock for the time at which a run became ready. */
  readonly clock?: Clock;
  /** E1: makes the events' hash chain an HMAC with this key. The same key is needed to verify the chain. */
  readonly auditKey?: string;
  /**
   * Maximum time that a call waits for a lock of another process before it fails with `store_unavailable`. Default:
   * 10_000.
   */
  readonly busyLimitMs?: number;
  /** Interval at which writes of other processes are detected, while there is a listener or a reader. Default: 25. */
  readonly watchEveryMs?: number;
}

const knownOptions = optionTable({
  path: is.text({ required: true }),
  hash: is.callback(),
  durability: is.choice(["full", "normal"], { default: "normal" }),
  inbox: is.any,
  clock: is.any,
  auditKey: is.text(),
  busyLimitMs: is.number({ from: 0, default: 10_000 }),
  watchEveryMs: is.number({ from: 0 }),
} satisfies OptionKinds<SqliteStoreOptions>);

/**
 * Opens a store in one file, which several processes may open at once. SQLite's WAL and a folder with the locks of
 * workers are in the same folder.
 */
export async function sqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, durability, busyLimitMs } = knownOptions.read("sqliteStore()", options);
  if (options.auditKey === "")
    throw new Fault(
      "invalid_argument",
      "invalid auditKey: it is empty; set a secret, or omit the option for a hash chain without a key",
    );
  const database = await Database.open({ path, durability, busyLimitMs });
  try {
    return await storeOn(database, options);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Opens the store on an open database. */
export async function storeOn(database: Database, options: Omit<SqliteStoreOptions, "path">): Promise<Store> {
  const { hash = sha256, clock = systemClock, auditKey, watchEveryMs = 25 } = options;
  const checkpointer = new Checkpointer(database.path);
  const writer = new GroupCommit(database, database.durability === "normal" ? checkpointer : undefined);
  const tables = new Tables({ database, writer, clock });
  const tools = storeTools(tables.dialect, hash, auditKey);
  const rows = new CommitRows(tables, tools.contents, tools.entries);
  await database.patiently(() => {
    createTables(database, storeSchema);
    rows.open();
  });
  const check = new LogCheck(logSource(tables, rows), tools.chain);
  const collector = new Collector(tables, rows);
  const eraser = new Eraser({ ...tools, tables, rows, check, collector });
  const deltas = new DeltaBoard(tables);
  const feeds = new RunFeeds(tables, rows, deltas);
  const locks = new WorkerLocks(database.path);
  const leases = new SqliteLeases(tables, locks, deltas);
  const watch = new ChangeWatch({
    database,
    everyMs: watchEveryMs,
    onWrite: () => {
      tables.announce({ kind: "other" });
      return feeds.catchUp();
    },
    onRound: () => {
      leases.keepRegistered();
      if (tables.listeners.size > 0 && leases.hasLeftBehind()) tables.announce({ kind: "worker" });
    },
    onLost: (fault) => {
      feeds.close(fault);
      leases.lose(fault);
    },
  });
  const close = async (): Promise<void> => {
    watch.close();
    collector.stop();
    eraser.stop();
    feeds.close();
    deltas.close();
    await tables.close();
    await checkpointer.close();
    locks.close();
    database.close();
  };
  return sqlStore({
    tables,
    tools,
    inbox: options.inbox,
    collector,
    eraser,
    source: eventSource(tables, rows),
    check,
    deltas,
    feeds,
    leases,
    watch,
    eventsOf: (row) => done(rows.eventsOf(row)),
    journal: (parts) => new SqliteJournal({ ...parts, tables, rows, leases, deltas, feeds }),
    close,
  });
}
