import {
  runStatuses,
  type RunId,
  type RunChangeList,
  type RunCountQuery,
  type RunPage,
  type RunQuery,
  type RunRecord,
  type RunScore,
  type RunSummary,
  type SessionId,
} from "../../../kernel/index.ts";
import { recordOf, RunState, spendOf, standingOf, type RunRow } from "../codec/stored-run.ts";
import {
  changePosition,
  countCursorOf,
  cursorOf,
  inListOrder,
  pageOf,
  type RunCursor,
} from "../run-cursor.ts";
import { listedRecord, statusOf, type Holder } from "../run-status.ts";
import type { Dialect } from "./dialect.ts";
import { planOf, rowsOf, type StatusRows } from "./run-plan.ts";
import { isCompacting, isScheduled, runColumns } from "./run-row.ts";
import type { SqlTables } from "./tables.ts";
import { all, get, type Work } from "./work.ts";

/** A row of a list of runs. */
interface ListedRun extends RunRow {
  readonly place: number;
  readonly createdAt: number;
  readonly cost: number;
  readonly state: number;
  readonly owner: string | null;
  readonly standing: string | null;
  readonly ended: number | null;
  readonly endedAt: number | null;
  /** SQLite has no booleans. */
  readonly isScheduled: boolean | number;
  readonly spent: string | null;
  /** JSON of the scores that count. */
  readonly scores: string | null;
  /** Time of the last commit. */
  readonly updatedAt: number | null;
}

interface FoundRun {
  readonly row: ListedRun;
  /** Time of the last commit. */
  readonly updatedAt: number | null;
}

interface FoundPage extends Pick<RunPage, "next"> {
  readonly found: readonly FoundRun[];
}

const none: readonly never[] = [];

const compactionIn = `SELECT 1 FROM {runs} AS runs INDEXED BY runs_compacting WHERE session_id = $1 AND ${isCompacting} LIMIT 1`;

function statementsOf({ lastCommitAt }: Dialect) {
  const columns = `id AS place, runs.created_at AS "createdAt", cost, ${runColumns}, state, owner, standing, ended, ended_at AS "endedAt", spent, scores,
    ${isScheduled} AS "isScheduled", ${lastCommitAt} AS "updatedAt"`;
  const ofSession = `SELECT ${columns} FROM {runs} AS runs INDEXED BY runs_of_session WHERE session_id = $1 AND run_id IS NOT NULL`;
  return {
    columns,
    changed: `SELECT ${columns} FROM {runs} AS runs INDEXED BY runs_by_change WHERE change > $1 AND run_id IS NOT NULL`,
    // K5: their commits change nothing in their rows, and the death of an owner neither.
    owned: `SELECT ${columns} FROM {runs} AS runs INDEXED BY runs_owned WHERE owner > '' AND owner IS NOT NULL AND run_id IS NOT NULL`,
    summaryOfRun: `SELECT ${columns} FROM {runs} AS runs WHERE run_id = $1`,
    unfinishedIn: `${ofSession} AND ended IS NULL AND agent_id = $2 AND kind <> 1 ORDER BY id DESC LIMIT 1`,
    underWayIn: `${ofSession} AND (ended IS NULL OR EXISTS (SELECT 1 FROM {mail} WHERE run = runs.id))
      ORDER BY ended NULLS FIRST, id LIMIT 1`,
  };
}

/**
 * Lists runs in the order of the query. It reads from the most selective index for the query until the page is
 * full.
 */
export class RunList {
  readonly #tables: SqlTables;
  readonly #sql: ReturnType<typeof statementsOf>;
  /**
   * K5: the last result of `changes`, if no run had an owner. While the version of the database is the same,
   * another call finds nothing.
   */
  #still: { readonly version: string; readonly next: string } | undefined;

  constructor(tables: SqlTables) {
    this.#tables = tables;
    this.#sql = statementsOf(tables.dialect);
  }

  async read(query: RunQuery = {}): Promise<RunPage> {
    const cursor = cursorOf(query);
    const gone = await this.#gone(cursor);
    const { found, next } = await this.#parts(cursor, gone, (parts) =>
      this.#page(query, parts, cursor, gone),
    );
    return { runs: await this.#summaries(found, cursor.statuses === undefined ? undefined : gone), next };
  }

  /** K6: counts runs up to the limit of the query. */
  async count(query: RunCountQuery = {}): Promise<number> {
    const cursor = countCursorOf(query);
    const gone = await this.#gone(cursor);
    const counted = await this.#parts(cursor, gone, (parts) => this.#count(query, parts, cursor, gone));
    return Math.min(counted, cursor.limit);
  }

  /** K1: returns the dead owners that decide which runs have a status. */
  async #gone({ statuses }: RunCursor): Promise<readonly string[]> {
    return statuses === undefined ? none : this.#tables.goneOwners();
  }

  /** Does work on the rows of each wanted status. All statements read one state of the database. */
  async #parts<Result>(
    { statuses }: RunCursor,
    gone: readonly string[],
    work: (parts: readonly (StatusRows | undefined)[]) => Work<Result>,
  ): Promise<Result> {
    const parts = statuses?.flatMap((status) => rowsOf(status, gone.length > 0)) ?? [undefined];
    const { lateCommits, probesIndexes } = this.#tables.dialect;
    const isOneStatement = parts.length === 1 && lateCommits === undefined && !probesIndexes;
    const statements = (): Work<Result> => work(parts);
    return isOneStatement ? this.#tables.query(statements) : this.#tables.snapshot(statements);
  }

  *#page(
    query: RunQuery,
    parts: readonly (StatusRows | undefined)[],
    cursor: RunCursor,
    gone: readonly string[],
  ): Work<FoundPage> {
    const { dialect } = this.#tables;
    const rowsFound: ListedRun[] = [];
    for (const rows of parts) {
      const { from, where, order } = yield* planOf({ dialect, query, rows, cursor, gone });
      const limit = where.value(cursor.limit + 1);
      const sql = `SELECT ${this.#sql.columns} FROM ${from} WHERE ${where.sql} ORDER BY ${order} LIMIT ${limit}`;
      rowsFound.push(...(yield* all<ListedRun>(sql, ...where.values)));
    }
    const { shown, next } = pageOf(rowsFound.toSorted(inListOrder(cursor)), cursor);
    return { found: yield* this.#withTimes(shown), next };
  }

  *#count(
    query: RunQuery,
    parts: readonly (StatusRows | undefined)[],
    cursor: RunCursor,
    gone: readonly string[],
  ): Work<number> {
    const { dialect } = this.#tables;
    let count = 0;
    for (const rows of parts) {
      const { from, where } = yield* planOf({ dialect, query, rows, cursor, gone });
      const limit = where.value(cursor.limit);
      const sql = `SELECT count(*) AS count FROM (SELECT 1 FROM ${from} WHERE ${where.sql} LIMIT ${limit}) AS found`;
      count += (yield* get<{ readonly count: number }>(sql, ...where.values))?.count ?? 0;
    }
    return count;
  }

  /**
   * K5: returns the changed runs. It reads nothing if the database has not changed since the last call and no run
   * had an owner.
   */
  async changes(after?: string): Promise<RunChangeList> {
    const [since] = after === undefined ? [] : changePosition(after, 1);
    const version = await this.#tables.version();
    const still = this.#still;
    if (version !== undefined && still?.version === version && still.next === after)
      return { runs: [], next: still.next };
    const { rows, position } = await this.#tables.snapshot(() => this.#changed(since));
    const next = String(position);
    const isAnyOwned = rows.some(({ row }) => row.owner !== null);
    this.#still = version === undefined || isAnyOwned ? undefined : { version, next };
    return { runs: await this.#summaries(since === undefined ? none : rows), next };
  }

  *#changed(
    since: number | undefined,
  ): Work<{ readonly rows: readonly FoundRun[]; readonly position: number }> {
    const { changePosition: positionNow } = this.#tables.dialect;
    const { position } = (yield* get<{ readonly position: number }>(positionNow)) ?? { position: 0 };
    const found = new Map<number, ListedRun>();
    for (const row of yield* all<ListedRun>(this.#sql.owned)) found.set(row.place, row);
    if (since !== undefined)
      for (const row of yield* all<ListedRun>(this.#sql.changed, since)) found.set(row.place, row);
    return { rows: yield* this.#withTimes([...found.values()]), position };
  }

  async find(runId: RunId): Promise<RunSummary | undefined> {
    const find = (): Work<readonly FoundRun[]> => this.#one(this.#sql.summaryOfRun, runId);
    const isOneStatement = this.#tables.dialect.lateCommits === undefined;
    const found = await (isOneStatement ? this.#tables.query(find) : this.#tables.snapshot(find));
    return (await this.#summaries(found))[0];
  }

  /**
   * S5: returns the newest unfinished run of an agent in a session, apart from compactions. Call it inside a
   * transaction.
   */
  *findUnfinished({
    agentId,
    sessionId,
  }: Pick<RunRecord, "agentId" | "sessionId">): Work<RunSummary | undefined> {
    return summariesOf(yield* this.#one(this.#sql.unfinishedIn, sessionId, agentId), none)[0];
  }

  /**
   * Returns a run in this session that has not ended, or has unread mail that may resume it. Call it inside a
   * transaction.
   */
  *findUnderWay(sessionId: SessionId): Work<RunSummary | undefined> {
    return summariesOf(yield* this.#one(this.#sql.underWayIn, sessionId), none)[0];
  }

  /** S5: whether a run compacts the session. Call inside a transaction. */
  *isCompacting(sessionId: SessionId): Work<boolean> {
    return (yield* get(compactionIn, sessionId)) !== undefined;
  }

  *#one(sql: string, ...values: readonly string[]): Work<readonly FoundRun[]> {
    return yield* this.#withTimes(yield* all<ListedRun>(sql, ...values));
  }

  /**
   * K1: returns the summaries of runs. A run whose owner's process has ended does not count as running. Owners are
   * checked only if the result depends on them.
   */
  async #summaries(found: readonly FoundRun[], known?: readonly string[]): Promise<RunSummary[]> {
    const isAnyRunning = found.some(({ row }) => isRunning(row));
    return summariesOf(found, known ?? (isAnyRunning ? await this.#tables.goneOwners() : none));
  }

  *#withTimes(rows: readonly ListedRun[]): Work<readonly FoundRun[]> {
    const { lateCommits } = this.#tables.dialect;
    const late =
      lateCommits === undefined || rows.length === 0
        ? []
        : yield* all<{ readonly run: number; readonly at: number }>(lateCommits);
    const times = new Map(late.map(({ run, at }) => [run, at]));
    return rows.map((row) => ({ row, updatedAt: times.get(row.place) ?? row.updatedAt }));
  }
}

function summariesOf(found: readonly FoundRun[], gone: readonly string[]): RunSummary[] {
  return found.map((each) => summaryOf(each, gone));
}

function isRunning({ state, ended, standing }: ListedRun): boolean {
  return state === RunState.OWNED && ended === null && standing === null;
}

function summaryOf({ row, updatedAt }: FoundRun, gone: readonly string[]): RunSummary {
  const { ended, standing, endedAt, owner } = row;
  const isLeft = owner !== null && isRunning(row) && gone.includes(owner);
  const end = ended === null ? null : { status: runStatuses[ended] ?? "completed" };
  return {
    ...listedRecord(recordOf(row)),
    ...statusOf(end, standingOf(standing), isLeft ? readyOf(row) : holderOf(row)),
    ...spendOf(row.spent),
    updatedAt: updatedAt ?? row.createdAt,
    endedAt,
    ...(row.scores !== null && { scores: JSON.parse(row.scores) as readonly RunScore[] }),
  };
}

function readyOf({ host }: ListedRun): Holder {
  return host === null ? "ready" : "bound";
}

function holderOf(row: ListedRun): Holder {
  const { state, isScheduled: isLater } = row;
  if (state === RunState.READY) return readyOf(row);
  if (state === RunState.OWNED) return "owned";
  if (state === RunState.HELD) return "held";
  if (state === RunState.QUEUED) return "queued";
  return isLater === true || isLater === 1 ? "scheduled" : "suspended";
}
