import {
  addDays,
  fromNanoUsd,
  hourText,
  isUtcDay,
  isUtcHour,
  usageDimensions,
  usageHoursKeptDays,
  usageSteps,
  utcDay,
  type CapLimits,
  type CapName,
  type UsageDelta,
  type UsageKey,
  type UsageQuery,
  type UsageRow,
  invalidOption,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";

/** The amounts of a row that rows of every store format have. */
export type UsageAmounts = Omit<
  UsageDelta,
  "day" | "hour" | "agent" | "model" | "failedRuns" | "failedCalls" | "latency"
>;

/**
 * B3: the estimated cost of the unreported calls of a row (`likelyNanoUsd`), added up over the days, agents and
 * models of the row.
 */
export interface LikelyAmount {
  readonly likelyNanoUsd: number;
  /** The part of the amount for which no estimate is possible, so that the charge is used. */
  readonly unknownNanoUsd: number;
}

/** The sums over the rows that have details. */
export interface DetailSums {
  readonly detailedRuns: number;
  readonly failedRuns: number;
  readonly failedCalls: number;
  readonly latency: readonly number[];
  /** Whether any of the rows has details, and whether all of them have. */
  readonly hasDetails: boolean;
  readonly isDetailed: boolean;
}

/** A text that sorts before every day. */
const firstDay = "0000-01-01";
/** A text that sorts after every day. */
const lastDay = "9999-12-31";

/**
 * Returns the stored form of a UTC hour. It begins with a letter, so that all hours sort after all days. One table
 * can therefore contain both, each in one range of its key.
 */
export function hourPeriod(hour: string): string {
  return `h${hour}`;
}

let keptOn = "";
let keptFrom = "";

/**
 * Returns the first stored hour that is still kept at a time in epoch milliseconds. It is cached, because every
 * commit with usage needs it.
 */
export function firstKeptHour(at: number): string {
  const day = utcDay(at);
  if (day !== keptOn) {
    keptFrom = hourPeriod(hourText(addDays(day, -usageHoursKeptDays), 0));
    keptOn = day;
  }
  return keptFrom;
}

/** Returns the number of an hour. A store deletes old hours once in each hour. */
export function hourNumber(at: number): number {
  return Math.floor(at / 3_600_000);
}

/** A text that sorts before every stored hour. */
export const noHour = hourPeriod("");

/** A checked query. `from` and `to` are stored periods. */
export interface UsageRange extends UsageQuery {
  readonly from: string;
  readonly to: string;
  /** Whether the range consists of hours. */
  readonly isHourly: boolean;
}

const mostKeys = 100;
const keyTable = optionTable({
  key: is.text({ or: [null, "runs without a value"], required: true }),
  tenantId: is.text({ or: [null, "runs without a tenant"] }),
} satisfies OptionKinds<UsageKey>);

const queryTable = optionTable({
  by: is.choice(usageDimensions, { required: true }),
  per: is.choice(usageSteps),
  from: is.checkedBy(checkTime),
  to: is.checkedBy(checkTime),
  keys: is.checkedBy(checkKeys),
  tenantId: is.text({ or: [null, "runs without a tenant"] }),
  userId: is.text({ or: [null, "runs without a user"] }),
  agent: is.text(),
  model: is.text({ or: [null, "runs that called no model"] }),
} satisfies OptionKinds<UsageQuery>);

/** U6: throws `invalid_argument`. */
export function usageRange(query: UsageQuery): UsageRange {
  const read = queryTable.read("usage()", query);
  const { by, per, from = firstDay, to = lastDay, keys, tenantId, userId, agent, model } = read;
  const rest = { by, per, keys, tenantId, userId, agent, model };
  if (per !== undefined && (by === "day" || by === "hour"))
    throw invalidOption("usage()", "per", per, `no step, because by is "${by}"`);
  const isHourly = by === "hour" || per === "hour" || isUtcHour(from) || isUtcHour(to);
  if (!isHourly) return { ...rest, from, to, isHourly };
  const first = isUtcHour(from) ? from : hourText(from, 0);
  const last = isUtcHour(to) ? to : hourText(to, 23);
  return { ...rest, from: hourPeriod(first), to: hourPeriod(last), isHourly };
}

function checkTime(time: unknown, option: string, owner: string): void {
  if (!isUtcDay(time) && !isUtcHour(time))
    throw invalidOption(
      owner,
      option,
      time,
      'a UTC day such as "2026-11-16" or hour such as "2026-11-16T13"',
    );
}

function checkKeys(keys: unknown, option: string, owner: string): void {
  if (!Array.isArray(keys) || keys.length > mostKeys)
    throw invalidOption(owner, option, keys, `an array of at most ${mostKeys} keys`);
  for (const each of keys as readonly UsageKey[]) keyTable.read(`${option} of ${owner}`, each);
}

/** A row as the caller receives it. */
export function usageRow(
  whose: Pick<UsageRow, "key" | "tenantId" | "at">,
  {
    runs,
    turns,
    inputTokens,
    outputTokens,
    cachedTokens,
    ...amounts
  }: UsageAmounts & LikelyAmount & DetailSums,
): UsageRow {
  const { nanoUsd, lostTokens, lostNanoUsd, unpriced } = amounts;
  const unreported = { tokens: lostTokens, costUsd: fromNanoUsd(lostNanoUsd) };
  const isKnown = lostNanoUsd === 0 || amounts.unknownNanoUsd < lostNanoUsd;
  const likelyUsd = isKnown ? fromNanoUsd(amounts.likelyNanoUsd) : null;
  const { detailedRuns, failedRuns, failedCalls, latency, hasDetails, isDetailed: isComplete } = amounts;
  const calls = latency.reduce((sum, count) => sum + count, 0);
  return {
    ...whose,
    runs,
    turns,
    inputTokens,
    outputTokens,
    cachedTokens,
    costUsd: fromNanoUsd(nanoUsd),
    unreported: lostTokens === 0 ? unreported : { ...unreported, likelyUsd },
    unpricedTurns: unpriced,
    details: hasDetails ? { isComplete, runs: detailedRuns, failedRuns, calls, failedCalls, latency } : null,
  };
}

/** The caps that have a limit. */
export function capsInForce(caps: CapLimits): readonly (readonly [CapName, number])[] {
  return (Object.entries(caps) as [CapName, number | null | undefined][]).flatMap(([name, limit]) =>
    limit === null || limit === undefined ? [] : [[name, limit] as const],
  );
}

/** Returns the stored form of the UTC month of a day. It sorts after all days and hours. */
export function monthPeriod(day: string): string {
  return `m${day.slice(0, 7)}`;
}

/**
 * Returns the range of the keys of the cap shares of a day or of its month: from the first text, and before the
 * second.
 */
export function capShareRange(day: string, per: "day" | "month"): readonly [string, string] {
  const period = per === "day" ? day : day.slice(0, 7);
  // A key continues with a space before the agent, or with a hyphen before the day. The next characters follow them.
  return [period, `${period}${per === "day" ? "!" : "."}`];
}

/** Number of days after which no worker draws for a day any more, even if its clock is wrong. */
const daysKept = 2;

/**
 * Returns the first day whose cap shares are kept when a run draws for this day, because they count for their
 * month.
 */
export function oldestDay(day: string): string {
  return `${addDays(day, -daysKept).slice(0, 7)}-01`;
}
