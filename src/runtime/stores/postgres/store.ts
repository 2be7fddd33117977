import { type RunId, type Store, is, optionTable, type OptionKinds } from "../../../kernel/index.ts";
import { sha256 } from "../../process/sha256.ts";
import { systemClock } from "../../process/system-sources.ts";
import { Database, type DatabaseOptions } from "./db/database.ts";
import { createTables, storeTableSet } from "./db/migrate.ts";
import { schemaOf } from "./db/schema-name.ts";
import { StoreWatch } from "./db/store-watch.ts";
import { type OwnedRun, Tables } from "./db/tables.ts";
import type { EventSource } from "../sql/event-log.ts";
import { PostgresJournal } from "./journal.ts";
import { PostgresLeases } from "./leases.ts";
import { Collector } from "./retention/collector.ts";
import { Eraser } from "./retention/eraser.ts";
import { CommitRows } from "./rows/commit-rows.ts";
import { LogCheck, type LogSource } from "../sql/log-check.ts";
import { DeltaBoard } from "./tail/delta-board.ts";
import type { PostgresStoreOptions } from "./store-options.ts";
import { RunFeeds } from "./tail/run-feed.ts";
import { sqlStore, storeTools } from "../sql/store.ts";

/**
 * K5: SQL condition for a change with a number that this server has not reached yet. It occurs after a database was
 * restored on another server.
 */
const isForeignChange = "change >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint";

/**
 * Removes the numbers of changes that this server has not reached yet. It writes nothing if there are none, so that
 * a read-only database can be opened.
 */
async function forgetForeignChanges({ statements }: Database): Promise<void> {
  const found = await statements.get(`SELECT 1 FROM {runs} WHERE ${isForeignChange} LIMIT 1`);
  if (found !== undefined) await statements.run(`UPDATE {runs} SET change = 0 WHERE ${isForeignChange}`);
}

/** Creates a reader of events, and of logs for their check, from the tables. */
function eventSource(tables: Tables, rows: CommitRows): EventSource & LogSource {
  const { database } = tables;
  return {
    end: (runId) => rows.end(runId),
    start: (known, seq, end) =>
      database.read(async (queries) => ({
        run: (await queries.do(tables.find(known.runId))) ?? known,
        first: seq === 0 ? 0 : await queries.do(rows.numberOf(known, seq, end)),
      })),
    pages: (run, first, end) => rows.pages(run, first, end),
    events: (run, row) => rows.events(run, row),
    decode: (run, row) => rows.decodeAlone(run, row),
  };
}

/** A run of this store that has changed. */
interface ChangedRun {
  readonly index: number;
  /** Place of the run's last mail. `null` if the run has another owner, or was deleted. */
  readonly mail: number | null;
}

const findChanged = `SELECT wanted.index - 1 AS index, CASE WHEN runs.id IS NULL THEN NULL ELSE news.place END AS mail
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS wanted (id, epoch, seen, index)
  LEFT JOIN {runs} AS runs ON runs.id = wanted.id AND runs.epoch = wanted.epoch AND runs.run_id IS NOT NULL
  LEFT JOIN LATERAL (SELECT max(place) AS place FROM {mail} WHERE run = wanted.id AND place > wanted.seen) AS news ON true
  WHERE runs.id IS NULL OR news.place IS NOT NULL`;

/**
 * Returns the runs of this store that have new mail or another owner. In the second case the store no longer owns
 * the run. Costs one statement, for any number of runs.
 */
async function changedRuns({ database, owned }: Tables): Promise<readonly RunId[]> {
  const known = [...owned.values()];
  if (known.length === 0) return [];
  const rows = await database.statements.all<ChangedRun>(
    findChanged,
    known.map(({ id }) => id),
    known.map(({ epoch }) => epoch),
    known.map(({ announcedMail = -1 }) => announcedMail),
  );
  return rows.map(({ index, mail }) => {
    const run = known[index] as OwnedRun;
    if (mail !== null) run.announcedMail = mail;
    else if (owned.get(run.runId) === run) owned.delete(run.runId);
    return run.runId;
  });
}

const knownOptions = optionTable({
  url: is.text({ required: true }),
  hash: is.callback(),
  schema: is.text(),
  connections: is.integer({ from: 1, default: 10 }),
  timeoutMs: is.integer({ from: 1, default: 10_000 }),
  retryForMs: is.integer({ from: 0, default: 10_000 }),
  leaseMs: is.integer({ from: 1 }),
  watchEveryMs: is.integer({ from: 1 }),
  pollMs: is.integer({ from: 1 }),
  inbox: is.any,
  create: is.boolean(),
  clock: is.any,
  auditKey: is.text({ empty: false, hint: "omit the option for a hash chain without a key" }),
} satisfies OptionKinds<PostgresStoreOptions>);

/**
 * Opens a store in one schema of a PostgreSQL database, which processes on several machines can share. The package
 * `pg` must be installed.
 */
export async function postgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { connections, timeoutMs, retryForMs } = knownOptions.read("postgresStore()", options);
  const { url, schema } = schemaOf({ ...options, otherwise: "reeve" }, "postgresStore()");
  return storeAt({ url, schema, connections, timeoutMs, retryForMs }, options);
}

/** Opens the store at a database. */
export async function storeAt(
  at: Omit<DatabaseOptions, "onChange">,
  options: Omit<PostgresStoreOptions, "url" | "schema" | "connections" | "timeoutMs" | "retryForMs">,
): Promise<Store> {
  const { clock = systemClock } = options;
  const database = new Database({ ...at, onChange: (change) => tables.announce(change) });
  const tables = new Tables({ database, clock });
  try {
    await createTables(database, storeTableSet, options);
    await forgetForeignChanges(database);
    return storeOn(tables, options);
  } catch (error) {
    await database.close();
    throw error;
  }
}

function storeOn(
  tables: Tables,
  options: Omit<PostgresStoreOptions, "url" | "schema" | "connections" | "timeoutMs" | "retryForMs">,
): Store {
  const { database } = tables;
  const { hash = sha256, auditKey, leaseMs = 15_000, watchEveryMs = 50, pollMs = 1_000 } = options;
  const tools = storeTools(tables.dialect, hash, auditKey);
  const rows = new CommitRows(database, tools.contents, tools.entries);
  const source = eventSource(tables, rows);
  const check = new LogCheck(source, tools.chain);
  const collector = new Collector(tables);
  const eraser = new Eraser({ ...tools, tables, rows, check, collector });
  const deltas = new DeltaBoard(tables);
  const feeds = new RunFeeds(tables, rows, deltas);
  const leases = new PostgresLeases({ tables, deltas, leaseMs });
  const watch = new StoreWatch({
    database,
    watchEveryMs,
    onWatch: () => feeds.catchUp(),
    pollMs,
    onPoll: async () => {
      if (tables.listeners.size === 0) return;
      if (await leases.hasLeftBehind()) tables.announce({ kind: "worker" });
      tables.announce({ kind: "other", owned: await changedRuns(tables) });
    },
    onNotice: (change) => {
      if (change.kind === "seized") leases.forget(change.runId);
      tables.announce(change);
    },
  });
  const close = async (): Promise<void> => {
    watch.close();
    collector.stop();
    eraser.stop();
    feeds.close();
    await deltas.close();
    // If the server cannot be reached, the leases of the workers expire.
    await leases.close().catch(() => undefined);
    await database.close();
  };
  return sqlStore({
    tables,
    tools,
    inbox: options.inbox,
    collector,
    eraser,
    source,
    check,
    deltas,
    feeds,
    leases,
    watch,
    eventsOf: (row) => rows.eventsOf(row),
    journal: (parts) => new PostgresJournal({ ...parts, tables, rows, leases, deltas, feeds }),
    close,
  });
}
