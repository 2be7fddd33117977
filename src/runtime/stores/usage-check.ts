import {
  addDays,
  checkChoice,
  checkOptions,
  describeValue,
  Fault,
  fromNanoUsd,
  isUtcDay,
  optionNames,
  usageDimensions,
  type CapLimits,
  type CapName,
  type UsageDelta,
  type UsageQuery,
  type UsageRow,
} from "../../kernel/index.ts";

/** The amounts of a row. */
export type UsageAmounts = Omit<UsageDelta, "day" | "agent" | "model">;

/** A text that sorts before every day. */
const firstDay = "0000-01-01";
/** A text that sorts after every day. */
const lastDay = "9999-12-31";

/** A checked query with its defaults. */
export interface UsageRange extends UsageQuery {
  readonly from: string;
  readonly to: string;
}

const queryNames = optionNames<UsageQuery>({
  by: true,
  from: true,
  to: true,
  tenantId: true,
  userId: true,
});

/** U6: throws `invalid_argument`. */
export function usageRange(query: UsageQuery): UsageRange {
  checkOptions("usage()", query, queryNames);
  const { by, from = firstDay, to = lastDay, tenantId, userId } = query;
  if (by === undefined)
    throw new Fault("invalid_argument", `usage() needs \`by\`: one of ${usageDimensions.join(", ")}`);
  checkChoice("usage()", "by", by, usageDimensions);
  checkDay("from", from);
  checkDay("to", to);
  checkName("tenantId", tenantId);
  checkName("userId", userId);
  return { by, from, to, tenantId, userId };
}

function checkDay(name: string, day: unknown): void {
  if (isUtcDay(day)) return;
  throw new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(day)} of usage(): expected a UTC day such as "2026-11-16"`,
  );
}

function checkName(name: string, value: unknown): void {
  if (value === undefined || value === null || typeof value === "string") return;
  throw new Fault(
    "invalid_argument",
    `invalid ${name} ${describeValue(value)} of usage(): expected a text, or null`,
  );
}

/** A row as the caller receives it. */
export function usageRow(
  whose: Pick<UsageRow, "key" | "tenantId">,
  { runs, turns, inputTokens, outputTokens, cachedTokens, ...amounts }: UsageAmounts,
): UsageRow {
  const { nanoUsd, lostTokens, lostNanoUsd, unpriced } = amounts;
  return {
    ...whose,
    runs,
    turns,
    inputTokens,
    outputTokens,
    cachedTokens,
    costUsd: fromNanoUsd(nanoUsd),
    unreported: { tokens: lostTokens, costUsd: fromNanoUsd(lostNanoUsd) },
    unpricedTurns: unpriced,
  };
}

/** The caps that have a limit. */
export function capsInForce(caps: CapLimits): readonly (readonly [CapName, number])[] {
  return (Object.entries(caps) as [CapName, number | null][]).flatMap(([name, limit]) =>
    limit === null ? [] : [[name, limit] as const],
  );
}

/** Number of days after which no worker draws for a day any more, whatever its clock shows. */
const daysKept = 2;

/** The first day whose allotments are kept when a run draws for this day. */
export function oldestDay(day: string): string {
  return addDays(day, -daysKept);
}
