import { agentNameOf } from "../base/identity.ts";
import type { CostLabel, Ledger, ReportedSpend, Spend } from "./ledger.ts";
import { noUsageDelta, type UsageDelta } from "./usage-delta.ts";

/** The amounts of one ended reservation. */
export interface TalliedCall {
  readonly label: CostLabel;
  readonly day: string;
  readonly spent: Spend;
  readonly lost: Spend;
  readonly unpriced: boolean;
  /** Absent if no usage was reported. */
  readonly reported?: ReportedSpend | undefined;
}

/** Adds an ended reservation to the tally of a ledger, in place. */
export function tallyCall(ledger: Ledger, call: TalliedCall): void {
  const { label, day, spent, lost, unpriced, reported } = call;
  const { agentId, provider, modelId } = label;
  const outputTokens = reported?.outputTokens ?? 0;
  const tally = ledger.tally as Record<string, UsageDelta>;
  const key = `${day} ${agentId} ${provider.length} ${provider} ${modelId}`;
  const line = tally[key] ?? {
    ...noUsageDelta,
    day,
    agent: agentNameOf(agentId),
    model: `${provider}/${modelId}`,
  };
  tally[key] = {
    ...line,
    inputTokens: line.inputTokens + (reported === undefined ? 0 : reported.tokens - outputTokens),
    outputTokens: line.outputTokens + outputTokens,
    cachedTokens: line.cachedTokens + (reported?.cachedTokens ?? 0),
    turns: line.turns + spent.turns,
    nanoUsd: line.nanoUsd + spent.nanoUsd,
    lostTokens: line.lostTokens + lost.tokens,
    lostNanoUsd: line.lostNanoUsd + lost.nanoUsd,
    unpriced: line.unpriced + (unpriced ? 1 : 0),
  };
}

/** Empties the tally, because a commit holds its amounts. */
export function clearTally(ledger: Ledger): void {
  (ledger as { tally: Ledger["tally"] }).tally = {};
}
