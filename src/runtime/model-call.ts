import {
  BudgetExhaustedError,
  CancellationError,
  classifyError,
  Fault,
  fromNanoUsd,
  retryDelayMs,
  systemMessage,
  type ClassifiedError,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
  type ModelResponse,
} from "../kernel/index.ts";
import { reserveCall, type Grant, type SentPrefix } from "./call-reservation.ts";
import type { OpenStep } from "./open-step.ts";
import { priceUsage } from "./price-usage.ts";
import type { TaskRunner } from "./task-runner.ts";

export type { SentPrefix } from "./call-reservation.ts";

export interface ModelCall {
  readonly open: OpenStep;
  readonly request: LlmRequest;
  readonly role: string;
  readonly sent: SentPrefix | undefined;
}

/**
 * One turn's model call: reserve, call, settle; again after a failure that may pass (J5: inside the step). Each attempt reserves
 * anew, and one that ends without reported usage is charged in full (B3). What it resolves to settles with the record.
 */
export async function callModel(call: ModelCall): Promise<() => LlmReply> {
  const { open } = call;
  const { runner } = open;
  const { retry, random } = runner.owner;
  const model = findModel(call);
  // B1: a turn counts once, with the first attempt that is charged.
  let turns = 1;
  for (let attempt = 1; ; attempt++) {
    const result = await attemptCall(call, { model, attempt, turns });
    if ("charged" in result && result.charged) turns = 0;
    const success = "settle" in result;
    const ended = { type: "retry_end", data: { attempt: attempt - 1, success } } as const;
    if (success) {
      if (attempt > 1) open.tell(ended);
      return result.settle;
    }
    const { kind, retryable, message, retryAfterMs } = result.error;
    const fault = new Fault(`model_${kind}`, message, { cause: result.cause });
    if (!retry.enabled || !retryable || fault.retry !== "backoff" || attempt > retry.maxRetries) {
      if (attempt > 1) open.tell(ended);
      throw fault;
    }
    if (attempt > 1) runner.tell(ended);
    const delayMs = retryDelayMs(attempt, retry, random, retryAfterMs);
    const start = { attempt, maxAttempts: retry.maxRetries, delayMs, kind, message };
    runner.tell({ type: "retry_start", data: start });
    await delay(open, delayMs);
  }
}

type Attempt =
  | { readonly settle: () => LlmReply }
  | { readonly error: ClassifiedError; readonly cause: unknown; readonly charged: boolean };

async function attemptCall(
  call: ModelCall,
  { model, attempt, turns }: { readonly model: Model; readonly attempt: number; readonly turns: number },
): Promise<Attempt> {
  const { open, request, sent } = call;
  const { runner, strand } = open;
  const grant = await reserveCall({ open, request, model, sent, attempt, turns });
  let parts = 0;
  try {
    open.start();
    await runner.live(runner.log.flush());
    runner.check(strand);
  } catch (error) {
    runner.tree.book(runner.taskId, { type: "refund", id: grant.id });
    throw error;
  }
  try {
    const response = await runner.live(
      invoke(call, model, modelRequest(request, grant), attempt, () => parts++),
    );
    return { settle: () => settle(call, model, response, grant) };
  } catch (error) {
    const classified = classifyError(error, { now: runner.owner.clock.now() });
    // Refused before any body: nothing was billed. Anything else may have been.
    const charged = classified.status === undefined || parts > 0;
    if (charged) lose(runner, grant.id);
    else runner.tree.book(runner.taskId, { type: "refund", id: grant.id });
    open.end();
    const stop = strand.token.error;
    if (stop !== undefined) throw stop;
    if (error instanceof CancellationError) throw error;
    return { error: classified, cause: error, charged };
  }
}

/** B1, B3: in one commit with the record of the call. */
function settle({ open }: ModelCall, model: Model, response: ModelResponse, grant: Grant): LlmReply {
  const { runner } = open;
  const { taskId, tree } = runner;
  const { message, stopReason } = response;
  const costUsd = priceUsage(grant.priceOf(response.usage.inputTokens), response.usage);
  const usage = { ...response.usage, costUsd };
  const named = { provider: model.provider, modelId: response.modelId ?? model.modelId };
  const tokens = usage.inputTokens + usage.outputTokens;
  tree.book(taskId, { type: "settle", id: grant.id, tokens, costUsd });
  if (runner.state.headcount.tasks[taskId]?.shielded === true) runner.log.seat({ type: "progress", taskId });
  open.tell({ type: "message_end", data: { message, stopReason, usage, model: named } });
  if (grant.cutBy !== null && stopReason === "length") {
    const { dimension, limit, used, taskId: of } = grant.cutBy;
    open.tell({ type: "budget_exhausted", data: grant.cutBy });
    const reason = "the answer was cut at what was left of the budget";
    throw new BudgetExhaustedError({ dimension, limit, used, details: { taskId: of, reason } });
  }
  return { message, stopReason, usage, model: named };
}

async function invoke(
  { open }: ModelCall,
  model: Model,
  request: ModelRequest,
  attempt: number,
  onPart: () => void,
): Promise<ModelResponse> {
  const { runner, strand, openSeq, again } = open;
  const { signal } = strand;
  if (!runner.task.record.streaming) return model.generate(request, { signal });
  const { lease } = runner.log;
  const base = { runId: lease.runId, taskId: runner.taskId, messageSeq: openSeq, attempt };
  const { events } = runner.owner.store;
  if (attempt > 1 || again) events.putDelta(lease, { ...base, type: "message_reset" });
  const offsets = { text: 0, reasoning: 0, tool_input: 0 };
  for await (const part of model.stream(request, { signal })) {
    onPart();
    if (part.type === "finish") {
      const { type: _type, ...response } = part;
      return response;
    }
    const kind =
      part.type === "text_delta" ? "text" : part.type === "reasoning_delta" ? "reasoning" : "tool_input";
    events.putDelta(lease, { ...base, type: "message_update", kind, offset: offsets[kind], text: part.text });
    offsets[kind] += part.text.length;
  }
  throw new Error("the stream ended without a finish: the connection was cut");
}

/** B3: it may have cost all that was held. */
function lose(runner: TaskRunner, reservationId: string): void {
  const { taskId, tree, state } = runner;
  const reservation = state.ledger.open[reservationId];
  if (reservation === undefined) return;
  const { attempt, held, priced } = reservation;
  const costUsd = priced ? fromNanoUsd(held.nanoUsd) : null;
  runner.tell({ type: "budget_lost", data: { reservationId, attempt, tokens: held.tokens, costUsd } });
  tree.book(taskId, { type: "lose", id: reservationId });
}

function findModel({ open: { runner }, role }: ModelCall): Model {
  const model = runner.agent.models?.[role];
  if (model !== undefined) return model;
  const known = Object.keys(runner.agent.models ?? {}).join(", ");
  throw new Fault(
    "invalid_argument",
    `agent ${runner.agentId} has no model for the role ${role}; it has: ${known || "none"}`,
  );
}

function modelRequest(request: LlmRequest, { outputLimit }: Grant): ModelRequest {
  const { transcript, instructions = "", ephemeral = [], role: _role, ...rest } = request;
  const system = instructions === "" ? [] : [systemMessage(instructions)];
  const limit = outputLimit === null ? {} : { maxOutputTokens: outputLimit };
  return { ...rest, ...limit, messages: [...system, ...transcript, ...ephemeral] };
}

/** Between two attempts. Not journaled. */
async function delay({ runner, strand }: OpenStep, delayMs: number): Promise<void> {
  const { clock } = runner.owner;
  const over = Promise.withResolvers<void>();
  const cancel = clock.schedule(clock.now() + delayMs, over.resolve);
  try {
    await runner.resting(strand, over.promise);
  } finally {
    cancel();
  }
}
