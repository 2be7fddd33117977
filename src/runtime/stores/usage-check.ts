import {
  addDays,
  fromNanoUsd,
  isUtcDay,
  usageDimensions,
  type CapLimits,
  type CapName,
  type UsageDelta,
  type UsageQuery,
  type UsageRow,
  invalidOption,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";

/** The amounts of a row. */
export type UsageAmounts = Omit<UsageDelta, "day" | "agent" | "model">;

/** B3: what the lost calls of a row likely cost (`likelyNanoUsd`), added up over the days, agents and models of the row. */
export interface LikelyAmount {
  readonly likelyNanoUsd: number;
}

/** A text that sorts before every day. */
const firstDay = "0000-01-01";
/** A text that sorts after every day. */
const lastDay = "9999-12-31";

/** A checked query with its defaults. */
export interface UsageRange extends UsageQuery {
  readonly from: string;
  readonly to: string;
}

const queryTable = optionTable({
  by: is.choice(usageDimensions, { required: true }),
  from: is.checkedBy(checkDay),
  to: is.checkedBy(checkDay),
  tenantId: is.text({ or: [null, "runs without a tenant"] }),
  userId: is.text({ or: [null, "runs without a user"] }),
} satisfies OptionKinds<UsageQuery>);

/** U6: throws `invalid_argument`. */
export function usageRange(query: UsageQuery): UsageRange {
  const { by, from = firstDay, to = lastDay, tenantId, userId } = queryTable.read("usage()", query);
  return { by, from, to, tenantId, userId };
}

function checkDay(day: unknown, option: string, owner: string): void {
  if (!isUtcDay(day)) throw invalidOption(owner, option, day, 'a UTC day such as "2026-11-16"');
}

/** A row as the caller receives it. */
export function usageRow(
  whose: Pick<UsageRow, "key" | "tenantId">,
  { runs, turns, inputTokens, outputTokens, cachedTokens, ...amounts }: UsageAmounts & LikelyAmount,
): UsageRow {
  const { nanoUsd, lostTokens, lostNanoUsd, unpriced } = amounts;
  const unreported = { tokens: lostTokens, costUsd: fromNanoUsd(lostNanoUsd) };
  const likelyUsd = fromNanoUsd(amounts.likelyNanoUsd);
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
