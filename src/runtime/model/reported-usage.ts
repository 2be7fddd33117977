import {
  describeValue,
  Fault,
  type Model,
  type ModelResponse,
  type ReportedUsage,
} from "../../kernel/index.ts";
import { correctionMail } from "../journal/correction-mail.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { narrowedCost } from "./call-cost.ts";
import type { Grant } from "./reservation.ts";
import { pricedUsage } from "./settle-reply.ts";

const optionalCounts: ReadonlySet<string> = new Set([
  "cacheReadTokens",
  "cacheWriteTokens",
  "reasoningTokens",
]);
/**
 * Upper limit of a reported number of tokens. No real request has so many, and their price could be more than the
 * ledger can add up.
 */
const tooManyTokens = 1_000_000_000;
const countNames = ["inputTokens", "outputTokens", ...optionalCounts];

/**
 * Returns what is wrong with reported usage. `undefined` if it is valid. It accepts an unknown value, because the
 * model may be code without types.
 */
export function usageProblem(usage: unknown): string | undefined {
  if (typeof usage !== "object" || usage === null)
    return `usage ${describeValue(usage)}: expected { inputTokens, outputTokens }`;
  const counts = usage as Readonly<Record<string, unknown>>;
  for (const name of countNames) {
    const count = counts[name];
    if (count === undefined && optionalCounts.has(name)) continue;
    if (!isCount(count))
      return `usage.${name} ${describeValue(count)}: expected an integer ${Number(count) > 0 ? `below ${tooManyTokens}` : "from 0"}`;
  }
  const { costUsd } = counts;
  const isCost = costUsd === undefined || (typeof costUsd === "number" && costUsd >= 0 && costUsd < Infinity);
  return isCost ? undefined : `usage.costUsd ${describeValue(costUsd)}: expected a number from 0`;
}

/** Returns what is wrong with the reported uses of the provider's tools. `undefined` if they are valid or absent. */
export function usesProblem(uses: unknown): string | undefined {
  if (uses === undefined) return undefined;
  if (typeof uses !== "object" || uses === null || Array.isArray(uses))
    return `providerToolUses ${describeValue(uses)}: expected { [tool]: number }`;
  const wrong = Object.entries(uses).find(([, count]) => !isCount(count));
  return wrong && `providerToolUses.${wrong[0]} ${describeValue(wrong[1])}: expected an integer from 0`;
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value < tooManyTokens;
}

/**
 * B3: lowers what a call in flight is charged if it ends without usage, because the provider has reported its
 * input.
 */
export function narrowReservation(
  { runner }: ActiveStep,
  model: Pick<Model, "provider" | "modelId">,
  { id, outputTokens, priceOf }: Grant,
  usage: ReportedUsage,
): void {
  const problem = usageProblem(usage);
  if (problem !== undefined) throw invalidUsage(model, problem);
  const { inputTokens } = usage;
  const costUsd = narrowedCost(priceOf(inputTokens), usage, outputTokens);
  runner.host.ledger.apply(runner.taskId, {
    type: "narrow",
    id,
    tokens: inputTokens + outputTokens,
    costUsd,
  });
}

/**
 * B3: reports usage of an attempt that answered, or failed with reported usage, after it was charged as unreported.
 * The usage goes to the mailbox of the run, which may have ended or have another owner by now. An attempt that was
 * not charged reports nothing.
 */
export async function reportLateUsage(
  { runner }: ActiveStep,
  grant: Grant,
  response: Pick<ModelResponse, "usage" | "providerToolUses">,
): Promise<void> {
  const { worker, log, agentId } = runner;
  const { runId } = log.lease;
  try {
    const usage = pricedUsage(grant, response);
    const mail = correctionMail({ runId, from: agentId, at: worker.clock.now() }, grant.id, usage);
    await worker.store.mailbox.put(mail);
  } catch (error) {
    const fault = Fault.from(error);
    // The runtime was closed or the run deleted while the provider wrote its answer: there is no run to correct.
    if (fault.code !== "closed" && fault.code !== "not_found") worker.onError(fault);
  }
}

export function invalidUsage(
  { provider, modelId }: Pick<Model, "provider" | "modelId">,
  problem: string,
): Fault {
  return new Fault("invalid_argument", `${provider}/${modelId} returned an invalid ${problem}`, {
    details: { provider, modelId },
  });
}
