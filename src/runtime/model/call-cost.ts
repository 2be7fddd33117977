import {
  priceUsage,
  utcDay,
  utcHourOfDay,
  type Exhaustion,
  type Model,
  type ProviderToolBound,
  type ModelPrice,
  type ReportedUsage,
  type ReserveCommand,
} from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { modelName } from "./model-name.ts";

/** A call of a model whose cost is bounded. */
export interface BoundedCall {
  readonly step: ActiveStep;
  readonly model: Pick<Model, "provider" | "modelId">;
  /** Upper bound of the input tokens. */
  readonly inputTokens: number;
  /** Upper bound of the output tokens, before a cap lowers it. */
  readonly outputTokens: number;
  /** The lowest output limit with which the call is useful. Default: 1. */
  readonly minOutputTokens?: number;
  readonly attempt: number;
  readonly turns: number;
  /** What the tools that the provider executes can cost. `inputTokens` includes their results. Absent if there are none. */
  readonly providerTools?: ProviderToolBound | undefined;
}

/** Returns the price for a request of this size. `null` if the price is unknown. */
export type PriceOf = (inputTokens: number) => ModelPrice | null;

/** Returns the price of a model without a known price, which is `null`. */
const unknownPrice: PriceOf = () => null;

/** Output limit for models that do not state one. */
const defaultOutputTokens = 8_192;

/** The upper bound of the cost of a call, as the ledger reserves it. */
export interface CostBound {
  readonly command: ReserveCommand;
  readonly priceOf: PriceOf;
  /** B7: the spending cap that lowered the output limit. Absent or `null` if none did. */
  readonly cutBy?: Exhaustion | null;
}

/** B1: returns the highest cost that the call can have at the current prices. */
export function boundCost(call: BoundedCall): CostBound {
  const { step, model, inputTokens: tokens, outputTokens, minOutputTokens, attempt, turns } = call;
  const toolsUsd = call.providerTools?.costUsd ?? 0;
  const { taskId, worker, state } = step.runner;
  const { provider, modelId } = model;
  const now = worker.clock.now();
  const at = attempt === 1 ? step.startedAt : now;
  const price = worker.prices.find({ provider, modelId, inputTokens: tokens, at });
  const priceOf: PriceOf =
    price === null
      ? unknownPrice
      : (inputTokens) => worker.prices.find({ provider, modelId, inputTokens, at });
  const command: ReserveCommand = {
    type: "reserve",
    // The step may run again after a crash or a resume. An unreported call has an event, so the number is another one then.
    id: `${taskId} ${step.address} ${attempt} ${state.nextSeq}`,
    taskId,
    attempt,
    input: { tokens, costUsd: price === null ? null : inputCost(price, tokens) + toolsUsd },
    output: {
      maxTokens: outputTokens,
      ...(minOutputTokens !== undefined && { minTokens: minOutputTokens }),
      usdPerToken: price === null ? null : maxOutputUsdPerToken(price),
    },
    turns,
    label: modelName(step.runner.agentId, model).label,
    day: utcDay(now),
    hour: utcHourOfDay(now),
  };
  return { command, priceOf };
}

/**
 * B3: returns the highest cost of a call whose input tokens the provider has reported. `null` if the price is
 * unknown.
 */
export function narrowedCost(
  price: ModelPrice | null,
  { inputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 }: ReportedUsage,
  outputTokens: number,
): number | null {
  if (price === null) return null;
  const input = priceUsage(price, { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens: 0 });
  return (input ?? 0) + outputTokens * maxOutputUsdPerToken(price);
}

function inputCost(price: ModelPrice, tokens: number): number {
  return tokens * maxInputUsdPerToken(price) + (price.requestUsd ?? 0);
}

/** B1: the highest price of an input token. */
function maxInputUsdPerToken({ inputUsd, cacheReadUsd = 0, cacheWriteUsd = 0 }: ModelPrice): number {
  return Math.max(inputUsd, cacheReadUsd, cacheWriteUsd);
}

/** B1: returns the highest price of an output token. */
function maxOutputUsdPerToken({ outputUsd, reasoningUsd = 0 }: ModelPrice): number {
  return Math.max(outputUsd, reasoningUsd);
}

/**
 * B1: returns the output limit for a request that states none. The model's own limit is not used directly, because
 * it may be so high that one call reserves a whole budget.
 */
export function usualOutputTokens({
  defaultOutputTokens: usual,
  maxOutputTokens,
}: Pick<Model, "defaultOutputTokens" | "maxOutputTokens">): number {
  return usual ?? Math.min(defaultOutputTokens, maxOutputTokens ?? defaultOutputTokens);
}
