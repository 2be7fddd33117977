import { addDays, addHours, utcDay, utcHour, visibleLine } from "../../src/kernel/index.ts";
import type { UsageOverTime } from "../api/types.ts";
import { capitalized, grouped, took } from "../base/format.ts";

export const periods = ["24h", "14d", "90d"] as const;
export type PeriodName = (typeof periods)[number];

export const dimensions = ["model", "agent", "user", "tenant"] as const;
export type Dimension = (typeof dimensions)[number];

/** A choice of times: hours up to three days, otherwise days. */
export interface Period {
  readonly label: string;
  readonly before: string;
  readonly count: number;
  /**
   * Number of time steps by which the previous period is earlier. For days it is a multiple of seven, so that the
   * same weekdays are compared.
   */
  readonly shift: number;
  readonly isHourly: boolean;
}

export const periodOf: Readonly<Record<PeriodName, Period>> = {
  "24h": { label: "24 hours", before: "24 hours before", count: 24, shift: 24, isHourly: true },
  "14d": { label: "14 days", before: "14 days before", count: 14, shift: 14, isHourly: false },
  "90d": { label: "90 days", before: "91 days before", count: 90, shift: 91, isHourly: false },
};

/** Returns the first and the last time of a period that ends now, and the first time of the previous period. */
export function timesOf(
  name: PeriodName,
  now: number,
): { readonly from: string; readonly to: string; readonly before: string } {
  const { count, shift, isHourly } = periodOf[name];
  const [add, to] = isHourly ? [addHours, utcHour(now)] : [addDays, utcDay(now)];
  const from = add(to, 1 - count);
  return { from, to, before: add(from, -shift) };
}

/** Usage over time, in all or of one row. */
export type Series = UsageOverTime["total"];
export type SeriesRow = UsageOverTime["rows"][number];
type Figures = Series["sum"];
type Values = readonly (number | null)[];

/** What a panel or a column shows. */
export interface Measure {
  readonly id: "cost" | "tokens" | "runs" | "failures" | "latency" | "cache";
  readonly title: string;
  /** Sums are bars, rates are lines. */
  readonly isSum: boolean;
  /** `null`: not known. */
  readonly value: (figures: Figures) => number | null;
  readonly at: (columns: Series["now"]) => Values;
  /** The column that has no value at a time for which this measure was not recorded. */
  readonly known: (columns: Series["now"]) => Values;
  /** What a recorded time without a value had none of. */
  readonly nothing?: string;
  readonly text: (value: number) => string;
  /** The text beside the figure. */
  readonly aside: (figures: Figures) => string;
  readonly change: (now: number, before: number) => string;
}

/** Money with cents; small amounts keep their first digits. */
export function money(amount: number): string {
  if (amount === 0) return "$0";
  if (Math.abs(amount) < 0.01) return `$${Number(amount.toPrecision(2))}`;
  return `$${grouped(amount.toFixed(Math.abs(amount) >= 1_000 ? 0 : 2))}`;
}

/** A large number: 950, 12.3 k, 22.5 M. */
function short(count: number): string {
  for (const [limit, unit] of [
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const)
    if (Math.abs(count) >= limit) return `${(count / limit).toFixed(count >= 100 * limit ? 0 : 1)} ${unit}`;
  return grouped(Math.round(count));
}

function percent(share: number): string {
  const value = share * 100;
  return `${value !== 0 && Math.abs(value) < 10 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** How two sums differ, in words. */
function relative(text: (value: number) => string, equal = "as much as before"): Measure["change"] {
  return (now, before) => {
    if (now === before) return equal;
    if (before === 0) return "nothing before";
    const share = Math.abs(now - before) / before;
    const words =
      share >= 10
        ? `${Math.round(now / before)} times as much`
        : `${percent(share)} ${now > before ? "more" : "less"}`;
    return `${words}, ${text(Math.abs(now - before))}`;
  };
}

const cost: Measure = {
  id: "cost",
  title: "Cost",
  isSum: true,
  value: ({ costUsd }) => costUsd,
  at: ({ costUsd }) => costUsd,
  known: ({ costUsd }) => costUsd,
  text: money,
  aside: ({ costUsd, runs }) => (runs === 0 ? "" : `${money(costUsd / runs)} per run`),
  change: relative(money),
};
const tokens: Measure = {
  id: "tokens",
  title: "Tokens",
  isSum: true,
  value: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
  at: (columns) => columns.tokens,
  known: (columns) => columns.tokens,
  text: short,
  aside: ({ inputTokens, outputTokens }) => `${short(inputTokens)} in, ${short(outputTokens)} out`,
  change: relative(short),
};
const runs: Measure = {
  id: "runs",
  title: "Runs",
  isSum: true,
  value: (figures) => figures.runs,
  at: (columns) => columns.runs,
  known: (columns) => columns.runs,
  text: grouped,
  aside: () => "",
  change: relative(grouped, "as many as before"),
};
function more(now: number, before: number): string {
  if (now === before) return "as many as before";
  return `${grouped(Math.abs(now - before))} ${now > before ? "more" : "fewer"} than before`;
}
const failedRuns: Measure = {
  id: "failures",
  title: "Failures",
  isSum: true,
  value: ({ details }) => details?.failedRuns ?? null,
  at: (columns) => columns.failedRuns,
  known: (columns) => columns.failedRuns,
  text: grouped,
  aside: ({ details }) =>
    details === null || details.runs === 0 ? "runs" : `${percent(details.failedRuns / details.runs)} of runs`,
  change: more,
};
/** For a model: a run has several models, so its calls are counted. */
const failedCalls: Measure = {
  ...failedRuns,
  title: "Failed calls",
  value: ({ details }) => details?.failedCalls ?? null,
  at: (columns) => columns.failedCalls,
  aside: ({ details }) =>
    details === null || details.calls + details.failedCalls === 0
      ? "calls"
      : `${percent(details.failedCalls / (details.calls + details.failedCalls))} of calls`,
};
const latency: Measure = {
  id: "latency",
  title: "Latency of a model call",
  isSum: false,
  value: ({ details }) => details?.slowMs ?? null,
  at: ({ slowMs }) => slowMs,
  known: (columns) => columns.failedRuns,
  nothing: "no call",
  text: took,
  aside: () => "slowest 5 of 100",
  change: (now, before) =>
    now === before ? "as before" : `${took(Math.abs(now - before))} ${now > before ? "slower" : "faster"}`,
};
const cache: Measure = {
  id: "cache",
  title: "Cache share of input",
  isSum: false,
  value: ({ inputTokens, cachedTokens }) => (inputTokens === 0 ? null : cachedTokens / inputTokens),
  at: ({ cacheShare }) => cacheShare,
  known: (columns) => columns.tokens,
  nothing: "no input",
  text: percent,
  aside: ({ inputTokens, cachedTokens }) => `${short(cachedTokens)} of ${short(inputTokens)} tokens`,
  change: (now, before) => {
    const points = Math.round((now - before) * 100);
    return points === 0 ? "as before" : `${Math.abs(points)} points ${points > 0 ? "more" : "less"}`;
  },
};

/** The panels. With a model chosen, failures are those of its calls. */
export function measuresOf(isModel: boolean): readonly Measure[] {
  return [cost, tokens, runs, isModel ? failedCalls : failedRuns, latency, cache];
}

/** How a measure changed: in words, and up (1) or down (-1). 0 if it is the same or not known. */
export interface Change {
  readonly words: string;
  readonly direction: number;
}

function unchanged(words: string): Change {
  return { words, direction: 0 };
}

/**
 * Returns how a measure changed compared with the previous period. The current time step, which is not over, is
 * left out.
 */
export function changeOf(measure: Measure, { closed, earlier, before: columns }: Series): Change {
  const [now, before] = [measure.value(closed), measure.value(earlier)];
  const hadUsage = earlier.runs > 0 || earlier.inputTokens > 0 || earlier.costUsd > 0;
  if (!hadUsage) return unchanged("No usage before to compare with");
  if (measure.known(columns).includes(null)) return unchanged("Not recorded before");
  const nothing = capitalized(measure.nothing ?? "not recorded");
  if (before === null) return unchanged(`${nothing} before`);
  if (now === null) return unchanged(`${nothing} in the times that are over`);
  return { words: measure.change(now, before), direction: Math.sign(now - before) };
}

/** What the change leaves out: a time that is not over would look like a fall. */
export function leftOut(open: string | undefined): string {
  if (open === undefined) return "";
  return open.includes("T") ? "without this hour" : "without today";
}

/** How the cost of a row changed: +14 %, −8 %, new. */
export function costChange({ closed, earlier }: Series): string {
  if (earlier.costUsd === 0) return closed.costUsd === 0 ? "" : "new";
  const share = Math.round((closed.costUsd / earlier.costUsd - 1) * 100);
  return share === 0 ? "" : `${share > 0 ? "+" : "\u2212"}${grouped(Math.abs(share))} %`;
}

/** A time on the axis: 14 Nov, 13:00. */
export function timeLabel(time: string): string {
  if (time.includes("T")) return `${time.slice(11)}:00`;
  return new Date(`${time}T00:00:00Z`).toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });
}

/** The name of a row. */
export function rowName(by: Dimension, { key, tenantId }: Pick<SeriesRow, "key" | "tenantId">): string {
  const nothing = { model: "No model", agent: "No agent", user: "No user", tenant: "No tenant" };
  const program = by === "agent" ? key?.replace(/^reeve:gateway\//u, "") : undefined;
  if (program !== undefined && program !== key) return `${visibleLine(program)} of the gateway`;
  const name = key === null ? nothing[by] : visibleLine(key);
  return typeof tenantId === "string" ? `${name} of ${visibleLine(tenantId)}` : name;
}

/** The list of runs of a UTC day or hour, and of a row. Runs cannot be selected by model. */
export function runsPath(
  time: string,
  isFailures: boolean,
  by: Dimension,
  row: SeriesRow | undefined,
): string {
  const query = new URLSearchParams();
  query.set(isFailures ? "ended" : "started", `${time}Z`);
  if (isFailures) query.set("status", "failed");
  if (row !== undefined && row.key !== null && by !== "model") query.set(by, row.key);
  if (by === "user" && typeof row?.tenantId === "string") query.set("tenant", row.tenantId);
  return `/runs?${query.toString()}`;
}
