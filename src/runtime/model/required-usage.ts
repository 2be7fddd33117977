import { describeValue, Fault, type Model, type ModelResponse } from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { Grant } from "./reservation.ts";

const optionalCounts: ReadonlySet<string> = new Set([
  "cacheReadTokens",
  "cacheWriteTokens",
  "reasoningTokens",
]);
const countNames = ["inputTokens", "outputTokens", ...optionalCounts];

/**
 * B3: charges a response without valid usage in full as unreported, and throws. Another attempt could not fix it, because
 * the fault is in the code of the model.
 */
export function requireUsage(
  step: ActiveStep,
  { provider, modelId }: Model,
  grant: Grant,
  response: ModelResponse,
): void {
  const problem = usageProblem(response.usage);
  if (problem === undefined) return;
  const { taskId, host } = step.runner;
  host.ledger.lose(taskId, grant.id);
  step.end();
  throw new Fault("invalid_argument", `${provider}/${modelId} returned an invalid ${problem}`, {
    details: { provider, modelId },
  });
}

/** `usage` is checked as an unknown value, because the model may be code without types. */
function usageProblem(usage: unknown): string | undefined {
  if (typeof usage !== "object" || usage === null)
    return `usage ${describeValue(usage)}: expected { inputTokens, outputTokens }`;
  const counts = usage as Readonly<Record<string, unknown>>;
  for (const name of countNames) {
    const count = counts[name];
    if (count === undefined && optionalCounts.has(name)) continue;
    if (!isCount(count)) return `usage.${name} ${describeValue(count)}: expected an integer from 0`;
  }
  const { costUsd } = counts;
  const isCost = costUsd === undefined || (typeof costUsd === "number" && costUsd >= 0 && costUsd < Infinity);
  return isCost ? undefined : `usage.costUsd ${describeValue(costUsd)}: expected a number from 0`;
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
