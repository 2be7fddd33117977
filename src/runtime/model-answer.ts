import {
  BudgetExhaustedError,
  CancellationError,
  classifyError,
  Fault,
  fromNanoUsd,
  priceUsage,
  retryDelayMs,
  type ClassifiedError,
  type DeltaFilter,
  type LlmReply,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type Usage,
} from "../kernel/index.ts";
import { reserveCall, type Grant } from "./call-reservation.ts";
import { DeltaStream } from "./delta-stream.ts";
import { never } from "./never.ts";
import type { OpenStep } from "./open-step.ts";
import type { TaskRunner } from "./task-runner.ts";

/** What came of a call. `settle` is for the breath in which the step is recorded. */
export interface CalledModel {
  readonly settle: () => LlmReply;
  /** The provider's count of input is that of the transcript as it stands. */
  readonly counted: boolean;
}

/** One request as it goes out. */
export interface Outgoing {
  readonly model: Model;
  readonly request: ModelRequest;
  /** B1: of input, at most. */
  readonly inputTokens: number;
  readonly filters: readonly DeltaFilter[];
}

/** How often a step has called a model, whichever. B1: a turn counts once, with the first attempt that is charged. */
export interface Attempts {
  count: number;
  turns: number;
}

/** An answer, and the reservation it is paid from. */
export interface Answer {
  readonly response: ModelResponse;
  readonly model: Model;
  readonly grant: Grant;
}

/**
 * Reserve, call; again after a failure that may pass (J5: inside the step). Each attempt reserves anew, and one that ends without
 * reported usage is charged in full (B3). What it resolves to has not been settled.
 */
export async function callAnswered(open: OpenStep, outgoing: Outgoing, attempts: Attempts): Promise<Answer> {
  const { runner, strand } = open;
  const { model, request, inputTokens } = outgoing;
  const { maxOutputTokens } = request;
  for (let tries = 1; ; tries++) {
    const attempt = ++attempts.count;
    const { turns } = attempts;
    const grant = await reserveCall({ open, model, inputTokens, maxOutputTokens, attempt, turns });
    let isSent = false;
    let parts = 0;
    try {
      open.start();
      await runner.log.flush();
      if (runner.dropped) return await never();
      runner.check(strand);
      isSent = true;
      const limited = limit(request, grant);
      const response = await (runner.task.record.streaming
        ? stream(open, { ...outgoing, request: limited }, attempt, () => parts++)
        : model.generate(limited, { signal: strand.signal }));
      if (runner.dropped) return await never();
      attempts.turns = 0;
      if (tries > 1) open.tell({ type: "retry_end", data: { attempt: tries - 1, success: true } });
      return { response, model, grant };
    } catch (error) {
      if (runner.dropped) return await never();
      if (!isSent) {
        runner.tree.book(runner.taskId, { type: "refund", id: grant.id });
        throw error;
      }
      const { classified, charged } = fail(open, grant, error, parts);
      if (charged) attempts.turns = 0;
      await delay(open, retryDelay(open, tries, classified, error));
    }
  }
}

/** B3: books what an attempt may have cost. Throws when it was stopped. */
function fail(
  open: OpenStep,
  grant: Grant,
  error: unknown,
  parts: number,
): { readonly classified: ClassifiedError; readonly charged: boolean } {
  const { runner, strand } = open;
  const classified = classifyError(error, { now: runner.owner.clock.now() });
  // Refused before any body: nothing was billed. Anything else may have been.
  const charged = classified.status === undefined || parts > 0;
  if (charged) lose(runner, grant.id);
  else runner.tree.book(runner.taskId, { type: "refund", id: grant.id });
  open.end();
  const stop = strand.token.error;
  if (stop !== undefined) throw stop;
  if (error instanceof CancellationError) throw error;
  return { classified, charged };
}

/** How long to wait before the next attempt; throws when there is to be none. Tells of both. */
function retryDelay(
  open: OpenStep,
  tries: number,
  { kind, retryable, message, retryAfterMs }: ClassifiedError,
  cause: unknown,
): number {
  const { runner } = open;
  const { retry, random } = runner.owner;
  const fault = new Fault(`model_${kind}`, message, { cause });
  const ended = { type: "retry_end", data: { attempt: tries - 1, success: false } } as const;
  if (!retry.enabled || !retryable || fault.retry !== "backoff" || tries > retry.maxRetries) {
    if (tries > 1) open.tell(ended);
    throw fault;
  }
  if (tries > 1) runner.tell(ended);
  const delayMs = retryDelayMs(tries, retry, random, retryAfterMs);
  const start = { attempt: tries, maxAttempts: retry.maxRetries, delayMs, kind, message };
  runner.tell({ type: "retry_start", data: start });
  return delayMs;
}

/** B1, B3: what the answer cost, taken from its reservation. */
export function payFor({ runner }: OpenStep, { response, grant }: Answer): Usage {
  const { taskId, tree } = runner;
  const costUsd = priceUsage(grant.priceOf(response.usage.inputTokens), response.usage);
  const usage = { ...response.usage, costUsd };
  const tokens = usage.inputTokens + usage.outputTokens;
  tree.book(taskId, { type: "settle", id: grant.id, tokens, costUsd });
  if (runner.state.headcount.tasks[taskId]?.shielded === true) runner.log.seat({ type: "progress", taskId });
  return usage;
}

/** What the caller gets, and the journal keeps (J7). */
export function conclude(
  open: OpenStep,
  { model, grant }: Pick<Answer, "model"> & { readonly grant?: Grant },
  { message, stopReason, modelId }: ModelResponse,
  usage: Usage,
): LlmReply {
  const named = { provider: model.provider, modelId: modelId ?? model.modelId };
  open.tell({ type: "message_end", data: { message, stopReason, usage, model: named } });
  const cutBy = grant?.cutBy ?? null;
  if (cutBy !== null && stopReason === "length") {
    const { dimension, limit: most, used, taskId: of } = cutBy;
    open.tell({ type: "budget_exhausted", data: cutBy });
    const reason = "the answer was cut at what was left of the budget";
    throw new BudgetExhaustedError({ dimension, limit: most, used, details: { taskId: of, reason } });
  }
  return { message, stopReason, usage, model: named };
}

async function stream(
  open: OpenStep,
  { model, request, filters }: Outgoing,
  attempt: number,
  onPart: () => void,
): Promise<ModelResponse> {
  const { signal } = open.strand;
  const deltas = new DeltaStream(open, attempt, filters);
  deltas.begin();
  for await (const part of model.stream(request, { signal })) {
    onPart();
    if (part.type === "finish") {
      deltas.flush();
      const { type: _type, ...response } = part;
      return response;
    }
    deltas.push(part);
  }
  throw new Error("the stream ended without a finish: the connection was cut");
}

/** B3: it may have cost all that was held. */
function lose(runner: TaskRunner, reservationId: string): void {
  const { taskId, tree, state } = runner;
  const reservation = state.ledger.open.find(({ id }) => id === reservationId);
  if (reservation === undefined) return;
  const { attempt, held, priced } = reservation;
  const costUsd = priced ? fromNanoUsd(held.nanoUsd) : null;
  runner.tell({ type: "budget_lost", data: { reservationId, attempt, tokens: held.tokens, costUsd } });
  tree.book(taskId, { type: "lose", id: reservationId });
}

/** B1: a limit is sent when one was asked for, or when what is left is less than the model might write. */
function limit(request: ModelRequest, { outputTokens, cutBy }: Grant): ModelRequest {
  if (cutBy === null && request.maxOutputTokens === undefined) return request;
  return { ...request, maxOutputTokens: outputTokens };
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
