import type { AgentInfo } from "../../api/types.ts";
import { capUsd } from "../../base/format.ts";

/** What a run of an agent may spend, if that is not the amount that was typed. The smaller of both caps counts. */
export function budgetWords(
  agent: Pick<AgentInfo, "name" | "maxCostUsd"> | undefined,
  typed: number | null,
): { readonly text: string; readonly isLower: boolean } | null {
  if (agent === undefined || agent.maxCostUsd === null) return null;
  const own = capUsd(agent.maxCostUsd);
  if (typed === null)
    return { text: `Without an amount: ${own}, the budget of ${agent.name}.`, isLower: false };
  if (typed <= agent.maxCostUsd) return null;
  const text = `${agent.name} may spend ${own} per run, so this run stops at ${own}. A top-up raises it later.`;
  return { text, isLower: true };
}
