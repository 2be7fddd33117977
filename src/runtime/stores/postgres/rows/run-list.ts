import {
  type RunId,
  type RunPage,
  type RunQuery,
  type RunRecord,
  type RunSummary,
  type SessionId,
} from "../../../../kernel/index.ts";
import { summaryOf, type ListedRun } from "../../sql/listed-run.ts";
import { cursorOf, newestFirst, pageOf, type RunCursor } from "../../run-cursor.ts";
import type { Database } from "../db/database.ts";
import type { Queries } from "../db/queries.ts";
import { isCompacting, isScheduled, runColumns } from "../../sql/run-row.ts";
import { conditionsOf, rowsOf } from "./run-plan.ts";

interface ListedRow extends ListedRun {
  /** Time of the last commit. */
  readonly updatedAt: number | null;
}

const listedColumns = `id AS place, created_at AS "createdAt", ${runColumns}, state, standing, ended, ended_at AS "endedAt", spent,
  ${isScheduled} AS "isScheduled", (SELECT at FROM {commits} WHERE run = runs.id ORDER BY number DESC LIMIT 1) AS "updatedAt"`;

const summaryOfRun = `SELECT ${listedColumns} FROM {runs} AS runs WHERE run_id = $1`;
const unfinishedIn = `SELECT ${listedColumns} FROM {runs} AS runs
  WHERE session_id = $1 AND ended IS NULL AND agent_id = $2 AND kind <> 1 AND run_id IS NOT NULL
  ORDER BY id DESC LIMIT 1`;
const underWayIn = `SELECT ${listedColumns} FROM {runs} AS runs WHERE session_id = $1 AND run_id IS NOT NULL
    AND (ended IS NULL OR EXISTS (SELECT 1 FROM {mail} WHERE run = runs.id)) ORDER BY ended NULLS FIRST, id LIMIT 1`;
const compactionIn = `SELECT 1 FROM {runs} WHERE session_id = $1 AND ${isCompacting} LIMIT 1`;

/** Lists runs, newest first. */
export class RunList {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async read(query: RunQuery = {}): Promise<RunPage> {
    const cursor = cursorOf(query);
    const parts = cursor.statuses?.flatMap(rowsOf) ?? [undefined];
    const [only] = parts;
    const found =
      parts.length === 1
        ? await find(this.#database.statements, query, only, cursor)
        : await this.#database.read((queries) => findInParts(queries, query, parts, cursor));
    const { shown, next } = pageOf(found, cursor);
    return { runs: shown.map((row) => summaryOf(row, row.updatedAt)), next };
  }

  async find(runId: RunId): Promise<RunSummary | undefined> {
    const row = await this.#database.statements.get<ListedRow>(summaryOfRun, runId);
    return row === undefined ? undefined : summaryOf(row, row.updatedAt);
  }
}

async function findInParts(
  queries: Queries,
  query: RunQuery,
  parts: readonly (string | undefined)[],
  cursor: RunCursor,
): Promise<readonly ListedRow[]> {
  const found: ListedRow[] = [];
  for (const rows of parts) found.push(...(await find(queries, query, rows, cursor)));
  return found.toSorted(newestFirst(cursor));
}

function find(
  queries: Queries,
  query: RunQuery,
  rows: string | undefined,
  cursor: RunCursor,
): Promise<ListedRow[]> {
  const where = conditionsOf(query, rows, cursor);
  const order = cursor.isByTime ? "created_at DESC, id DESC" : "id DESC";
  return queries.all<ListedRow>(
    `SELECT ${listedColumns} FROM {runs} AS runs WHERE ${where.sql} ORDER BY ${order} LIMIT ${where.value(cursor.limit + 1)}`,
    ...where.values,
  );
}

/** S5: returns the newest unfinished run of an agent in a session that is no compaction. */
export async function findUnfinished(
  queries: Queries,
  { agentId, sessionId }: Pick<RunRecord, "agentId" | "sessionId">,
): Promise<RunSummary | undefined> {
  const row = await queries.get<ListedRow>(unfinishedIn, sessionId, agentId);
  return row === undefined ? undefined : summaryOf(row, row.updatedAt);
}

/** Returns a run in this session that has not ended, or has unread mail that may resume it. */
export async function findUnderWay(queries: Queries, sessionId: SessionId): Promise<RunSummary | undefined> {
  const row = await queries.get<ListedRow>(underWayIn, sessionId);
  return row === undefined ? undefined : summaryOf(row, row.updatedAt);
}

/** S5: whether a run compacts the session. */
export async function isBeingCompacted(queries: Queries, sessionId: SessionId): Promise<boolean> {
  return (await queries.get(compactionIn, sessionId)) !== undefined;
}
