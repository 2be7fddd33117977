import {
  type RunPage,
  type RunQuery,
  type RunId,
  type RunRecord,
  type RunSummary,
  type SessionId,
} from "../../../../kernel/index.ts";
import { cursorOf, newestFirst, pageOf, type RunCursor } from "../../run-cursor.ts";
import type { CommitRows } from "./commit-rows.ts";
import { summaryOf, type ListedRun } from "../../sql/listed-run.ts";
import { isCompacting, isScheduled, runColumns } from "../../sql/run-row.ts";
import type { Tables } from "../db/tables.ts";
import { planOf, rowsOf, type StatusRows } from "./run-plan.ts";

const listedColumns = `id AS place, created_at AS createdAt, ${runColumns}, state, standing, ended, ended_at AS endedAt, spent,
  ${isScheduled} AS isScheduled`;

const summaryOfRun = `SELECT ${listedColumns} FROM runs WHERE run_id = ?`;

const underWayIn = `SELECT ${listedColumns} FROM runs INDEXED BY runs_of_session
  WHERE session_id = ? AND run_id IS NOT NULL
    AND (ended IS NULL OR EXISTS (SELECT 1 FROM mail WHERE run = runs.id)) ORDER BY ended LIMIT 1`;

const compactionIn = `SELECT 1 FROM runs INDEXED BY runs_compacting WHERE session_id = ? AND ${isCompacting} LIMIT 1`;

/** Lists runs, newest first. Reads from the most selective index that fits the query until the page is full. */
export class RunList {
  readonly #tables: Tables;
  readonly #rows: CommitRows;

  constructor(tables: Tables, rows: CommitRows) {
    this.#tables = tables;
    this.#rows = rows;
  }

  async read(query: RunQuery = {}): Promise<RunPage> {
    const cursor = cursorOf(query);
    return this.#tables.read(() =>
      this.#tables.database.transaction("DEFERRED", () => {
        const parts = cursor.statuses?.flatMap(rowsOf) ?? [undefined];
        const found = parts.flatMap((rows) => this.#find(query, rows, cursor)).toSorted(newestFirst(cursor));
        const { shown, next } = pageOf(found, cursor);
        return { runs: this.#summaries(shown), next };
      }),
    );
  }

  async find(runId: RunId): Promise<RunSummary | undefined> {
    return this.#tables.read(() =>
      this.#tables.database.transaction("DEFERRED", () => {
        const row = this.#tables.database.get<ListedRun>(summaryOfRun, runId);
        return row === undefined ? undefined : this.#summaries([row])[0];
      }),
    );
  }

  /** S5: returns the newest unfinished run of an agent in a session that is no compaction. Call inside a transaction. */
  findUnfinished({ agentId, sessionId }: Pick<RunRecord, "agentId" | "sessionId">): RunSummary | undefined {
    const [row] = this.#tables.database.all<ListedRun>(
      `SELECT ${listedColumns} FROM runs INDEXED BY runs_of_session
       WHERE session_id = ? AND ended IS NULL AND agent_id = ? AND kind <> 1 AND run_id IS NOT NULL
       ORDER BY id DESC LIMIT 1`,
      sessionId,
      agentId,
    );
    return row === undefined ? undefined : this.#summaries([row])[0];
  }

  /**
   * Returns a run in this session that has not ended, or has unread mail that may resume it. Call inside a transaction.
   */
  findUnderWay(sessionId: SessionId): RunSummary | undefined {
    const row = this.#tables.database.get<ListedRun>(underWayIn, sessionId);
    return row === undefined ? undefined : this.#summaries([row])[0];
  }

  /** S5: whether a run compacts the session. Call inside a transaction. */
  isCompacting(sessionId: SessionId): boolean {
    return this.#tables.database.get(compactionIn, sessionId) !== undefined;
  }

  #summaries(rows: readonly ListedRun[]): RunSummary[] {
    const updated = this.#rows.lastTimes(rows.map(({ place }) => place));
    return rows.map((row) => summaryOf(row, updated.get(row.place)));
  }

  #find(query: RunQuery, rows: StatusRows | undefined, cursor: RunCursor): ListedRun[] {
    const { from, terms, order } = planOf(query, rows, cursor);
    return this.#tables.database.all<ListedRun>(
      `SELECT ${listedColumns} FROM ${from} WHERE ${terms.map(([sql]) => sql).join(" AND ")}
       ORDER BY ${order} LIMIT ?`,
      ...terms.flatMap(([, ...values]) => values),
      cursor.limit + 1,
    );
  }
}
