import {
  BudgetExhaustedError,
  CancellationError,
  classifyError,
  Fault,
  fromNanoUsd,
  messageText,
  priceUsage,
  retryDelayMs,
  toNanoUsd,
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
import { ModelLine, type FailedAttempt } from "./model-line.ts";
import { never } from "./never.ts";
import type { OpenStep } from "./open-step.ts";
import { partialOutput } from "./task-end.ts";
import type { TaskRunner } from "./task-runner.ts";

/** What came of a call. `settle` is for the breath in which the step is recorded. */
export interface CalledModel {
  readonly settle: () => LlmReply;
  /** Whose count of input is that of the transcript as it stands; nobody's if something on the way changed it. */
  readonly countedBy: Model | undefined;
}

/** One request as it goes out. */
export interface Outgoing {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly role: string;
  /** B1: of input, at most, as this model may count. */
  readonly inputTokens: (model: Model) => number;
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
  readonly durationMs: number;
}

/**
 * Reserve, call; again after a failure that may pass (J5: inside the step). Each attempt reserves anew, and one that ends without
 * reported usage is charged in full (B3). Of several models that may answer, the next is asked at once. What it resolves to has not
 * been settled; `as` makes of the answer what the caller wants.
 */
export async function callAnswered<Result>(
  open: OpenStep,
  outgoing: Outgoing,
  attempts: Attempts,
  as: (answer: Answer) => Result,
): Promise<Result> {
  const { runner, strand } = open;
  const { request } = outgoing;
  const { maxOutputTokens } = request;
  const line = new ModelLine(outgoing.model, request, outgoing.role);
  for (let tries = 1; ;) {
    const { model } = line;
    const attempt = ++attempts.count;
    const { turns } = attempts;
    const inputTokens = outgoing.inputTokens(model);
    const reserved = reserveCall({ open, model, inputTokens, maxOutputTokens, attempt, turns });
    const grant = reserved instanceof Promise ? await reserved : reserved;
    let isSent = false;
    let parts = 0;
    try {
      open.start();
      const flushed = runner.log.flush();
      if (flushed !== undefined) await flushed;
      if (runner.dropped) return await never();
      runner.check(strand);
      isSent = true;
      const { clock } = runner.owner;
      const sentAt = clock.now();
      const limited = limit(request, grant);
      const response = await (runner.task.record.streaming
        ? stream(open, { ...outgoing, model, request: limited }, attempt, () => parts++)
        : model.generate(limited, { signal: strand.signal }));
      if (runner.dropped) return await never();
      attempts.turns = 0;
      if (tries > 1) open.tell({ type: "retry_end", data: { attempt: tries - 1, success: true } });
      return as({ response, model, grant, durationMs: clock.now() - sentAt });
    } catch (error) {
      if (runner.dropped) return await never();
      if (!isSent) {
        runner.tree.book(runner.taskId, { type: "refund", id: grant.id });
        throw error;
      }
      const failed = fail(open, grant, error, parts);
      if (failed.charged) attempts.turns = 0;
      if (line.passOn(failed)) tellFallback(open, model, line.model, failed.error);
      else await delay(open, retryDelay(open, tries++, line.startOver()));
    }
  }
}

/** Codes of the platform for a connection that never came about. */
const unreached: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
]);

/** B3: books what an attempt may have cost. Throws when it was stopped, and what no other attempt could mend. */
function fail(
  open: OpenStep,
  grant: Grant,
  cause: unknown,
  parts: number,
): FailedAttempt & { readonly charged: boolean } {
  const { runner, strand } = open;
  const error = classifyError(cause, { now: runner.owner.clock.now() });
  // Refused before any body, or never sent: nothing was billed. Anything else may have been.
  const unsent = Fault.is(cause) && !(cause instanceof CancellationError);
  const free = error.refused || unsent || unreached.has(error.providerCode ?? "");
  const charged = parts > 0 || !free;
  if (charged) lose(runner, grant.id);
  else runner.tree.book(runner.taskId, { type: "refund", id: grant.id });
  open.end();
  const stop = strand.token.error;
  if (stop !== undefined) throw stop;
  // A fault that names no kind of failure is about the request or the set-up.
  if (Fault.is(cause) && !cause.code.startsWith("model_")) throw cause;
  return { error, cause, charged, shown: parts > 0 };
}

function tellFallback(
  { runner }: OpenStep,
  from: Model,
  to: Model,
  { kind, message }: ClassifiedError,
): void {
  runner.tell({ type: "model_fallback", data: { from: nameOf(from), to: nameOf(to), kind, message } });
}

function nameOf({ provider, modelId }: Model): { readonly provider: string; readonly modelId: string } {
  return { provider, modelId };
}

/** How long to wait before the next attempt; throws when there is to be none. Tells of both. */
function retryDelay(open: OpenStep, tries: number, { error, cause }: FailedAttempt): number {
  const { kind, retryable, message, retryAfterMs } = error;
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
  const priced = priceUsage(grant.priceOf(response.usage.inputTokens), response.usage);
  // As the ledger counts it: what a call is said to have cost adds up to what was spent.
  const costUsd = priced === null ? null : fromNanoUsd(toNanoUsd(priced));
  const usage = { ...response.usage, costUsd };
  const tokens = usage.inputTokens + usage.outputTokens;
  tree.book(taskId, { type: "settle", id: grant.id, tokens, costUsd });
  if (runner.state.headcount.tasks[taskId]?.shielded === true) runner.log.seat({ type: "progress", taskId });
  return usage;
}

/** What the caller gets, and the journal keeps (J7). */
export function conclude(
  open: OpenStep,
  { model, grant, durationMs = 0 }: Pick<Answer, "model"> & Partial<Answer>,
  { message, stopReason, modelId }: ModelResponse,
  usage: Usage,
): LlmReply {
  const { name } = open.runner.nameOf(model);
  const named =
    modelId === undefined || modelId === model.modelId ? name : { provider: model.provider, modelId };
  open.tell({ type: "message_end", data: { message, stopReason, usage, model: named, durationMs } });
  const cut = cutShort(open, grant, stopReason, messageText(message));
  if (cut !== undefined) throw cut;
  return { message, stopReason, usage, model: named };
}

/** B1: output cut short by a clamp is an exhausted budget, never success. `partial`: what may be shown of it. */
export function cutShort(
  open: OpenStep,
  grant: Grant | undefined,
  stopReason: ModelResponse["stopReason"],
  partial = "",
): BudgetExhaustedError | undefined {
  const cutBy = grant?.cutBy ?? null;
  if (cutBy === null || stopReason !== "length") return undefined;
  const { dimension, limit: most, used, taskId: of } = cutBy;
  open.tell({ type: "budget_exhausted", data: cutBy });
  const reason = "the answer was cut at what was left of the budget";
  const details = { taskId: of, reason, [partialOutput]: partial };
  return new BudgetExhaustedError({ dimension, limit: most, used, details });
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

/** B1: the bound holds only if the call says its limit. */
function limit(request: ModelRequest, { outputLimit }: Grant): ModelRequest {
  return outputLimit === null ? request : { ...request, maxOutputTokens: outputLimit };
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
