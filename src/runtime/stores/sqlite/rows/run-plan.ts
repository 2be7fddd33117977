import {
  runKinds,
  runStatuses,
  type RunKind,
  type RunQuery,
  type RunSummaryStatus,
} from "../../../../kernel/index.ts";
import type { RunCursor } from "../../run-cursor.ts";
import { noTenant, pausedText, RunState, tenantText, waitingText } from "../../codec/stored-run.ts";
import { isScheduled, isSuspended } from "../../sql/run-row.ts";

/** A condition and its parameters. */
type Term = readonly [sql: string, ...values: (string | number)[]];

/** The rows of a status: their condition, and the index that finds them. */
export interface StatusRows {
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
    {
      where: `state = ${RunState.HELD} AND ended IS NULL AND standing IS NOT '${pausedText}' AND session_id > ''`,
      index: "runs_held",
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
export function rowsOf(status: RunSummaryStatus): readonly StatusRows[] {
  const end = (runStatuses as readonly string[]).indexOf(status);
  const ended = end < 0 ? [] : [{ where: `ended = ${end}`, index: "runs_by_end" }];
  return [...(unfinished[status] ?? []), ...ended];
}

/** How a part of a list is read. */
interface RunPlan {
  /** The tables, with the index that is used. */
  readonly from: string;
  readonly terms: readonly Term[];
  readonly order: string;
}

/** Reads the labels in the order of the runs, so that a page of runs with a label costs O(page). */
const ofLabel = "run_labels CROSS JOIN runs ON runs.id = run_labels.run";

export function planOf(query: RunQuery, rows: StatusRows | undefined, cursor: RunCursor): RunPlan {
  const { after, isByTime, labels } = cursor;
  const from = sourceFor(query, rows, cursor);
  const id = from === ofLabel ? "run_labels.run" : "id";
  const [first] = from === ofLabel ? labels : [];
  const terms: Term[] = [...conditionsOf(query), ["run_id IS NOT NULL"]];
  if (rows !== undefined) terms.push([rows.where]);
  for (const label of labels)
    terms.push([
      label === first
        ? "run_labels.name = ? AND run_labels.value = ?"
        : "EXISTS (SELECT 1 FROM run_labels AS more WHERE more.name = ? AND more.value = ? AND more.run = runs.id)",
      ...label,
    ]);
  if (isByTime) terms.push([`(created_at, ${id}) < (?, ?)`, after.createdAt, after.place]);
  else terms.push([`${id} < ?`, after.place]);
  return { from, terms, order: isByTime ? `created_at DESC, ${id} DESC` : `${id} DESC` };
}

function conditionsOf(query: RunQuery): Term[] {
  const { sessionId, agentId, tenantId, userId, kind, createdAfter, createdBefore } = query;
  const terms: Term[] = [];
  if (sessionId !== undefined) terms.push(["session_id = ?", sessionId]);
  if (agentId !== undefined) terms.push(["agent_id = ?", agentId]);
  if (tenantId === null) terms.push([`tenant = '${noTenant}'`]);
  else if (tenantId !== undefined)
    terms.push([`tenant = ? AND tenant <> '${noTenant}'`, tenantText(tenantId)]);
  if (userId === null) terms.push(["user_id IS NULL"]);
  else if (userId !== undefined) terms.push(["user_id = ?", userId]);
  if (kind !== undefined) terms.push([kindTerm(kind)]);
  if (createdAfter !== undefined) terms.push(["created_at > ?", createdAfter]);
  if (createdBefore !== undefined) terms.push(["created_at < ?", createdBefore]);
  return terms;
}

/** The index holds only the kinds after the first, which most runs have. */
function kindTerm(kind: RunKind): string {
  const place = runKinds.indexOf(kind);
  return place === 0 ? "kind = 0" : `kind = ${place} AND kind > 0`;
}

/** The most selective index for a query. */
function sourceFor(query: RunQuery, rows: StatusRows | undefined, { isByTime, labels }: RunCursor): string {
  const { sessionId, agentId, tenantId, userId, kind } = query;
  if (sessionId !== undefined) return "runs INDEXED BY runs_of_session";
  if (rows?.isRare === true) return `runs INDEXED BY ${rows.index}`;
  if (kind !== undefined && runKinds.indexOf(kind) > 0) return "runs INDEXED BY runs_of_kind";
  if (labels.length > 0) return ofLabel;
  if (userId !== undefined && userId !== null) return "runs INDEXED BY runs_of_user";
  if (isByTime) return "runs INDEXED BY runs_by_creation";
  if (agentId !== undefined) return "runs INDEXED BY runs_of_agent";
  // The index holds only runs with a tenant. Without tenants it would hold nothing, and with them few runs have none.
  if (tenantId !== undefined && tenantId !== null) return "runs INDEXED BY runs_of_tenant";
  return rows === undefined ? "runs NOT INDEXED" : `runs INDEXED BY ${rows.index}`;
}
