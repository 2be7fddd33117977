import {
  addUsage,
  BudgetExhaustedError,
  Fault,
  fromNanoUsd,
  messageText,
  noUsage,
  priceUsage,
  sealMadeJson,
  toNanoUsd,
  type AssistantMessage,
  type LlmReply,
  type Model,
  type ModelResponse,
  type Usage,
} from "../../kernel/index.ts";
import { faultStopReason, faultUsage, partialOutput } from "../journal/task-end.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { Grant } from "./reservation.ts";
import { modelName } from "./model-name.ts";

/** A provider's response with the reservation that pays for it. It is settled in the commit that records the step. */
export class PendingReply {
  readonly step: ActiveStep;
  readonly model: Model;
  readonly grant: Grant;
  readonly response: ModelResponse;
  /** Role whose model answered. */
  readonly role: string;
  readonly durationMs: number;
  /** Usage of earlier replies to the same request that could not be used. Their reservations are settled. */
  readonly earlierUsage: Usage;

  constructor(
    step: ActiveStep,
    model: Model,
    grant: Grant,
    response: ModelResponse,
    role: string,
    durationMs: number,
    earlierUsage: Usage,
  ) {
    this.step = step;
    this.model = model;
    this.grant = grant;
    this.response = response;
    this.role = role;
    this.durationMs = durationMs;
    this.earlierUsage = earlierUsage;
  }

  settle(): LlmReply {
    return concludeReply(this.step, this, this.response, settleReservation(this.step, this));
  }
}

/**
 * B1, B3: settles the reservation of a reply with the usage that the provider reported. Returns this usage with its
 * price, including the usage of earlier replies that could not be used.
 */
export function settleReservation(step: ActiveStep, reply: PendingReply): Usage {
  const { response, grant, durationMs, earlierUsage } = reply;
  const usage = settleResponse(step, grant, response, durationMs);
  return earlierUsage === noUsage ? usage : addUsage(earlierUsage, usage);
}

/**
 * The model whose reported input is the size of the transcript. `undefined` if the provider has executed tools: it then read the
 * conversation several times.
 */
export function countingModel({ model, response, grant }: PendingReply): Model | undefined {
  const { providerToolUses: uses } = response;
  const isReadOnce =
    grant.providerTools === undefined ||
    (uses !== undefined && Object.values(uses).every((count) => count === 0));
  return isReadOnce ? model : undefined;
}

/** Settles one response, like `settleReservation`. */
export function settleResponse(
  { runner }: ActiveStep,
  grant: Grant,
  response: Pick<ModelResponse, "usage" | "providerToolUses">,
  durationMs: number,
): Usage {
  const { taskId, host } = runner;
  const usage = pricedUsage(grant, response);
  const { outputTokens, cacheReadTokens, costUsd } = usage;
  const tokens = usage.inputTokens + usage.outputTokens;
  host.ledger.apply(taskId, {
    type: "settle",
    id: grant.id,
    tokens,
    costUsd,
    outputTokens,
    cachedTokens: cacheReadTokens,
    durationMs,
  });
  if (runner.state.headcount.tasks[taskId]?.shielded === true)
    runner.log.applySeat({ type: "progress", taskId });
  return usage;
}

/** Returns the usage that a provider reported, with its cost at the price of the reservation. */
export function pricedUsage(
  { priceOf, providerTools }: Pick<Grant, "priceOf" | "providerTools">,
  { usage: reported, providerToolUses }: Pick<ModelResponse, "usage" | "providerToolUses">,
): Usage {
  const {
    inputTokens,
    outputTokens,
    cacheReadTokens = 0,
    cacheWriteTokens = 0,
    reasoningTokens = 0,
  } = reported;
  const tokensUsd = priceUsage(priceOf(inputTokens), reported);
  // A provider that reports the cost of a call includes that of its tools.
  const toolsUsd = reported.costUsd === undefined ? (providerTools?.costOf(providerToolUses) ?? 0) : 0;
  const priced = tokensUsd === null ? null : tokensUsd + toolsUsd;
  // Rounded to nano-USD like the ledger, so that the costs of the calls add up to what was spent.
  const costUsd = priced === null ? null : fromNanoUsd(toNanoUsd(priced));
  return { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, costUsd };
}

/**
 * J7: emits `message_end` and returns the reply as the caller receives it and the journal records it. Throws if the
 * budget cut the output (B1). Also throws if the reply is not JSON or is too large, because the store would refuse
 * each commit of a run with such an event (J10). `grant` is absent if middleware made the response without calling
 * the model.
 */
export function concludeReply(
  step: ActiveStep,
  { model, role, grant, durationMs = 0 }: Pick<PendingReply, "model" | "role"> & Partial<PendingReply>,
  { message, stopReason, modelId }: ModelResponse,
  usage: Usage,
): LlmReply {
  const { name } = modelName(step.runner.agentId, model);
  const answeredBy =
    modelId === undefined || modelId === model.modelId ? name : { provider: model.provider, modelId };
  flattenText(message);
  const reply: LlmReply = { message, stopReason, usage, model: answeredBy };
  sealMadeJson(reply, "the reply of the model");
  step.runner.worker.sizes.assertReply(reply, "the reply of the model");
  const data = { message, stopReason, usage, model: answeredBy, durationMs };
  step.emit({ type: "message_end", data: role === "main" ? data : { ...data, modelRole: role } });
  const text = messageText(message);
  const exhaustion = truncatedByBudget(step, grant, stopReason, text);
  if (exhaustion !== undefined) throw exhaustion;
  if (stopReason === "content_blocked" || stopReason === "malformed_call")
    throw unusableReply(answeredBy, stopReason, text, usage);
  return reply;
}

/**
 * B1: creates the error for output that was cut at a limit which the budget lowered. Such output is always
 * `budget_exhausted` and never a success. `partial` is the part of the output that may be shown.
 */
export function truncatedByBudget(
  step: ActiveStep,
  grant: Grant | undefined,
  stopReason: ModelResponse["stopReason"],
  partial = "",
): BudgetExhaustedError | undefined {
  const exhaustion = grant?.cutBy ?? null;
  if (exhaustion === null || stopReason !== "length") return undefined;
  const { dimension, limit, used, taskId, cap } = exhaustion;
  step.emit({ type: "budget_exhausted", data: exhaustion });
  const reason = "the answer was cut at what was left of the budget";
  const details = { taskId, reason, [partialOutput]: partial, [faultStopReason]: stopReason };
  return new BudgetExhaustedError({ dimension, limit, used, ...(cap && { cap }), details });
}

/** Creates the fault for a reply that is not an answer. Its call is paid, and its usage counts for the task. */
function unusableReply(
  { provider, modelId }: LlmReply["model"],
  stopReason: "content_blocked" | "malformed_call",
  text: string,
  usage: Usage,
): Fault {
  const details = {
    provider,
    modelId,
    [faultStopReason]: stopReason,
    [faultUsage]: { ...usage },
    [partialOutput]: text,
  };
  const model = `${provider}/${modelId}`;
  return stopReason === "content_blocked"
    ? new Fault(
        "model_content_blocked",
        `${model} withheld the answer or refused to give one: change the prompt or the model`,
        { details },
      )
    : new Fault(
        "model_format_error",
        `${model} wrote a malformed tool call twice: simplify the schemas of its tools or change the model`,
        { details },
      );
}

/**
 * Makes the text of a reply one contiguous string in memory. V8 represents text concatenated from deltas as a rope,
 * a tree that keeps every piece alive. Flat text lowers `npm run bench -- loop`, row "memory of a stored reply of
 * 2,000 deltas", by 10 %. Reading the last character flattens the rope. The last character is read, because the
 * optimizing compiler may remove an unused read of the first character or an unused `charCodeAt`.
 */
export function flattenText({ content }: AssistantMessage): void {
  for (const part of content) if (part.type === "text" || part.type === "reasoning") part.text.at(-1);
}
