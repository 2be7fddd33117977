import {
  runKinds,
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
import { statusOf, type Holder } from "../../run-status.ts";
import type { CommitRows } from "./commit-rows.ts";
import {
  isScheduled,
  isSuspended,
  noTenant,
  pausedText,
  recordOf,
  runColumns,
  RunState,
  spendOf,
  standingOf,
  tenantText,
  waitingText,
  type RunRow,
} from "../db/run-row.ts";
import type { Tables } from "../db/tables.ts";

interface ListedRow extends RunRow {
  readonly place: number;
  readonly state: number;
  readonly standing: string | null;
  readonly ended: number | null;
  readonly endedAt: number | null;
  readonly isScheduled: number;
  readonly spent: string | null;
}

const listedColumns = `id AS place, ${runColumns}, state, standing, ended, ended_at AS endedAt, spent,
  ${isScheduled} AS isScheduled`;

const summaryOfRun = `SELECT ${listedColumns} FROM runs WHERE run_id = ?`;

const underWayIn = `SELECT ${listedColumns} FROM runs INDEXED BY runs_of_session
  WHERE session_id = ? AND run_id IS NOT NULL
    AND (ended IS NULL OR EXISTS (SELECT 1 FROM mail WHERE run = runs.id)) ORDER BY ended LIMIT 1`;

const compactionIn = `SELECT ${listedColumns} FROM runs INDEXED BY runs_of_session
  WHERE session_id = ? AND ended IS NULL AND run_id IS NOT NULL AND kind = ${runKinds.indexOf("compaction")} LIMIT 1`;

/** A condition and its parameters. */
type Term = readonly [sql: string, ...values: (string | number)[]];

/** The rows of a status: their condition, and the index that finds them. */
interface StatusRows {
  readonly where: string;
  readonly index: string;
  /** Few runs have this condition at a time, so that its index is more selective than one for another filter. */
  readonly isRare?: boolean;
}

// The always-true conditions `agent_id > ''` and `owner > ''` let SQLite use the partial indexes.
const unfinished: Readonly<Partial<Record<RunSummaryStatus, readonly StatusRows[]>>> = {
  pending: [
    {
      where: `state = ${RunState.READY} AND ended IS NULL AND standing IS NOT '${pausedText}' AND agent_id > ''`,
      index: "runs_ready",
      isRare: true,
    },
    { where: `${isSuspended} AND ${isScheduled}`, index: "runs_scheduled" },
  ],
  running: [
    {
      where: `state = ${RunState.OWNED} AND ended IS NULL AND standing IS NULL AND owner > ''`,
      index: "runs_owned",
      isRare: true,
    },
  ],
  waiting: [
    {
      where: `${isSuspended} AND NOT ${isScheduled} AND standing IS NOT '${pausedText}'`,
      index: "runs_suspended",
    },
    {
      where: `state = ${RunState.OWNED} AND ended IS NULL AND standing >= '${waitingText}' AND owner > ''`,
      index: "runs_owned",
      isRare: true,
    },
  ],
  paused: [{ where: `standing = '${pausedText}' AND ended IS NULL`, index: "runs_paused", isRare: true }],
};

/** The rows that have a status, in disjoint parts. A run may also end as `paused`. */
function rowsOf(status: RunSummaryStatus): readonly StatusRows[] {
  const end = (runStatuses as readonly string[]).indexOf(status);
  const ended = end < 0 ? [] : [{ where: `ended = ${end}`, index: "runs_by_end" }];
  return [...(unfinished[status] ?? []), ...ended];
}

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
        const parts = statuses?.flatMap(rowsOf) ?? [undefined];
        const found = parts
          .flatMap((rows) => this.#find(query, rows, before, limit + 1))
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

  /** S5: returns a run that excludes a new run of this kind in its session. Call inside a transaction. */
  findExcluding({ kind, sessionId }: Pick<RunRecord, "kind" | "sessionId">): RunSummary | undefined {
    if (kind === "compaction") return this.findUnderWay(sessionId);
    const row = this.#tables.database.get<ListedRow>(compactionIn, sessionId);
    return row === undefined ? undefined : this.#summaries([row])[0];
  }

  #summaries(rows: readonly ListedRow[]): RunSummary[] {
    const updated = this.#rows.lastTimes(rows.map(({ place }) => place));
    return rows.map((row) => ({
      ...recordOf(row),
      ...presentStatus(row),
      ...spendOf(row.spent),
      updatedAt: updated.get(row.place) ?? row.created_at,
      endedAt: row.endedAt,
    }));
  }

  #find(query: RunQuery, rows: StatusRows | undefined, before: number, limit: number): ListedRow[] {
    const { index, terms } = planOf(query, rows);
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
  rows: StatusRows | undefined,
): { readonly index: string; readonly terms: readonly Term[] } {
  const terms: Term[] = [];
  if (sessionId !== undefined) terms.push(["session_id = ?", sessionId]);
  if (agentId !== undefined) terms.push(["agent_id = ?", agentId]);
  if (tenantId === null) terms.push([`tenant = '${noTenant}'`]);
  else if (tenantId !== undefined)
    terms.push([`tenant = ? AND tenant <> '${noTenant}'`, tenantText(tenantId)]);
  if (rows !== undefined) terms.push([rows.where]);
  return { index: indexFor({ sessionId, agentId, tenantId }, rows), terms };
}

/** The most selective index for a query. */
function indexFor(
  {
    sessionId,
    agentId,
    tenantId,
  }: { [Key in "sessionId" | "agentId" | "tenantId"]: RunQuery[Key] | undefined },
  rows: StatusRows | undefined,
): string {
  if (sessionId !== undefined) return "INDEXED BY runs_of_session";
  if (rows?.isRare === true) return `INDEXED BY ${rows.index}`;
  if (agentId !== undefined) return "INDEXED BY runs_of_agent";
  // The index holds only runs with a tenant. Without tenants it would hold nothing, and with them few runs have none.
  if (tenantId !== undefined && tenantId !== null) return "INDEXED BY runs_of_tenant";
  return rows === undefined ? "NOT INDEXED" : `INDEXED BY ${rows.index}`;
}

type StatusRow = Pick<ListedRow, "state" | "standing" | "ended" | "isScheduled">;

function presentStatus(row: StatusRow): Pick<RunSummary, "status" | "waitsFor"> {
  const { standing, ended } = row;
  const end = ended === null ? null : { status: runStatuses[ended] ?? "completed" };
  return statusOf(end, standingOf(standing), holderOf(row));
}

function holderOf({ state, isScheduled: isLater }: StatusRow): Holder {
  if (state === RunState.READY) return "ready";
  if (state === RunState.OWNED) return "owned";
  return isLater === 1 ? "scheduled" : "suspended";
}
