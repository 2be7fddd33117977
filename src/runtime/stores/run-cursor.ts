import {
  agentNameOf,
  checkChoice,
  describeValue,
  Fault,
  matchesScore,
  readScoreFilter,
  runKinds,
  runSorts,
  runSummaryStatuses,
  type RunCountQuery,
  type RunQuery,
  type RunRecord,
  type RunScore,
  type RunSort,
  type RunSummaryStatus,
} from "../../kernel/index.ts";

const defaultLimit = 50;

/**
 * Maximum length, in characters, of a top-level string of a run's metadata with its name, up to which `list` can
 * select runs by it.
 */
const longestLabel = 1_024;

/** Number of runs at which a count ends. */
const defaultMost = 10_000;

/** The value that represents the cost of a run with an unknown price, in the order of costs. */
export const unknownCost = -1;

/** Position of a run in a list. `place` is its position in the order in which runs were stored. */
export interface RunPlace {
  readonly place: number;
  readonly createdAt: number;
  /** US dollars, or `unknownCost`. */
  readonly cost: number;
}

/** A query with its defaults, after its values were checked. */
export interface RunCursor {
  /** Only runs after this one in the list match. */
  readonly after: RunPlace;
  readonly limit: number;
  readonly sort: RunSort;
  /** If absent, runs of any status match. */
  readonly statuses?: readonly RunSummaryStatus[];
  /** Strings that the metadata must have at its top level, by name. */
  readonly labels: readonly (readonly [name: string, value: string])[];
}

const last = Number.MAX_SAFE_INTEGER;
const beforeAll: RunPlace = { place: last, createdAt: last, cost: Number.MAX_VALUE };

export function cursorOf(query: RunQuery, method = "list()"): RunCursor {
  const { limit = defaultLimit, sort = "newest", status, kind } = query;
  checkLimit(limit);
  checkChoice(method, "sort", sort, runSorts);
  checkChoice(method, "kind", kind, runKinds);
  for (const name of ["createdAfter", "createdBefore", "endedAfter", "endedBefore"] as const)
    checkNumber(method, name, query[name], "a time in epoch milliseconds");
  for (const name of ["costAbove", "costBelow"] as const)
    checkNumber(method, name, query[name], "an amount in US dollars");
  for (const name of ["userId", "tenantId"] as const) checkName(method, name, query[name]);
  if (query.score !== undefined) readScoreFilter(method, query.score);
  const cursor = { after: placeOf(query, sort), limit, sort, labels: labelsOf(query, method) };
  if (status === undefined) return cursor;
  const statuses = [...new Set([status].flat())];
  for (const each of statuses) checkChoice(method, "status", each, runSummaryStatuses);
  return { ...cursor, statuses };
}

/** Returns a cursor for a count. `limit` is the number at which the count stops. */
export function countCursorOf(query: RunCountQuery): RunCursor {
  return cursorOf({ ...query, limit: query.limit ?? defaultMost }, "count()");
}

/** Throws `invalid_argument` if the value is not a valid number of items for a page. */
export function checkLimit(limit: number): void {
  if (Number.isSafeInteger(limit) && limit >= 1) return;
  throw new Fault("invalid_argument", `invalid limit ${limit}: expected an integer of at least 1`);
}

function checkNumber(method: string, name: string, value: unknown, expected: string): void {
  if (value === undefined || Number.isFinite(value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(value)} of ${method}: expected ${expected}`,
  );
}

/** Throws `invalid_argument` if the value is neither a text nor `null`. */
export function checkName(method: string, name: string, value: unknown): void {
  if (value === undefined || value === null || typeof value === "string") return;
  throw new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(value)} of ${method}: expected a text, or null for runs without one`,
  );
}

const cursorForms: Readonly<Record<RunSort, RegExp>> = {
  newest: /^([1-9][0-9]{0,15})@([0-9]{1,16})$/,
  costliest: /^([1-9][0-9]{0,15})\$(-1|[0-9][0-9.e+-]{0,30})$/,
};

function placeOf({ after }: RunQuery, sort: RunSort): RunPlace {
  if (after === undefined) return beforeAll;
  const [, place, value] = cursorParts(cursorForms[sort], after).map(Number);
  if (place === undefined || value === undefined || !Number.isFinite(value))
    throw new Fault(
      "invalid_argument",
      `invalid cursor ${describeValue(after)}: pass the \`next\` of an earlier page of runs with the same query`,
    );
  return { place, createdAt: value, cost: value };
}

/** Returns the value by which a list is sorted. Runs with equal values are sorted by `place`. */
export function sortedBy({ sort }: RunCursor, { createdAt, cost }: RunPlace): number {
  return sort === "newest" ? createdAt : cost;
}

/**
 * Returns the parts of a cursor. Empty if the value is not a text of this form, or is a number that looks like a
 * cursor.
 */
export function cursorParts(form: RegExp, cursor: unknown): readonly (string | undefined)[] {
  return (typeof cursor === "string" ? form.exec(cursor) : null) ?? [];
}

function labelsOf({ metadata }: RunQuery, method: string): RunCursor["labels"] {
  if (metadata === undefined) return [];
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))
    throw new Fault(
      "invalid_argument",
      `invalid metadata ${describeValue(metadata)} of ${method}: expected an object of strings`,
    );
  const labels = Object.entries(metadata);
  for (const [name, value] of labels)
    if (!isLabel(name, value))
      throw new Fault(
        "invalid_argument",
        `invalid metadata.${name.slice(0, longestLabel)} ${describeValue(value)} of ${method}: expected a string that has, with its name, at most ${longestLabel} characters`,
      );
  return labels;
}

/** Whether `list` can select runs by this member of their metadata. */
export function isLabel(name: string, value: unknown): value is string {
  if (typeof value !== "string" || name.length + value.length > longestLabel) return false;
  return name.isWellFormed() && value.isWellFormed();
}

/** The fields of a run that a query checks, apart from its status. */
export interface SelectedRun extends RunPlace {
  readonly record: RunRecord;
  readonly endedAt: number | null;
  readonly scores: readonly RunScore[];
}

/** Whether a run matches the query, apart from its status. */
export function matches(
  { record, endedAt, cost, scores }: SelectedRun,
  query: RunQuery,
  { labels }: RunCursor,
): boolean {
  const { agentName, createdAfter, createdBefore, endedAfter, endedBefore, costAbove, costBelow } = query;
  const { score } = query;
  const { createdAt, metadata } = record;
  for (const name of ["sessionId", "agentId", "tenantId", "userId", "kind"] as const)
    if (query[name] !== undefined && query[name] !== record[name]) return false;
  if (agentName !== undefined && agentName !== agentNameOf(record.agentId)) return false;
  return (
    isBetween(createdAt, createdAfter, createdBefore) &&
    isBetween(endedAt, endedAfter, endedBefore) &&
    isBetween(cost === unknownCost ? null : cost, costAbove, costBelow) &&
    (score === undefined || scores.some((each) => matchesScore(each, score))) &&
    labels.every(([name, value]) => Object.hasOwn(metadata, name) && metadata[name] === value)
  );
}

/** Whether a value is between bounds. `null` is between no bounds. */
function isBetween(value: number | null, above: number | undefined, below: number | undefined): boolean {
  if (above === undefined && below === undefined) return true;
  return value !== null && value > (above ?? -Infinity) && value < (below ?? Infinity);
}

/** Compares two runs for sorting. */
export function inListOrder(cursor: RunCursor): (one: RunPlace, other: RunPlace) => number {
  return (one, other) => sortedBy(cursor, other) - sortedBy(cursor, one) || other.place - one.place;
}

/** Returns one page. `found` is sorted and contains `limit + 1` items if there is another page. */
export function pageOf<Found extends RunPlace>(
  found: readonly Found[],
  cursor: RunCursor,
): { readonly shown: readonly Found[]; readonly next: string | null } {
  const { limit, sort } = cursor;
  const shown = found.slice(0, limit);
  const end = shown.at(-1);
  if (end === undefined || found.length <= limit) return { shown, next: null };
  return { shown, next: `${end.place}${sort === "newest" ? "@" : "$"}${sortedBy(cursor, end)}` };
}

/** Returns the numbers in a position that `changes` has returned. */
export function changePosition(after: string, count: number): readonly number[] {
  const numbers = cursorParts(/^[0-9]{1,16}(?:-[0-9]{1,16})*$/, after).flatMap((text = "") =>
    text.split("-").map(Number),
  );
  if (numbers.length === count) return numbers;
  throw new Fault(
    "invalid_argument",
    `invalid position ${describeValue(after)} of changes(): pass the \`next\` of an earlier call`,
  );
}
