import {
  runStatuses,
  type RunPage,
  type RunQuery,
  type RunId,
  type RunRecord,
  type RunSummaryStatus,
  type RunSummary,
  type SessionId,
} from "../../../../kernel/index.ts";
import { cursorOf, pageOf } from "../../run-cursor.ts";
import type { CommitRows } from "./commit-rows.ts";
import { noTenant, recordOf, runColumns, RunState, tenantText, type RunRow } from "../db/run-row.ts";
import type { Tables } from "../db/tables.ts";

interface ListedRow extends RunRow {
  readonly place: number;
  readonly state: number;
  readonly ended: number | null;
  readonly endedAt: number | null;
}

const listedColumns = `id AS place, ${runColumns}, state, ended, ended_at AS endedAt`;

const summaryOfRun = `SELECT ${listedColumns} FROM runs WHERE run_id = ?`;

const underWayIn = `SELECT ${listedColumns} FROM runs INDEXED BY runs_of_session
  WHERE session_id = ? AND run_id IS NOT NULL
    AND (ended IS NULL OR EXISTS (SELECT 1 FROM mail WHERE run = runs.id)) ORDER BY ended LIMIT 1`;

/** A condition and its parameters. */
type Term = readonly [sql: string, ...values: (string | number)[]];

const states: Readonly<Partial<Record<RunSummaryStatus, number>>> = {
  pending: RunState.READY,
  running: RunState.OWNED,
  suspended: RunState.SUSPENDED,
};

/** Lists runs, newest first. Reads from the most selective index that fits the query until the page is full. */
export class RunList {
  readonly #tables: Tables;
  readonly #rows: CommitRows;

  constructor(tables: Tables, rows: CommitRows) {
    this.#tables = tables;
    this.#rows = rows;
  }

  async read(query: RunQuery = {}): Promise<RunPage> {
    const { before, limit, statuses } = cursorOf(query);
    return this.#tables.read(() =>
      this.#tables.database.transaction("DEFERRED", () => {
        const found = (statuses ?? [undefined])
          .flatMap((status) => this.#find(query, status, before, limit + 1))
          .toSorted((one, other) => other.place - one.place);
        const { shown, next } = pageOf(found, limit);
        return { runs: this.#summaries(shown), next };
      }),
    );
  }

  async find(runId: RunId): Promise<RunSummary | undefined> {
    return this.#tables.read(() =>
      this.#tables.database.transaction("DEFERRED", () => {
        const row = this.#tables.database.get<ListedRow>(summaryOfRun, runId);
        return row === undefined ? undefined : this.#summaries([row])[0];
      }),
    );
  }

  /** S5: returns the newest unfinished run of an agent in a session. Call inside a transaction. */
  findUnfinished({ agentId, sessionId }: Pick<RunRecord, "agentId" | "sessionId">): RunSummary | undefined {
    const [row] = this.#tables.database.all<ListedRow>(
      `SELECT ${listedColumns} FROM runs INDEXED BY runs_of_session
       WHERE session_id = ? AND ended IS NULL AND agent_id = ? AND run_id IS NOT NULL ORDER BY id DESC LIMIT 1`,
      sessionId,
      agentId,
    );
    return row === undefined ? undefined : this.#summaries([row])[0];
  }

  /**
   * Returns a run in this session that has not ended, or has unread mail that may resume it. Call inside a transaction.
   */
  findUnderWay(sessionId: SessionId): RunSummary | undefined {
    const row = this.#tables.database.get<ListedRow>(underWayIn, sessionId);
    return row === undefined ? undefined : this.#summaries([row])[0];
  }

  #summaries(rows: readonly ListedRow[]): RunSummary[] {
    const updated = this.#rows.lastTimes(rows.map(({ place }) => place));
    return rows.map((row) => ({
      ...recordOf(row),
      status: standingOf(row),
      updatedAt: updated.get(row.place) ?? row.created_at,
      endedAt: row.endedAt,
    }));
  }

  #find(query: RunQuery, status: RunSummaryStatus | undefined, before: number, limit: number): ListedRow[] {
    const { index, terms } = planOf(query, status);
    return this.#tables.database.all<ListedRow>(
      `SELECT ${listedColumns} FROM runs ${index}
       WHERE ${[...terms.map(([sql]) => sql), "run_id IS NOT NULL AND id < ?"].join(" AND ")}
       ORDER BY id DESC LIMIT ?`,
      ...terms.flatMap(([, ...values]) => values),
      before,
      limit,
    );
  }
}

function planOf(
  { sessionId, agentId, tenantId }: RunQuery,
  status: RunSummaryStatus | undefined,
): { readonly index: string; readonly terms: readonly Term[] } {
  const terms: Term[] = [];
  if (sessionId !== undefined) terms.push(["session_id = ?", sessionId]);
  if (agentId !== undefined) terms.push(["agent_id = ?", agentId]);
  if (tenantId === null) terms.push([`tenant = '${noTenant}'`]);
  else if (tenantId !== undefined)
    terms.push([`tenant = ? AND tenant <> '${noTenant}'`, tenantText(tenantId)]);
  const state = status === undefined ? undefined : states[status];
  if (state !== undefined) terms.push([`state = ${state} AND ended IS NULL`]);
  else if (status !== undefined)
    terms.push(["ended = ?", (runStatuses as readonly string[]).indexOf(status)]);
  if (sessionId !== undefined) return { index: "INDEXED BY runs_of_session", terms };
  // Few runs are ready or owned at a time. The always-true conditions let SQLite use the partial indexes.
  if (status === "pending")
    return {
      index: "INDEXED BY runs_ready",
      terms: agentId === undefined ? [...terms, ["agent_id > ''"]] : terms,
    };
  if (status === "running") return { index: "INDEXED BY runs_owned", terms: [...terms, ["owner > ''"]] };
  if (agentId !== undefined) return { index: "INDEXED BY runs_of_agent", terms };
  // The index holds only runs with a tenant. Without tenants it would hold nothing, and with them few runs have none.
  if (tenantId !== undefined && tenantId !== null) return { index: "INDEXED BY runs_of_tenant", terms };
  if (status === "suspended") return { index: "INDEXED BY runs_suspended", terms };
  return { index: status === undefined ? "NOT INDEXED" : "INDEXED BY runs_by_end", terms };
}

function standingOf({ state, ended }: Pick<ListedRow, "state" | "ended">): RunSummaryStatus {
  if (ended !== null) return runStatuses[ended] ?? "completed";
  if (state === RunState.READY) return "pending";
  return state === RunState.OWNED ? "running" : "suspended";
}
