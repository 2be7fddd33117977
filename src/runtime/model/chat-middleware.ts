import {
  addUsage,
  describeKind,
  Fault,
  isChatMessage,
  messageText,
  noUsage,
  priceUsage,
  readProperty,
  stopsTask,
  withFixedPlace,
  type ChatContext,
  type ChatMiddleware,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
  type RequestPart,
} from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { middlewareContext } from "../task/middleware-context.ts";
import { openDeltaSink } from "./delta-stream.ts";
import { AttemptCount, ModelAttempts, type ModelCallResult } from "./model-attempts.ts";
import {
  concludeReply,
  countingModel,
  settleReservation,
  truncatedByBudget,
  type PendingReply,
} from "./settle-reply.ts";
import { changedParts } from "./sent-request.ts";
import { boundRequest } from "./token-bound.ts";

export interface ChatCall {
  readonly step: ActiveStep;
  readonly model: Model;
  /** The request as the agent's code passed it. */
  readonly request: LlmRequest;
  /** The request in the form in which the model receives it, before middleware changes it. */
  readonly modelRequest: ModelRequest;
  /** B1: upper bound of the input tokens of `modelRequest`, as the given model may count them. */
  readonly inputTokens: (model: Model) => number;
  readonly role: string;
  /** Number of ephemeral messages at the end of `modelRequest`. */
  readonly ephemeralMessages: number;
  /** J11: records the request, and which parts of it middleware changed. */
  readonly record: (changed: readonly RequestPart[]) => void;
}

/**
 * Calls a model through middleware. Each call of `next` is a separate model call with its own reservation, retries
 * and charge. J7: the journal records the final result of the middleware. If middleware calls `next` again, the
 * earlier reply is settled before the next reservation; after a crash in between, the earlier call is paid again.
 */
export async function callThroughMiddleware(chat: ChatMiddleware, call: ChatCall): Promise<ModelCallResult> {
  const { step, model, modelRequest, request, role, ephemeralMessages } = call;
  const { streaming } = step.runner.task.record;
  const count = new AttemptCount();
  let reply: PendingReply | undefined;
  let settledUsage = noUsage;
  let isUnchanged = false;
  const context = withFixedPlace<ChatContext>({
    ...middlewareContext(step),
    systemInstructions: request.instructions ?? "",
    role,
    model,
    request: modelRequest,
    streaming,
    filters: [],
    costOf: ({ usage }) => priceUsage(reply?.grant.priceOf(usage.inputTokens) ?? null, usage),
  });
  const next = async (): Promise<void> => {
    if (reply !== undefined) {
      settledUsage = addUsage(settledUsage, settleReservation(step, reply));
      step.end();
    }
    reply = undefined;
    isUnchanged = context.request === modelRequest;
    const { filters, request: sent } = context;
    const inputTokens = isUnchanged ? call.inputTokens : (called: Model) => boundRequest(sent, called);
    call.record(changedParts(modelRequest, sent));
    const outgoing = { model: context.model, request: sent, role, inputTokens, filters, ephemeralMessages };
    reply = await new ModelAttempts(step, outgoing, count).run();
    context.result = reply.response;
  };
  try {
    await chat.process(context, next);
    if (context.result !== reply?.response) requireMessage(context.result);
  } catch (error) {
    if (reply === undefined) throw error;
    settleReservation(step, reply);
    // A layer that rejects output which the budget cut fails because of the budget. The partial output is not included
    // in the error, because the outer layers have not seen it.
    const { grant, response } = reply;
    throw (stopsTask(error) ? undefined : truncatedByBudget(step, grant, response.stopReason)) ?? error;
  }
  // Middleware may have run for a while after the model answered.
  step.endedAt = undefined;
  const { result } = context;
  if (result === undefined) {
    throw new Fault(
      "middleware_misuse",
      "the middleware around a model call neither called next nor set context.result",
    );
  }
  if (reply === undefined && streaming) publishWhole(step, context);
  const settle = (): LlmReply => {
    const usage = reply === undefined ? settledUsage : addUsage(settledUsage, settleReservation(step, reply));
    return concludeReply(step, reply ?? { model: context.model, role }, result, usage);
  };
  const isWhole = isUnchanged && settledUsage === noUsage;
  return { settle, countedBy: isWhole && reply !== undefined ? countingModel(reply) : undefined };
}

/** Throws for a result of middleware that is not an answer of a model. `undefined` is checked later. */
function requireMessage(result: unknown): void {
  const message = readProperty(result, "message");
  if (result === undefined || (isChatMessage(message) && message.role === "assistant")) return;
  throw new Fault(
    "middleware_misuse",
    `the middleware around a model call set an invalid context.result: expected { message, stopReason, usage } with a message such as assistantMessage(text), not ${describeKind(result)}`,
  );
}

/** Sends a result that middleware made without a model as one delta, for readers of a streaming run. */
function publishWhole(step: ActiveStep, { result, filters }: ChatContext): void {
  const text = result === undefined ? "" : messageText(result.message);
  if (text === "") return;
  const deltas = openDeltaSink(step, 1, filters);
  deltas.begin();
  deltas.push({ type: "text_delta", text });
  deltas.flush();
}
