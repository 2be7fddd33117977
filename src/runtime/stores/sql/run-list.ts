import {
  runStatuses,
  type RunId,
  type RunPage,
  type RunQuery,
  type RunRecord,
  type RunSummary,
  type SessionId,
} from "../../../kernel/index.ts";
import { recordOf, RunState, spendOf, standingOf, type RunRow } from "../codec/stored-run.ts";
import { cursorOf, newestFirst, pageOf, type RunCursor } from "../run-cursor.ts";
import { statusOf, type Holder } from "../run-status.ts";
import type { Dialect } from "./dialect.ts";
import { planOf, rowsOf, type StatusRows } from "./run-plan.ts";
import { isCompacting, isScheduled, runColumns } from "./run-row.ts";
import type { SqlTables } from "./tables.ts";
import { all, get, type Work } from "./work.ts";

/** A row of a list of runs. */
interface ListedRun extends RunRow {
  readonly place: number;
  readonly createdAt: number;
  readonly state: number;
  readonly owner: string | null;
  readonly standing: string | null;
  readonly ended: number | null;
  readonly endedAt: number | null;
  /** SQLite has no booleans. */
  readonly isScheduled: boolean | number;
  readonly spent: string | null;
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
  const columns = `id AS place, created_at AS "createdAt", ${runColumns}, state, owner, standing, ended, ended_at AS "endedAt", spent,
    ${isScheduled} AS "isScheduled", ${lastCommitAt} AS "updatedAt"`;
  const ofSession = `SELECT ${columns} FROM {runs} AS runs INDEXED BY runs_of_session WHERE session_id = $1 AND run_id IS NOT NULL`;
  return {
    columns,
    summaryOfRun: `SELECT ${columns} FROM {runs} AS runs WHERE run_id = $1`,
    unfinishedIn: `${ofSession} AND ended IS NULL AND agent_id = $2 AND kind <> 1 ORDER BY id DESC LIMIT 1`,
    underWayIn: `${ofSession} AND (ended IS NULL OR EXISTS (SELECT 1 FROM {mail} WHERE run = runs.id))
      ORDER BY ended NULLS FIRST, id LIMIT 1`,
  };
}

/** Lists runs, newest first. Reads from the most selective index that fits the query until the page is full. */
export class RunList {
  readonly #tables: SqlTables;
  readonly #sql: ReturnType<typeof statementsOf>;

  constructor(tables: SqlTables) {
    this.#tables = tables;
    this.#sql = statementsOf(tables.dialect);
  }

  async read(query: RunQuery = {}): Promise<RunPage> {
    const cursor = cursorOf(query);
    const gone = cursor.statuses === undefined ? none : await this.#tables.goneOwners();
    const parts = cursor.statuses?.flatMap((status) => rowsOf(status, gone.length > 0)) ?? [undefined];
    const isOneStatement = parts.length === 1 && this.#tables.dialect.lateCommits === undefined;
    const page = (): Work<FoundPage> => this.#page(query, parts, cursor, gone);
    const { found, next } = await (isOneStatement ? this.#tables.query(page) : this.#tables.snapshot(page));
    return { runs: await this.#summaries(found, cursor.statuses === undefined ? undefined : gone), next };
  }

  *#page(
    query: RunQuery,
    parts: readonly (StatusRows | undefined)[],
    cursor: RunCursor,
    gone: readonly string[],
  ): Work<FoundPage> {
    const found: ListedRun[] = [];
    for (const rows of parts) found.push(...(yield* this.#rows(query, rows, cursor, gone)));
    const { shown, next } = pageOf(found.toSorted(newestFirst(cursor)), cursor);
    return { found: yield* this.#withTimes(shown), next };
  }

  #rows(
    query: RunQuery,
    rows: StatusRows | undefined,
    cursor: RunCursor,
    gone: readonly string[],
  ): Work<readonly ListedRun[]> {
    const { from, where, order } = planOf(this.#tables.dialect, query, rows, cursor, gone);
    const limit = where.value(cursor.limit + 1);
    const sql = `SELECT ${this.#sql.columns} FROM ${from} WHERE ${where.sql} ORDER BY ${order} LIMIT ${limit}`;
    return all<ListedRun>(sql, ...where.values);
  }

  async find(runId: RunId): Promise<RunSummary | undefined> {
    const find = (): Work<readonly FoundRun[]> => this.#one(this.#sql.summaryOfRun, runId);
    const isOneStatement = this.#tables.dialect.lateCommits === undefined;
    const found = await (isOneStatement ? this.#tables.query(find) : this.#tables.snapshot(find));
    return (await this.#summaries(found))[0];
  }

  /** S5: returns the newest unfinished run of an agent in a session that is no compaction. Call inside a transaction. */
  *findUnfinished({
    agentId,
    sessionId,
  }: Pick<RunRecord, "agentId" | "sessionId">): Work<RunSummary | undefined> {
    return summariesOf(yield* this.#one(this.#sql.unfinishedIn, sessionId, agentId), none)[0];
  }

  /**
   * Returns a run in this session that has not ended, or has unread mail that may resume it. Call inside a transaction.
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

  /** K1: a run that its owner left when its process ended does not run. Owners are only looked at if they are needed. */
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
    ...recordOf(row),
    ...statusOf(end, standingOf(standing), isLeft ? "ready" : holderOf(row)),
    ...spendOf(row.spent),
    updatedAt: updatedAt ?? row.createdAt,
    endedAt,
  };
}

function holderOf({ state, isScheduled: isLater }: ListedRun): Holder {
  if (state === RunState.READY) return "ready";
  if (state === RunState.OWNED) return "owned";
  if (state === RunState.HELD) return "held";
  return isLater === true || isLater === 1 ? "scheduled" : "suspended";
}
