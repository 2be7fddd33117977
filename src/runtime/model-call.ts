import {
  BudgetExhaustedError,
  CancellationError,
  classifyError,
  Fault,
  retryDelayMs,
  systemMessage,
  type ClassifiedError,
  type Decision,
  type EventDraft,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelPrice,
  type ModelRequest,
  type ModelResponse,
  type ReserveCommand,
  type StepAddress,
} from "../kernel/index.ts";
import { dearestInputUsd, dearestOutputUsd, priceUsage } from "./price-usage.ts";
import type { TaskRunner } from "./task-runner.ts";
import { boundMessages, boundTools } from "./token-bound.ts";

/** What the provider has counted already: the tokens of the first so many messages, instructions and tools included. */
export interface SentPrefix {
  readonly messages: number;
  readonly tokens: number;
}

export interface ModelCall {
  readonly runner: TaskRunner;
  readonly address: StepAddress;
  readonly request: LlmRequest;
  readonly role: string;
  readonly sent: SentPrefix | undefined;
  readonly tell: (draft: EventDraft) => void;
  readonly openSeq: number;
  readonly again: boolean;
}

/** An output limit for models that do not say theirs. */
const defaultOutputTokens = 8_192;

/**
 * One turn's model call: reserve, call, settle; again after a failure that may pass (J5: inside the step). Each attempt reserves
 * anew, and one that ends without reported usage is charged in full (B3).
 */
export async function callModel(call: ModelCall): Promise<LlmReply> {
  const { runner } = call;
  const { retry } = runner.owner;
  const model = findModel(call);
  for (let attempt = 1; ; attempt++) {
    const result = await attemptCall(call, model, attempt);
    if (attempt > 1)
      runner.tell({ type: "retry_end", data: { attempt: attempt - 1, success: "reply" in result } });
    if ("reply" in result) return result.reply;
    const { kind, retryable, message, retryAfterMs } = result.error;
    const fault = new Fault(`model_${kind}`, message, { cause: result.cause });
    if (!retry.enabled || !retryable || fault.retry !== "backoff" || attempt > retry.maxRetries) throw fault;
    const delayMs = retryDelayMs(attempt, retry, runner.owner.random, retryAfterMs);
    runner.tell({
      type: "retry_start",
      data: { attempt, maxAttempts: retry.maxRetries, delayMs, kind, message },
    });
    await pause(runner, delayMs);
  }
}

type Attempt = { readonly reply: LlmReply } | { readonly error: ClassifiedError; readonly cause: unknown };

async function attemptCall(call: ModelCall, model: Model, attempt: number): Promise<Attempt> {
  const { runner, address, request } = call;
  const price = findPrice(runner, model, request);
  const id = `${runner.taskId} ${address} ${attempt}`;
  const granted = await reserve(call, model, price, id, attempt);
  let parts = 0;
  try {
    await runner.begin();
  } catch (error) {
    book(runner, { type: "refund", id });
    throw error;
  }
  try {
    const sent = modelRequest(
      request,
      granted.clamped || request.maxOutputTokens !== undefined ? granted.outputTokens : undefined,
    );
    const response = await invoke(call, model, sent, attempt, () => parts++);
    const reply = settle(call, model, response, price, id);
    if (granted.clamped && response.stopReason === "length") throw cutShort(runner, granted.outputTokens);
    return { reply };
  } catch (error) {
    if (error instanceof BudgetExhaustedError) throw error;
    const classified = classifyError(error, { now: runner.owner.clock.now() });
    // Refused before any body: nothing was billed. Anything else may have been.
    const refused = classified.status !== undefined && parts === 0;
    book(runner, { type: refused ? "refund" : "lose", id });
    if (!refused) tellLost(runner, id, attempt);
    if (runner.token.cancelled) throw runner.token.error ?? new CancellationError("cancelled");
    return { error: classified, cause: error };
  } finally {
    runner.finish();
  }
}

function settle(
  call: ModelCall,
  model: Model,
  response: ModelResponse,
  price: ModelPrice | null,
  id: string,
): LlmReply {
  const { runner, tell } = call;
  const { message, stopReason } = response;
  const costUsd = priceUsage(price, response.usage);
  const usage = { ...response.usage, costUsd };
  const named = { provider: model.provider, modelId: response.modelId ?? model.modelId };
  book(runner, { type: "settle", id, tokens: usage.inputTokens + usage.outputTokens, costUsd });
  runner.log.seat({ type: "progress", taskId: runner.taskId });
  tell({ type: "message_end", data: { message, stopReason, usage, model: named } });
  return { message, stopReason, usage, model: named };
}

async function invoke(
  { runner, openSeq, again }: ModelCall,
  model: Model,
  request: ModelRequest,
  attempt: number,
  onPart: () => void,
): Promise<ModelResponse> {
  const { signal, taskId } = runner;
  if (!runner.task.record.streaming) return model.generate(request, { signal });
  const { lease } = runner.log;
  const base = { runId: lease.runId, taskId, messageSeq: openSeq, attempt };
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

async function reserve(
  { runner, request, sent }: ModelCall,
  model: Model,
  price: ModelPrice | null,
  id: string,
  attempt: number,
): Promise<Extract<Decision, { kind: "granted" }>> {
  const tokens = boundInput(request, sent);
  const command: ReserveCommand = {
    type: "reserve",
    id,
    taskId: runner.taskId,
    attempt,
    input: { tokens, costUsd: price === null ? null : tokens * dearestInputUsd(price) },
    output: {
      maxTokens: request.maxOutputTokens ?? model.maxOutputTokens ?? defaultOutputTokens,
      usdPerToken: price === null ? null : dearestOutputUsd(price),
    },
    turns: attempt === 1 ? 1 : 0,
  };
  await runner.seated();
  runner.meta.check();
  const decisions = runner.tree.reserve(runner.taskId, command);
  const decision = decisions ?? (await runner.waiting(runner.tree.decided(id)));
  if (decision.kind === "granted") return decision;
  if (decision.kind === "unknown_price") {
    throw new Fault(
      "unknown_price",
      `${model.provider}/${model.modelId} has no known price and task ${decision.taskId} has a cost cap: give a price, or set unknownPrice to "ignore"`,
    );
  }
  const { dimension, limit, used, taskId } = decision.exhaustion;
  runner.tell({ type: "budget_exhausted", data: decision.exhaustion });
  throw new BudgetExhaustedError({ dimension, limit, used, details: { taskId } });
}

function boundInput(request: LlmRequest, sent: SentPrefix | undefined): number {
  const { transcript, instructions = "", ephemeral = [], tools = [] } = request;
  const extra = boundMessages(ephemeral);
  if (sent !== undefined && sent.messages <= transcript.length) {
    return sent.tokens + boundMessages(transcript.slice(sent.messages)) + extra;
  }
  return boundMessages([systemMessage(instructions)]) + boundTools(tools) + boundMessages(transcript) + extra;
}

function book(runner: TaskRunner, command: Parameters<TaskRunner["tree"]["book"]>[1]): void {
  runner.tree.book(runner.taskId, command);
}

function tellLost(runner: TaskRunner, reservationId: string, attempt: number): void {
  runner.tell({ type: "budget_lost", data: { reservationId, attempt, tokens: 0, costUsd: null } });
}

function cutShort(runner: TaskRunner, limit: number): BudgetExhaustedError {
  return new BudgetExhaustedError({
    dimension: "tokens",
    limit,
    used: limit + 1,
    details: { taskId: runner.taskId, reason: "the answer was cut at what was left of the budget" },
  });
}

function findModel({ runner, role }: ModelCall): Model {
  const model = runner.agent.models?.[role];
  if (model !== undefined) return model;
  const known = Object.keys(runner.agent.models ?? {}).join(", ");
  throw new Fault(
    "invalid_argument",
    `agent ${runner.agentId} has no model for the role ${role}; it has: ${known || "none"}`,
  );
}

function findPrice(runner: TaskRunner, { provider, modelId }: Model, request: LlmRequest): ModelPrice | null {
  const { prices, clock } = runner.owner;
  return prices.find({ provider, modelId, inputTokens: boundMessages(request.transcript), at: clock.now() });
}

function modelRequest(request: LlmRequest, maxOutputTokens: number | undefined): ModelRequest {
  const { transcript, instructions = "", ephemeral = [], role: _role, ...rest } = request;
  const system = instructions === "" ? [] : [systemMessage(instructions)];
  const limit = maxOutputTokens === undefined ? {} : { maxOutputTokens };
  return { ...rest, ...limit, messages: [...system, ...transcript, ...ephemeral] };
}

/** A retry's delay: not journaled, and over at once when the task is cancelled. */
function pause({ owner: { clock }, token }: TaskRunner, delayMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const forget = token.onCancel((error) => {
      cancel();
      reject(error);
    });
    const cancel = clock.schedule(clock.now() + delayMs, () => {
      forget();
      resolve();
    });
  });
}
