import { latencyBuckets } from "../limits/latency.ts";
import type { UsageDetails, UsageRow } from "./usage-totals.ts";

/** Adds up rows of usage. The resulting row has the key `null`. */
export function sumOfUsage(rows: readonly UsageRow[]): UsageRow {
  const sum = (pick: (row: UsageRow) => number): number => rows.reduce((all, row) => all + pick(row), 0);
  const lost = rows.map(({ unreported }) => unreported).filter(({ costUsd }) => costUsd > 0);
  const likelyUsd = sum(({ unreported }) => unreported.likelyUsd ?? unreported.costUsd);
  return {
    key: null,
    runs: sum(({ runs }) => runs),
    turns: sum(({ turns }) => turns),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    cachedTokens: sum(({ cachedTokens }) => cachedTokens),
    costUsd: sum(({ costUsd }) => costUsd),
    unreported: {
      tokens: sum(({ unreported }) => unreported.tokens),
      costUsd: sum(({ unreported }) => unreported.costUsd),
      likelyUsd: lost.length > 0 && lost.every((each) => each.likelyUsd === null) ? null : likelyUsd,
    },
    unpricedTurns: sum(({ unpricedTurns }) => unpricedTurns),
    details: detailsOf(rows),
  };
}

/**
 * Adds up the details of the rows that have details. `null` if no row has details. For an empty list the result is
 * zero usage.
 */
function detailsOf(rows: readonly UsageRow[]): UsageDetails | null {
  const known = rows.flatMap(({ details }) => details ?? []);
  const sum = (pick: (details: UsageDetails) => number): number =>
    known.reduce((all, each) => all + pick(each), 0);
  if (known.length === 0 && rows.length > 0) return null;
  return {
    isComplete: known.length === rows.length && known.every(({ isComplete }) => isComplete),
    runs: sum(({ runs }) => runs),
    failedRuns: sum(({ failedRuns }) => failedRuns),
    calls: sum(({ calls }) => calls),
    failedCalls: sum(({ failedCalls }) => failedCalls),
    latency: Array.from({ length: latencyBuckets }, (_each, bucket) =>
      sum(({ latency }) => latency[bucket] ?? 0),
    ),
  };
}
