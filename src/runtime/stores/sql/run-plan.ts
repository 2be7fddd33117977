import {
  runKinds,
  runStatuses,
  type RunKind,
  type RunQuery,
  type RunSummaryStatus,
  type ScoreFilter,
} from "../../../kernel/index.ts";
import {
  isNotPausedText,
  isPausedText,
  noTenant,
  RunState,
  tenantText,
  waitingText,
} from "../codec/stored-run.ts";
import { sortedBy, unknownCost, type RunCursor } from "../run-cursor.ts";
import { Conditions } from "./conditions.ts";
import type { Dialect } from "./dialect.ts";
import { isScheduled, isSuspended } from "./run-row.ts";
import { get, type Value, type Work } from "./work.ts";

/** The rows with a status: their SQL condition, and the index that finds them. */
export interface StatusRows {
  readonly where: string;
  readonly index: string;
  /** Selects the runs whose owners have died (`gone`), or all others. If absent, owners do not matter. */
  readonly owners?: "gone" | "alive";
  /**
   * Present if only few runs match this condition at a time, so that its index is more selective than one for
   * another filter.
   */
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
      where: `state = ${RunState.QUEUED} AND ended IS NULL AND ${isNotPausedText} AND run_id IS NOT NULL`,
      index: "runs_queued",
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

/**
 * Returns the rows with a status, in parts that do not overlap. A run may also end as `paused`. `isAnyGone` says
 * whether any owner of runs has died.
 */
export function rowsOf(status: RunSummaryStatus, isAnyGone: boolean): readonly StatusRows[] {
  const end = (runStatuses as readonly string[]).indexOf(status);
  const ended = end < 0 ? [] : [{ where: `ended = ${end} AND ended IS NOT NULL`, index: "runs_by_end" }];
  const open = unfinished[status]?.filter(({ owners }) => owners !== "gone" || isAnyGone) ?? [];
  return [...open, ...ended];
}

/** A way to read a part of a list: an index, and the conditions for which it is used. */
interface Way {
  /** The SQL after the table name in SQLite, or `labels` for the table of the labels. */
  readonly index: string;
  /** The conditions that narrow the search in the index. */
  readonly terms: readonly Term[];
  /**
   * Whether the index returns the runs in the order of their creation, so that a range of times narrows the search.
   */
  readonly isByTime: boolean;
}

type Term = readonly [sql: string, ...values: readonly Value[]];

/** How a part of a list is read. */
interface RunPlan {
  /** The tables, with the index that SQLite uses. */
  readonly from: string;
  readonly where: Conditions;
  readonly order: string;
}

/**
 * Number of index entries up to which all their runs are read and sorted. If there are more, the list is read in
 * its own order until the page is full.
 */
const few = 1_000;

export interface PartOptions {
  readonly dialect: Dialect;
  readonly query: RunQuery;
  readonly rows: StatusRows | undefined;
  readonly cursor: RunCursor;
  /** Owners whose process has ended. */
  readonly gone: readonly string[];
}

/**
 * Plans how to read a part of a list. SQLite reads from the first index that has few entries for the query.
 * PostgreSQL chooses the index itself.
 */
export function* planOf(options: PartOptions): Work<RunPlan> {
  const { dialect, query, rows, cursor, gone } = options;
  const { after, sort, labels } = cursor;
  const way = dialect.probesIndexes ? yield* bestWay(options) : undefined;
  const isByLabel = way?.index === "labels" && dialect.labelSource !== undefined;
  const [first] = isByLabel ? labels : [];
  const where = new Conditions();
  for (const [sql, ...values] of termsOf(dialect, query)) where.add(sql, ...values);
  where.add("runs.run_id IS NOT NULL");
  if (rows !== undefined) where.add(rows.where);
  if (rows?.owners !== undefined && gone.length > 0) {
    const names = gone.map((owner) => where.value(owner)).join(", ");
    where.add(`owner ${rows.owners === "gone" ? "IN" : "NOT IN"} (${names})`);
  }
  for (const label of labels)
    if (label !== first) where.add(dialect.hasLabel(where.value(label[0]), where.value(label[1])));
  if (isByLabel) for (const [sql, ...values] of way.terms) where.add(sql, ...values);
  const [time, id] = isByLabel ? ["run_labels.created_at", "run_labels.run"] : ["created_at", "id"];
  const value = sort === "newest" ? time : "cost";
  where.add(`(${value}, ${id}) < (?, ?)`, sortedBy(cursor, after), after.place);
  return {
    from: isByLabel ? dialect.labelSource : `{runs} AS runs ${way?.index ?? ""}`,
    where,
    order: `${value} DESC, ${id} DESC`,
  };
}

function* bestWay({ dialect, query, rows, cursor }: PartOptions): Work<Way> {
  const { sort } = cursor;
  const ways = waysOf(dialect, query, rows, cursor);
  const [only] = ways;
  if (
    only !== undefined &&
    (isFixed(query, rows) || (ways.length === 1 && only.isByTime && sort === "newest"))
  )
    return only;
  for (const way of ways) if ((yield* entriesOf(dialect, query, way)) < few) return way;
  if (sort === "costliest") return { index: "INDEXED BY runs_by_cost", terms: [], isByTime: false };
  return ways.find(({ isByTime }) => isByTime) ?? byCreation;
}

const byCreation: Way = { index: "INDEXED BY runs_by_creation", terms: [], isByTime: true };

/** Whether the first index is always the best. */
function isFixed({ sessionId }: RunQuery, rows: StatusRows | undefined): boolean {
  return sessionId !== undefined || rows?.isRare === true;
}

/** Counts the matching entries of an index, up to `few`. */
function* entriesOf(
  { labelSource }: Dialect,
  query: RunQuery,
  { index, terms, isByTime }: Way,
): Work<number> {
  const where = new Conditions();
  for (const [sql, ...values] of terms) where.add(sql, ...values);
  const isByLabel = index === "labels";
  const time = isByLabel ? "run_labels.created_at" : "created_at";
  if (isByTime)
    for (const [sql, ...values] of boundsOf(time, query.createdAfter, query.createdBefore))
      where.add(sql, ...values);
  if (!isByLabel) where.add("run_id IS NOT NULL");
  const from =
    isByLabel && labelSource !== undefined ? "{run_labels} AS run_labels" : `{runs} AS runs ${index}`;
  const sql = `SELECT count(*) AS count FROM (SELECT 1 FROM ${from} WHERE ${where.sql} LIMIT ${few})`;
  return (yield* get<{ readonly count: number }>(sql, ...where.values))?.count ?? 0;
}

/** Returns the indexes that can be used for a query, usually the most selective first. */
function waysOf(
  dialect: Dialect,
  query: RunQuery,
  rows: StatusRows | undefined,
  { labels }: RunCursor,
): readonly Way[] {
  const { sessionId, agentId, agentName, tenantId, userId, kind, score } = query;
  const ways: Way[] = [];
  const add = (index: string, terms: readonly Term[], isByTime = true): void => {
    ways.push({ index: index === "labels" ? index : `INDEXED BY ${index}`, terms, isByTime });
  };
  // Few runs have scores: their ids are read first.
  const scored: Way[] =
    score === undefined ? [] : [{ index: "NOT INDEXED", terms: [scoreTerm(score)], isByTime: false }];
  // The index of a tenant holds only runs with one. Without tenants it would hold nothing, and with them few runs have none.
  const ofTenant = tenantId === undefined || tenantId === null ? [] : [tenantTerm(tenantId)];
  if (sessionId !== undefined) add("runs_of_session", [["session_id = ?", sessionId]], false);
  if (rows?.isRare === true) add(rows.index, [[rows.where]], false);
  if (kind !== undefined && runKinds.indexOf(kind) > 0) add("runs_of_kind", [[kindTerm(kind)]]);
  ways.push(...scored);
  const [label] = labels;
  if (label !== undefined)
    add("labels", [
      ["run_labels.name = ? AND run_labels.value = ?", ...label],
      ...ofTenant.map(([sql, ...values]): Term => [
        sql.replaceAll("runs.tenant", "run_labels.tenant"),
        ...values,
      ]),
    ]);
  if (userId !== undefined && userId !== null)
    add(ofTenant.length > 0 ? "runs_of_user_in_tenant" : "runs_of_user", [...ofTenant, userTerm(userId)]);
  if (agentId !== undefined) add("runs_of_agent", [["agent_id = ?", agentId]]);
  if (agentName !== undefined) add("runs_of_name", [[`${dialect.agentName} = ?`, agentName]]);
  const ends = boundsOf("ended_at", query.endedAfter, query.endedBefore);
  if (ends.length > 0) add("runs_by_age_of_end", [["ended_at IS NOT NULL"], ...ends], false);
  const costs = boundsOf("cost", query.costAbove, query.costBelow);
  if (costs.length > 0) add("runs_by_cost", [[`cost <> ${unknownCost}`], ...costs], false);
  if (ofTenant.length > 0) add("runs_of_tenant", ofTenant);
  if (rows !== undefined && rows.isRare !== true) add(rows.index, [[rows.where]]);
  return ways;
}

function termsOf({ agentName: nameOfAgent }: Dialect, query: RunQuery): readonly Term[] {
  const { sessionId, agentId, agentName, tenantId, userId, kind } = query;
  const terms: Term[] = [];
  if (sessionId !== undefined) terms.push(["session_id = ?", sessionId]);
  if (agentId !== undefined) terms.push(["agent_id = ?", agentId]);
  if (agentName !== undefined) terms.push([`${nameOfAgent} = ?`, agentName]);
  if (tenantId === null) terms.push([`runs.tenant = '${noTenant}'`]);
  else if (tenantId !== undefined) terms.push(tenantTerm(tenantId));
  if (userId === null) terms.push(["user_id IS NULL"]);
  else if (userId !== undefined) terms.push(userTerm(userId));
  if (kind !== undefined) terms.push([kindTerm(kind)]);
  terms.push(...boundsOf("runs.created_at", query.createdAfter, query.createdBefore));
  const ends = boundsOf("ended_at", query.endedAfter, query.endedBefore);
  if (ends.length > 0) terms.push(["ended_at IS NOT NULL"], ...ends);
  const costs = boundsOf("cost", query.costAbove, query.costBelow);
  if (costs.length > 0) terms.push([`cost <> ${unknownCost}`], ...costs);
  if (query.score !== undefined) terms.push(scoreTerm(query.score));
  return terms;
}

function scoreTerm({ name, above, below }: ScoreFilter): Term {
  const bounds = boundsOf("value", above, below);
  const conditions = ["replaced_at IS NULL", "name = ?", ...bounds.map(([sql]) => sql)];
  const sql = `runs.id IN (SELECT run FROM {run_scores} WHERE ${conditions.join(" AND ")})`;
  return [sql, name, ...bounds.flatMap(([, ...values]) => values)];
}

function tenantTerm(tenantId: string): Term {
  return [`runs.tenant = ? AND runs.tenant <> '${noTenant}'`, tenantText(tenantId)];
}

function userTerm(userId: string): Term {
  return ["user_id = ? AND user_id IS NOT NULL", userId];
}

function boundsOf(column: string, above: number | undefined, below: number | undefined): readonly Term[] {
  const terms: Term[] = [];
  if (above !== undefined) terms.push([`${column} > ?`, above]);
  if (below !== undefined) terms.push([`${column} < ?`, below]);
  return terms;
}

/**
 * Returns the SQL condition for a kind of run. The index contains only the kinds after the first one, which most
 * runs have.
 */
function kindTerm(kind: RunKind): string {
  const place = runKinds.indexOf(kind);
  return place === 0 ? "kind = 0" : `kind = ${place} AND kind > 0`;
}
