import {
  runKinds,
  runStatuses,
  type RunKind,
  type RunQuery,
  type RunSummaryStatus,
} from "../../../kernel/index.ts";
import {
  isNotPausedText,
  isPausedText,
  noTenant,
  RunState,
  tenantText,
  waitingText,
} from "../codec/stored-run.ts";
import type { RunCursor } from "../run-cursor.ts";
import { Conditions } from "./conditions.ts";
import type { Dialect } from "./dialect.ts";
import { isScheduled, isSuspended } from "./run-row.ts";

/** The rows of a status: their condition, and the index that finds them. */
export interface StatusRows {
  readonly where: string;
  readonly index: string;
  /** If given, the runs whose owners are gone, or all others. */
  readonly owners?: "gone" | "alive";
  /** Few runs have this condition at a time, so that its index is more selective than one for another filter. */
  readonly isRare?: boolean;
}

// The always-true conditions `agent_id > ''` and `owner > ''` let SQLite use the partial indexes. All conditions repeat those of
// the partial indexes, so that the planners can use them.
const unfinished: Readonly<Partial<Record<RunSummaryStatus, readonly StatusRows[]>>> = {
  pending: [
    {
      where: `state = ${RunState.READY} AND ended IS NULL AND ${isNotPausedText} AND agent_id > ''`,
      index: "runs_ready",
      isRare: true,
    },
    {
      where: `state = ${RunState.HELD} AND ended IS NULL AND ${isNotPausedText} AND session_id > ''`,
      index: "runs_held",
      isRare: true,
    },
    {
      where: `state = ${RunState.OWNED} AND ended IS NULL AND standing IS NULL AND owner > ''`,
      index: "runs_owned",
      owners: "gone",
      isRare: true,
    },
    { where: `${isSuspended} AND ${isScheduled}`, index: "runs_scheduled" },
  ],
  running: [
    {
      where: `state = ${RunState.OWNED} AND ended IS NULL AND standing IS NULL AND owner > ''`,
      index: "runs_owned",
      owners: "alive",
      isRare: true,
    },
  ],
  waiting: [
    {
      where: `${isSuspended} AND NOT ${isScheduled} AND ${isNotPausedText}`,
      index: "runs_suspended",
    },
    {
      where: `state = ${RunState.OWNED} AND ended IS NULL AND standing >= '${waitingText}' AND owner > ''`,
      index: "runs_owned",
      isRare: true,
    },
  ],
  paused: [{ where: `${isPausedText} AND ended IS NULL`, index: "runs_paused", isRare: true }],
};

/** The rows that have a status, in disjoint parts. A run may also end as `paused`. `isAnyGone`: whether an owner of runs is gone. */
export function rowsOf(status: RunSummaryStatus, isAnyGone: boolean): readonly StatusRows[] {
  const end = (runStatuses as readonly string[]).indexOf(status);
  const ended = end < 0 ? [] : [{ where: `ended = ${end} AND ended IS NOT NULL`, index: "runs_by_end" }];
  const open = unfinished[status]?.filter(({ owners }) => owners !== "gone" || isAnyGone) ?? [];
  return [...open, ...ended];
}

/** How a part of a list is read. */
interface RunPlan {
  /** The tables, with the index that SQLite uses. */
  readonly from: string;
  readonly where: Conditions;
  readonly order: string;
}

export function planOf(
  dialect: Dialect,
  query: RunQuery,
  rows: StatusRows | undefined,
  cursor: RunCursor,
  gone: readonly string[],
): RunPlan {
  const { after, isByTime, labels } = cursor;
  const index = indexFor(query, rows, cursor);
  const { labelSource } = dialect;
  const isByLabel = index === "labels" && labelSource !== undefined;
  const from = isByLabel ? labelSource : `{runs} AS runs${index === "labels" ? "" : ` ${index}`}`;
  const id = isByLabel ? "run_labels.run" : "id";
  const [first] = isByLabel ? labels : [];
  const where = conditionsOf(query).add("run_id IS NOT NULL");
  if (rows !== undefined) where.add(rows.where);
  if (rows?.owners !== undefined && gone.length > 0) {
    const names = gone.map((owner) => where.value(owner)).join(", ");
    where.add(`owner ${rows.owners === "gone" ? "IN" : "NOT IN"} (${names})`);
  }
  for (const label of labels) {
    const [name, value] = [where.value(label[0]), where.value(label[1])] as const;
    where.add(
      label === first
        ? `run_labels.name = ${name} AND run_labels.value = ${value}`
        : dialect.hasLabel(name, value),
    );
  }
  if (isByTime) where.add(`(created_at, ${id}) < (?, ?)`, after.createdAt, after.place);
  else where.add(`${id} < ?`, after.place);
  return { from, where, order: isByTime ? `created_at DESC, ${id} DESC` : `${id} DESC` };
}

function conditionsOf(query: RunQuery): Conditions {
  const { sessionId, agentId, tenantId, userId, kind, createdAfter, createdBefore } = query;
  const where = new Conditions();
  if (sessionId !== undefined) where.add("session_id = ?", sessionId);
  if (agentId !== undefined) where.add("agent_id = ?", agentId);
  if (tenantId === null) where.add(`tenant = '${noTenant}'`);
  else if (tenantId !== undefined) where.add(`tenant = ? AND tenant <> '${noTenant}'`, tenantText(tenantId));
  if (userId === null) where.add("user_id IS NULL");
  else if (userId !== undefined) where.add("user_id = ? AND user_id IS NOT NULL", userId);
  if (kind !== undefined) where.add(kindTerm(kind));
  if (createdAfter !== undefined) where.add("created_at > ?", createdAfter);
  if (createdBefore !== undefined) where.add("created_at < ?", createdBefore);
  return where;
}

/** The index holds only the kinds after the first, which most runs have. */
function kindTerm(kind: RunKind): string {
  const place = runKinds.indexOf(kind);
  return place === 0 ? "kind = 0" : `kind = ${place} AND kind > 0`;
}

/** The most selective index for a query in SQLite. `labels`: the table of the labels. */
function indexFor(query: RunQuery, rows: StatusRows | undefined, { isByTime, labels }: RunCursor): string {
  const { sessionId, agentId, tenantId, userId, kind } = query;
  if (sessionId !== undefined) return "INDEXED BY runs_of_session";
  if (rows?.isRare === true) return `INDEXED BY ${rows.index}`;
  if (kind !== undefined && runKinds.indexOf(kind) > 0) return "INDEXED BY runs_of_kind";
  if (labels.length > 0) return "labels";
  if (userId !== undefined && userId !== null) return "INDEXED BY runs_of_user";
  if (isByTime) return "INDEXED BY runs_by_creation";
  if (agentId !== undefined) return "INDEXED BY runs_of_agent";
  // The index holds only runs with a tenant. Without tenants it would hold nothing, and with them few runs have none.
  if (tenantId !== undefined && tenantId !== null) return "INDEXED BY runs_of_tenant";
  return rows === undefined ? "NOT INDEXED" : `INDEXED BY ${rows.index}`;
}
