import {
  addDays,
  addHours,
  Fault,
  isUtcHour,
  latencyBoundsMs,
  latencyQuantile,
  sumOfUsage,
  usageDimensions,
  usageHoursKeptDays,
  utcDay,
  utcHour,
  type Runtime,
  type UsageDetails,
  type UsageKey,
  type UsageQuery,
  type UsageRow,
  type UsageStep,
} from "../../../kernel/index.ts";
import { reply, route } from "../../http/route.ts";
import {
  choice,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  optional,
  text,
} from "../../http/schema/schema.ts";

const tenant = {
  tenantId: optional(text({ minLength: 1, description: "Only for tokens without a tenant." })),
  userId: optional(text({ minLength: 1 })),
};

const day = text({
  pattern: "^\\d{4}-\\d{2}-\\d{2}(T\\d{2})?$",
  description: "UTC day, such as 2026-11-16, or UTC hour, such as 2026-11-16T13.",
});
const rowDetails = nullable(
  object({
    isComplete: flag({ description: "Whether all usage of the row has details." }),
    runs: integer(),
    failedRuns: integer({ description: "How often a run ended as failed." }),
    calls: integer({ description: "Model calls with a reply." }),
    failedCalls: integer({ description: "Attempts that ended without a reply." }),
    latency: list(integer(), {
      description: `Calls by duration: up to ${latencyBoundsMs.join(", ")} ms, and longer.`,
    }),
  }),
);
const rowSchema = named(
  "UsageRow",
  object({
    key: nullable(text()),
    tenantId: optional(nullable(text())),
    runs: integer(),
    turns: integer(),
    inputTokens: integer(),
    outputTokens: integer(),
    cachedTokens: integer(),
    costUsd: number(),
    unreported: object({ tokens: integer(), costUsd: number(), likelyUsd: optional(nullable(number())) }),
    unpricedTurns: integer(),
    details: rowDetails,
  }),
);
const rows = {
  status: 200,
  description: "One row per day, hour, agent, model, user or tenant.",
  schema: object({ rows: list(rowSchema) }),
};
const getUsage = route({
  id: "usage.sum",
  method: "GET",
  path: "/api/usage",
  summary: "Sum up what runs have spent, also runs that were deleted since.",
  scope: "read",
  query: object({ by: optional(choice(usageDimensions)), from: optional(day), to: optional(day), ...tenant }),
  responses: [rows],
  handle: async ({ runtime, query: { by = "day", ...query } }) =>
    reply(rows, { rows: await runtime.usage({ by, ...query }) }),
});

const figures = named(
  "UsageFigures",
  object({
    costUsd: number(),
    inputTokens: integer(),
    outputTokens: integer(),
    cachedTokens: integer(),
    runs: integer(),
    unpricedTurns: integer(),
    lostUsd: number({ description: "The part of the cost that was charged without reported usage." }),
    likelyUsd: nullable(
      number({ description: "What these calls likely cost. `null` if that is not known." }),
    ),
    details: nullable(
      object({
        isComplete: flag({ description: "Whether all usage has details." }),
        runs: integer({ description: "Runs of the usage that has details." }),
        failedRuns: integer(),
        calls: integer(),
        failedCalls: integer(),
        medianMs: nullable(number({ description: "Half of the calls took no longer." })),
        slowMs: nullable(number({ description: "95 of 100 calls took no longer." })),
      }),
    ),
  }),
);
const column = list(nullable(number()));
const columns = named(
  "UsageColumns",
  object(
    {
      costUsd: column,
      tokens: column,
      runs: column,
      failedRuns: column,
      failedCalls: column,
      slowMs: column,
      cacheShare: column,
    },
    { description: "One value per time. null: not recorded, or a share of nothing." },
  ),
);
const series = {
  sum: figures,
  closed: figures,
  earlier: figures,
  now: columns,
  before: columns,
};
const overTime = {
  status: 200,
  description:
    "The usage over time. `sum` has all times, `closed` those that are over, and `earlier` the times before that correspond to them.",
  schema: named(
    "UsageOverTime",
    object({
      step: choice(["day", "hour"]),
      times: list(text(), { description: "UTC days or hours, oldest first." }),
      timesBefore: list(text(), { description: "The times with which they are compared." }),
      open: nullable(integer({ description: "The place of the time that is not over yet." })),
      total: object(series),
      rows: list(object({ key: nullable(text()), tenantId: optional(nullable(text())), ...series }), {
        description: "The values of the dimension with the highest cost.",
      }),
      otherRows: integer({ description: "Number of values that `rows` leaves out." }),
    }),
  ),
};
const mostTimes = 400;

const getUsageOverTime = route({
  id: "usage.over-time",
  method: "GET",
  path: "/api/usage/over-time",
  summary:
    "Read usage by day or hour, compared with an earlier period: in all, and for the agents, models, users or tenants with the highest cost. Hours are kept for 35 days. Costs O(totals of both periods).",
  scope: "read",
  query: object({
    by: choice(["agent", "model", "user", "tenant"]),
    from: day,
    to: day,
    before: optional(
      text({
        pattern: "^\\d{4}-\\d{2}-\\d{2}(T\\d{2})?$",
        description: "First day or hour of the period to compare with. Default: the period just before.",
      }),
    ),
    limit: optional(integer({ minimum: 1, maximum: 100, description: "Number of rows. Default: 20." })),
    ...tenant,
  }),
  responses: [overTime],
  handle: async ({ runtime, query: { by, from, to, before, limit = 20, ...who } }) => {
    const period = periodOf(from, to, before);
    const { step, times, timesBefore } = period;
    const reader = new PeriodReader(runtime, who, period);
    const totals = await reader.read({ by: step });
    const gaps = await reader.gaps(totals);
    const sums = await runtime.usage({ ...who, by, from, to });
    const ordered = sums.toSorted((one, other) => other.costUsd - one.costUsd || other.turns - one.turns);
    const keys = ordered
      .slice(0, limit)
      .map(({ key, tenantId }) => ({ key, ...(tenantId !== undefined && { tenantId }) }));
    const split = keys.length === 0 ? [] : await reader.read({ by, per: step, keys });
    const open = times.indexOf(step === "day" ? utcDay(runtime.clock.now()) : utcHour(runtime.clock.now()));
    const shown = { times, timesBefore, open, gaps };
    const byKey = Map.groupBy(split, nameOf);
    return reply(overTime, {
      step,
      times,
      timesBefore,
      open: open < 0 ? null : open,
      total: seriesOf(new Map(totals.map((row) => [row.key ?? "", row])), shown),
      rows: keys.map((key) => {
        const own = byKey.get(nameOf(key)) ?? [];
        return { ...key, ...seriesOf(new Map(own.map((row) => [row.at ?? "", row])), shown) };
      }),
      otherRows: Math.max(0, ordered.length - keys.length),
    });
  },
});

/** The times of a period and of the period before it, oldest first. */
interface Period {
  readonly step: UsageStep;
  readonly times: readonly string[];
  readonly timesBefore: readonly string[];
}

function periodOf(from: string, to: string, before: string | undefined): Period {
  const isHourly = isUtcHour(from);
  if (isHourly !== isUtcHour(to) || (before !== undefined && isHourly !== isUtcHour(before)))
    throw new Fault(
      "invalid_argument",
      "invalid period: from, to and before must be days, such as 2026-11-16, or hours, such as 2026-11-16T13",
    );
  const add = isHourly ? addHours : addDays;
  const times: string[] = [];
  for (let time = from; time <= to && times.length <= mostTimes; time = add(time, 1)) times.push(time);
  if (times.length === 0 || times.length > mostTimes)
    throw new Fault(
      "invalid_argument",
      `invalid period from ${from} to ${to}: expected from 1 to ${mostTimes} ${isHourly ? "hours" : "days"}`,
    );
  const first = before ?? add(from, -times.length);
  return {
    step: isHourly ? "hour" : "day",
    times,
    timesBefore: times.map((_time, place) => add(first, place)),
  };
}

/** Reads the usage of a period and of the period before it. */
class PeriodReader {
  readonly #runtime: Runtime;
  readonly #who: Pick<UsageQuery, "tenantId" | "userId">;
  readonly #period: Period;

  constructor(runtime: Runtime, who: Pick<UsageQuery, "tenantId" | "userId">, period: Period) {
    this.#runtime = runtime;
    this.#who = who;
    this.#period = period;
  }

  async read(query: Pick<UsageQuery, "by" | "per" | "keys">): Promise<readonly UsageRow[]> {
    const { times, timesBefore } = this.#period;
    const parts = [timesBefore, times].map((each) =>
      this.#runtime.usage({ ...query, ...this.#who, from: each[0], to: each.at(-1) }),
    );
    const [one = [], other = []] = await Promise.all(parts);
    // Periods that overlap have some rows twice. The rows are found by their time, so that does not matter.
    return [...one, ...other];
  }

  /**
   * Returns the hours whose usage is unknown: hours that are no longer stored, and hours before the first recorded
   * hour of a day that was partly recorded only as a day.
   */
  async gaps(hours: readonly UsageRow[]): Promise<ReadonlySet<string>> {
    const { step, times, timesBefore } = this.#period;
    const gaps = new Set<string>();
    if (step === "day") return gaps;
    const all = [...timesBefore, ...times];
    const days = all.map(dayOf);
    const found = await this.#runtime.usage({
      by: "day",
      ...this.#who,
      from: days.reduce((one, each) => (each < one ? each : one)),
      to: days.reduce((one, each) => (each > one ? each : one)),
    });
    const oldest = addDays(utcDay(this.#runtime.clock.now()), -usageHoursKeptDays);
    for (const { key, details } of found) {
      if (details?.isComplete === true || key === null) continue;
      const known = hours.flatMap((row) => (row.key !== null && dayOf(row.key) === key ? [row.key] : []));
      const first = known.reduce((one, each) => (each < one ? each : one), "9");
      for (const time of all) if (dayOf(time) === key && time < first) gaps.add(time);
    }
    for (const time of all) if (dayOf(time) < oldest) gaps.add(time);
    return gaps;
  }
}

function dayOf(hour: string): string {
  return hour.slice(0, 10);
}

function nameOf({ key, tenantId }: UsageKey): string {
  return JSON.stringify([key, tenantId ?? null]);
}

interface ShownTimes extends Omit<Period, "step"> {
  /** Index of the current time step, which is not over. -1 if the period contains none. */
  readonly open: number;
  /** Times whose usage is not known. */
  readonly gaps: ReadonlySet<string>;
}

function seriesOf(byTime: ReadonlyMap<string, UsageRow>, { times, timesBefore, open, gaps }: ShownTimes) {
  const rowsOf = (some: readonly string[]): readonly UsageRow[] =>
    some.flatMap((time) => byTime.get(time) ?? []);
  const isClosed = (_time: string, place: number): boolean => place !== open;
  return {
    sum: figuresOf(rowsOf(times)),
    closed: figuresOf(rowsOf(times.filter(isClosed))),
    earlier: figuresOf(rowsOf(timesBefore.filter(isClosed))),
    now: columnsOf(times, byTime, gaps),
    before: columnsOf(timesBefore, byTime, gaps),
  };
}

function figuresOf(some: readonly UsageRow[]) {
  const sum = sumOfUsage(some);
  const { costUsd, inputTokens, outputTokens, cachedTokens, runs, unpricedTurns } = sum;
  const details = sum.details === null ? null : detailsOf(sum.details);
  const { costUsd: lostUsd, likelyUsd = lostUsd } = sum.unreported;
  return {
    costUsd,
    inputTokens,
    outputTokens,
    cachedTokens,
    runs,
    unpricedTurns,
    lostUsd,
    likelyUsd,
    details,
  };
}

function detailsOf({ latency, ...counts }: UsageDetails) {
  return {
    ...counts,
    medianMs: latencyQuantile(latency, 0.5),
    slowMs: latencyQuantile(latency, 0.95),
  };
}

function columnsOf(
  times: readonly string[],
  byTime: ReadonlyMap<string, UsageRow>,
  gaps: ReadonlySet<string>,
) {
  const known = times.map((time) => {
    if (gaps.has(time)) return null;
    const row = byTime.get(time);
    return row ?? sumOfUsage([]);
  });
  const each = (pick: (row: UsageRow) => number | null): readonly (number | null)[] =>
    known.map((row) => (row === null ? null : pick(row)));
  const detailed = (pick: (details: UsageDetails) => number | null): readonly (number | null)[] =>
    each((row) => (row.details?.isComplete === true ? pick(row.details) : null));
  return {
    costUsd: each(({ costUsd }) => costUsd),
    tokens: each(({ inputTokens, outputTokens }) => inputTokens + outputTokens),
    runs: each(({ runs }) => runs),
    failedRuns: detailed(({ failedRuns }) => failedRuns),
    failedCalls: detailed(({ failedCalls }) => failedCalls),
    slowMs: detailed(({ latency }) => latencyQuantile(latency, 0.95)),
    cacheShare: each(({ inputTokens, cachedTokens }) =>
      inputTokens === 0 ? null : cachedTokens / inputTokens,
    ),
  };
}

export const usageRoutes = [getUsage, getUsageOverTime] as const;
