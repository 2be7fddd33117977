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
  readonly standing: string | null;
  readonly ended: number | null;
  readonly endedAt: number | null;
  /** SQLite has no booleans. */
  readonly isScheduled: boolean | number;
  readonly spent: string | null;
  /** Time of the last commit. */
  readonly updatedAt: number | null;
}

const compactionIn = `SELECT 1 FROM {runs} AS runs INDEXED BY runs_compacting WHERE session_id = $1 AND ${isCompacting} LIMIT 1`;

function statementsOf({ lastCommitAt }: Dialect) {
  const columns = `id AS place, created_at AS "createdAt", ${runColumns}, state, standing, ended, ended_at AS "endedAt", spent,
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
    const parts = cursor.statuses?.flatMap(rowsOf) ?? [undefined];
    const isOneStatement = parts.length === 1 && this.#tables.dialect.lateCommits === undefined;
    const page = (): Work<RunPage> => this.#page(query, parts, cursor);
    return isOneStatement ? this.#tables.query(page) : this.#tables.snapshot(page);
  }

  *#page(query: RunQuery, parts: readonly (StatusRows | undefined)[], cursor: RunCursor): Work<RunPage> {
    const found: ListedRun[] = [];
    for (const rows of parts) found.push(...(yield* this.#rows(query, rows, cursor)));
    const { shown, next } = pageOf(found.toSorted(newestFirst(cursor)), cursor);
    return { runs: yield* this.#summaries(shown), next };
  }

  #rows(query: RunQuery, rows: StatusRows | undefined, cursor: RunCursor): Work<readonly ListedRun[]> {
    const { from, where, order } = planOf(this.#tables.dialect, query, rows, cursor);
    const limit = where.value(cursor.limit + 1);
    const sql = `SELECT ${this.#sql.columns} FROM ${from} WHERE ${where.sql} ORDER BY ${order} LIMIT ${limit}`;
    return all<ListedRun>(sql, ...where.values);
  }

  async find(runId: RunId): Promise<RunSummary | undefined> {
    const find = (): Work<RunSummary | undefined> => this.#one(this.#sql.summaryOfRun, runId);
    return this.#tables.dialect.lateCommits === undefined
      ? this.#tables.query(find)
      : this.#tables.snapshot(find);
  }

  /** S5: returns the newest unfinished run of an agent in a session that is no compaction. Call inside a transaction. */
  findUnfinished({
    agentId,
    sessionId,
  }: Pick<RunRecord, "agentId" | "sessionId">): Work<RunSummary | undefined> {
    return this.#one(this.#sql.unfinishedIn, sessionId, agentId);
  }

  /**
   * Returns a run in this session that has not ended, or has unread mail that may resume it. Call inside a transaction.
   */
  findUnderWay(sessionId: SessionId): Work<RunSummary | undefined> {
    return this.#one(this.#sql.underWayIn, sessionId);
  }

  /** S5: whether a run compacts the session. Call inside a transaction. */
  *isCompacting(sessionId: SessionId): Work<boolean> {
    return (yield* get(compactionIn, sessionId)) !== undefined;
  }

  *#one(sql: string, ...values: readonly string[]): Work<RunSummary | undefined> {
    const row = yield* get<ListedRun>(sql, ...values);
    return row === undefined ? undefined : (yield* this.#summaries([row]))[0];
  }

  *#summaries(rows: readonly ListedRun[]): Work<RunSummary[]> {
    const { lateCommits } = this.#tables.dialect;
    const late =
      lateCommits === undefined || rows.length === 0
        ? []
        : yield* all<{ readonly run: number; readonly at: number }>(lateCommits);
    const times = new Map(late.map(({ run, at }) => [run, at]));
    return rows.map((row) => summaryOf(row, times.get(row.place) ?? row.updatedAt));
  }
}

/** `updatedAt` is the time of the last commit. */
function summaryOf(row: ListedRun, updatedAt: number | null): RunSummary {
  const { ended, standing, endedAt } = row;
  const end = ended === null ? null : { status: runStatuses[ended] ?? "completed" };
  return {
    ...recordOf(row),
    ...statusOf(end, standingOf(standing), holderOf(row)),
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
