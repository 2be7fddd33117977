import {
  addUsage,
  Fault,
  messageText,
  noUsage,
  stopsTask,
  type ChatContext,
  type ChatMiddleware,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
} from "../../kernel/index.ts";
import { boundRequest } from "./reservation.ts";
import { shownAnswer } from "./delta-filters.ts";
import { middlewareContext } from "../task/middleware-context.ts";
import {
  Asking,
  Attempts,
  conclude,
  truncatedByBudget,
  settleReservation,
  type Answer,
  type CalledModel,
} from "./model-attempts.ts";
import type { ActiveStep } from "../task/active-step.ts";

export interface ChatCall {
  readonly open: ActiveStep;
  readonly model: Model;
  /** The request as the agent's code made it. */
  readonly whole: ModelRequest;
  /** Its bound, by the model that is asked. */
  readonly inputTokens: (model: Model) => number;
  readonly request: LlmRequest;
  readonly role: string;
}

/**
 * A model call inside its middleware. Each `next` is a call of its own: reserved, retried, paid. J7: what the layers leave is what is
 * recorded. An answer that a layer asks for again is paid before the next one is reserved, and again if the process dies then.
 */
export async function callThroughMiddleware(chat: ChatMiddleware, call: ChatCall): Promise<CalledModel> {
  const { open, model, whole, request, role } = call;
  const { streaming } = open.runner.task.record;
  const attempts = new Attempts();
  let answer: Answer | undefined;
  let paid = noUsage;
  let counted = false;
  const context: ChatContext = {
    ...middlewareContext(open),
    systemInstructions: request.instructions ?? "",
    role,
    model,
    request: whole,
    streaming,
    filters: [],
  };
  const next = async (): Promise<void> => {
    if (answer !== undefined) {
      paid = addUsage(paid, settleReservation(open, answer));
      open.end();
    }
    answer = undefined;
    counted = context.request === whole;
    const { filters, request: asked } = context;
    const inputTokens = counted ? call.inputTokens : () => boundRequest(asked);
    const outgoing = { model: context.model, request: asked, role, inputTokens, filters };
    answer = await new Asking(open, outgoing, attempts).come();
    context.result = answer.response;
  };
  try {
    await chat.process(context, next);
  } catch (error) {
    if (answer === undefined) throw error;
    settleReservation(open, answer);
    // What a layer finds wrong with half an answer is that it is half. It is not shown: the layers around have not seen it.
    const { grant, response } = answer;
    throw (stopsTask(error) ? undefined : truncatedByBudget(open, grant, response.stopReason)) ?? error;
  }
  // The layers may have taken their time.
  open.endedAt = undefined;
  const { result } = context;
  if (result === undefined) {
    throw new Fault(
      "middleware_misuse",
      "the middleware around a model call neither called next nor set context.result",
    );
  }
  if (answer === undefined && streaming) showWhole(open, context);
  const settle = (): LlmReply => {
    const usage = answer === undefined ? paid : addUsage(paid, settleReservation(open, answer));
    return conclude(open, answer ?? { model: context.model }, result, usage);
  };
  return { settle, countedBy: counted && paid === noUsage ? answer?.model : undefined };
}

/** Nothing was streamed: whoever watches is shown the answer in one piece. */
function showWhole(open: ActiveStep, { result, filters }: ChatContext): void {
  const text = result === undefined ? "" : messageText(result.message);
  if (text === "") return;
  const deltas = shownAnswer(open, 1, filters);
  deltas.begin();
  deltas.push({ type: "text_delta", text });
  deltas.flush();
}
