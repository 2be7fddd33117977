import {
  checkChoice,
  describeValue,
  Fault,
  runKinds,
  runSummaryStatuses,
  type RunQuery,
  type RunRecord,
  type RunSummaryStatus,
} from "../../kernel/index.ts";

const defaultLimit = 50;

/** Maximum length of a top-level string of a run's metadata, with its name, that `list` can select by, in characters. */
const longestLabel = 1_024;

/** Position of a run in a list. `place` is its position in the order in which runs were stored. */
export interface RunPlace {
  readonly place: number;
  readonly createdAt: number;
}

/** A query with its defaults, after its values were checked. */
export interface RunCursor {
  /** Only runs after this one in the list match. */
  readonly after: RunPlace;
  readonly limit: number;
  /** The list is in the order of `createdAt`, and of `place` at equal times. Otherwise in the order of `place`. */
  readonly isByTime: boolean;
  /** If absent, runs of any status match. */
  readonly statuses?: readonly RunSummaryStatus[];
  /** Strings that the metadata has at its top level, by name. */
  readonly labels: readonly (readonly [name: string, value: string])[];
}

const beforeAll: RunPlace = { place: Number.MAX_SAFE_INTEGER, createdAt: Number.MAX_SAFE_INTEGER };

export function cursorOf(query: RunQuery): RunCursor {
  const { limit = defaultLimit, status, kind, createdAfter, createdBefore } = query;
  checkLimit(limit);
  checkChoice("list()", "kind", kind, runKinds);
  for (const name of ["createdAfter", "createdBefore"] as const) checkTime(name, query[name]);
  for (const name of ["userId", "tenantId"] as const) checkName("list()", name, query[name]);
  const isByTime = createdAfter !== undefined || createdBefore !== undefined;
  const cursor = { after: placeOf(query, isByTime), limit, isByTime, labels: labelsOf(query) };
  if (status === undefined) return cursor;
  const statuses = [...new Set([status].flat())];
  for (const each of statuses) checkChoice("list()", "status", each, runSummaryStatuses);
  return { ...cursor, statuses };
}

/** Throws `invalid_argument` if the value is no number of items of a page. */
export function checkLimit(limit: number): void {
  if (Number.isSafeInteger(limit) && limit >= 1) return;
  throw new Fault("invalid_argument", `invalid limit ${limit}: expected an integer of at least 1`);
}

function checkTime(name: string, value: unknown): void {
  if (value === undefined || Number.isFinite(value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(value)} of list(): expected a time in epoch milliseconds`,
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

function placeOf({ after }: RunQuery, isByTime: boolean): RunPlace {
  if (after === undefined) return beforeAll;
  const [, place, createdAt] = cursorParts(/^([1-9][0-9]{0,15})(?:@([0-9]{1,16}))?$/, after);
  if (place === undefined || (createdAt !== undefined) !== isByTime)
    throw new Fault(
      "invalid_argument",
      `invalid cursor ${describeValue(after)}: pass the \`next\` of an earlier page of runs with the same query`,
    );
  return { place: Number(place), createdAt: Number(createdAt ?? 0) };
}

/** The parts of a cursor, or none if it is no text of this form. A number that looks like a cursor is not one. */
export function cursorParts(form: RegExp, cursor: unknown): readonly (string | undefined)[] {
  return (typeof cursor === "string" ? form.exec(cursor) : null) ?? [];
}

function labelsOf({ metadata }: RunQuery): RunCursor["labels"] {
  if (metadata === undefined) return [];
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata))
    throw new Fault(
      "invalid_argument",
      `invalid metadata ${describeValue(metadata)} of list(): expected an object of strings`,
    );
  const labels = Object.entries(metadata);
  for (const [name, value] of labels)
    if (!isLabel(name, value))
      throw new Fault(
        "invalid_argument",
        `invalid metadata.${name.slice(0, longestLabel)} ${describeValue(value)} of list(): expected a string that has, with its name, at most ${longestLabel} characters`,
      );
  return labels;
}

/** Whether `list` can select runs by this member of their metadata. */
export function isLabel(name: string, value: unknown): value is string {
  if (typeof value !== "string" || name.length + value.length > longestLabel) return false;
  return name.isWellFormed() && value.isWellFormed();
}

/** Whether the record of a run matches the query, apart from its status. */
export function matches(record: RunRecord, query: RunQuery, { labels }: RunCursor): boolean {
  const { createdAfter = -Infinity, createdBefore = Infinity } = query;
  const { createdAt, metadata } = record;
  for (const name of ["sessionId", "agentId", "tenantId", "userId", "kind"] as const)
    if (query[name] !== undefined && query[name] !== record[name]) return false;
  if (createdAt <= createdAfter || createdAt >= createdBefore) return false;
  return labels.every(([name, value]) => Object.hasOwn(metadata, name) && metadata[name] === value);
}

/** Compares two runs for sorting: newest first. */
export function newestFirst({ isByTime }: RunCursor): (one: RunPlace, other: RunPlace) => number {
  return (one, other) => (isByTime ? other.createdAt - one.createdAt : 0) || other.place - one.place;
}

/** Returns one page. `found` is sorted newest first and holds `limit + 1` items if there is another page. */
export function pageOf<Found extends RunPlace>(
  found: readonly Found[],
  { limit, isByTime }: RunCursor,
): { readonly shown: readonly Found[]; readonly next: string | null } {
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  if (last === undefined || found.length <= limit) return { shown, next: null };
  return { shown, next: isByTime ? `${last.place}@${last.createdAt}` : String(last.place) };
}
