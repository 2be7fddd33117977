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
} from "../../kernel/index.ts";
import { reserveCall, type Grant } from "./reservation.ts";
import { CallbackFuture } from "../task/callback-future.ts";
import type { ShownAnswer } from "./delta-stream.ts";
import { shownAnswer } from "./delta-filters.ts";
import { CandidateModels, type FailedAttempt } from "./candidate-models.ts";
import type { CallBody } from "../task/in-flight-calls.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { readUntil } from "./read-until.ts";
import { ComputedAtCommit } from "../task/step-result.ts";
import { partialOutput } from "../journal/task-end.ts";
import { flattenText } from "./flatten-text.ts";

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
  inputTokens(model: Model): number;
  readonly filters: readonly DeltaFilter[];
  /** Told of the answer before anyone else. */
  answered?(answer: Answer): void;
}

/** How often a step has called a model, whichever. B1: a turn counts once, with the first attempt that is charged. */
export class Attempts {
  count = 0;
  turns = 1;
}

/** An answer, and the reservation it is paid from; paid when the step is recorded. */
export class Answer extends ComputedAtCommit {
  readonly open: ActiveStep;
  readonly response: ModelResponse;
  readonly model: Model;
  readonly grant: Grant;
  readonly durationMs: number;

  constructor(open: ActiveStep, model: Model, grant: Grant, response: ModelResponse, durationMs: number) {
    super();
    this.open = open;
    this.response = response;
    this.model = model;
    this.grant = grant;
    this.durationMs = durationMs;
  }

  settle(): LlmReply {
    return conclude(this.open, this, this.response, settleReservation(this.open, this));
  }
}

/**
 * One request until it is answered. Reserve, call; again after a failure that may pass (J5: inside the step). Each attempt reserves anew,
 * and one that ends without reported usage is charged in full (B3). Of several models that may answer, the next is asked at once. What
 * it comes to has not been settled. Nobody is told anything once the task was dropped.
 */
export class Asking extends CallbackFuture<Answer> implements CallBody {
  readonly #open: ActiveStep;
  readonly #outgoing: Outgoing;
  readonly #attempts: Attempts;
  readonly #line: CandidateModels;
  #came: (answer: Answer) => void = nobody;
  #fail: (error: unknown) => void = nobody;
  /** Rounds through the line, from 1. */
  #tries = 1;
  #sentAt = 0;
  /** Pieces of the answer that came. */
  #parts = 0;
  /** Ends the attempt under way by a fault. */
  #giveUp: ((fault: Fault) => void) | undefined;
  #isLeft = false;
  #shown: ShownAnswer | undefined;

  constructor(open: ActiveStep, outgoing: Outgoing, attempts: Attempts) {
    super();
    this.#open = open;
    this.#outgoing = outgoing;
    this.#attempts = attempts;
    this.#line = new CandidateModels(outgoing.model, outgoing.request, outgoing.role);
  }

  override begin(came: (answer: Answer) => void, failed: (error: unknown) => void): void {
    this.#came = came;
    this.#fail = failed;
    this.#ask();
  }

  #ask(): void {
    try {
      const open = this.#open;
      const { model } = this.#line;
      const attempt = ++this.#attempts.count;
      const { turns } = this.#attempts;
      const { maxOutputTokens } = this.#outgoing.request;
      const inputTokens = this.#outgoing.inputTokens(model);
      const reserved = reserveCall({ open, model, inputTokens, maxOutputTokens, attempt, turns });
      if (reserved instanceof Promise) this.#follow(reserved.then((grant) => this.#start(model, grant)));
      else this.#start(model, reserved);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** What goes wrong on the way to a call. */
  #follow(way: Promise<void>): void {
    way.catch(this.#fail);
  }

  #start(model: Model, grant: Grant): void {
    const open = this.#open;
    open.start().body = this;
    this.#giveUp = undefined;
    const flushed = open.runner.log.flush();
    if (flushed === undefined) {
      this.#sentAt = this.#attempts.count === 1 ? open.startedAt : open.runner.worker.clock.now();
      this.#send(model, grant);
      return;
    }
    const sent = (): void => this.#sendLater(model, grant);
    this.#follow(flushed.then(sent, (error: unknown) => this.#unsent(grant, error)));
  }

  /** C2: it may have been stopped since. */
  #sendLater(model: Model, grant: Grant): void {
    const { runner, cancelScope } = this.#open;
    if (runner.isDropped) return;
    try {
      runner.check(cancelScope);
    } catch (error) {
      this.#unsent(grant, error);
      return;
    }
    this.#sentAt = runner.worker.clock.now();
    this.#send(model, grant);
  }

  #send(model: Model, grant: Grant): void {
    if (this.#open.runner.isDropped) return;
    this.#parts = 0;
    const failed = (error: unknown): void => this.#failed(model, grant, error);
    const answered = (response: ModelResponse): void => this.#answered(model, grant, response);
    this.#giveUp = failed;
    try {
      this.#call(model, limit(this.#outgoing.request, grant)).then(answered, failed);
    } catch (error) {
      failed(error);
    }
  }

  /** B3: it may have cost all that was held. What still comes of it is nobody's. */
  abandon(fault: Fault): void {
    this.#giveUp?.(fault);
    this.#isLeft = true;
  }

  #call(model: Model, request: ModelRequest): Promise<ModelResponse> {
    const { runner, cancelScope } = this.#open;
    if (runner.task.record.streaming) return this.#stream(model, request);
    // By `call`: compiled for one agent's function, this would be compiled again for the next one's.
    return Promise.resolve(model.generate.call(model, request, { signal: cancelScope.signal }));
  }

  async #stream(model: Model, request: ModelRequest): Promise<ModelResponse> {
    const { signal } = this.#open.cancelScope;
    const shown = shownAnswer(this.#open, this.#attempts.count, this.#outgoing.filters);
    this.#shown = shown;
    shown.begin();
    const finish = await readUntil(model.stream(request, { signal }), (part) => {
      if (this.#isLeft) throw new Error("nobody waits for the rest of this answer");
      this.#parts++;
      if (part.type !== "finish") {
        shown.push(part);
        return undefined;
      }
      shown.flush();
      return part;
    });
    if (finish === undefined) throw new Error("the stream ended without a finish: the connection was cut");
    const { type: _type, ...response } = finish;
    return response;
  }

  #answered(model: Model, grant: Grant, response: ModelResponse): void {
    const open = this.#open;
    const { runner } = open;
    if (runner.isDropped || this.#isLeft) return;
    try {
      this.#attempts.turns = 0;
      if (this.#tries > 1)
        open.emit({ type: "retry_end", data: { attempt: this.#tries - 1, success: true } });
      const answer = new Answer(open, model, grant, response, open.durationSince(this.#sentAt));
      this.#outgoing.answered?.(answer);
      this.#came(answer);
    } catch (error) {
      this.#fail(error);
    }
  }

  #unsent({ id }: Grant, error: unknown): void {
    const { runner } = this.#open;
    if (runner.isDropped) return;
    runner.host.ledger.apply(runner.taskId, { type: "refund", id });
    throw error;
  }

  /** Only of the answer itself: what is asked on the way to it is not for whoever waits for it. */
  get #partial(): string {
    return this.#outgoing.role === "main" ? (this.#shown?.text ?? "") : "";
  }

  #failed(model: Model, grant: Grant, error: unknown): void {
    const open = this.#open;
    if (open.runner.isDropped || this.#isLeft) return;
    try {
      const failed = fail(open, grant, error, this.#parts, this.#partial);
      if (failed.charged) this.#attempts.turns = 0;
      if (this.#line.passOn(failed)) {
        tellFallback(open, model, this.#line.model, failed.error);
        this.#ask();
      } else {
        const waited = delay(open, retryDelay(open, this.#tries++, this.#line.startOver()));
        this.#follow(waited.then(() => this.#ask()));
      }
    } catch (fault) {
      this.#fail(fault);
    }
  }
}

function nobody(): void {}

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
  open: ActiveStep,
  grant: Grant,
  cause: unknown,
  parts: number,
  partial: string,
): FailedAttempt & { readonly charged: boolean } {
  const { runner, cancelScope } = open;
  const error = classifyError(cause, { now: runner.worker.clock.now() });
  // Refused before any body, or never sent: nothing was billed. Anything else may have been.
  const unsent = Fault.is(cause) && !(cause instanceof CancellationError);
  const free = error.refused || unsent || unreached.has(error.providerCode ?? "");
  const charged = parts > 0 || !free;
  if (charged) runner.host.ledger.lose(runner.taskId, grant.id);
  else runner.host.ledger.apply(runner.taskId, { type: "refund", id: grant.id });
  open.end();
  const stop = cancelScope.token.error;
  if (stop !== undefined) throw partial === "" ? stop : brokenOff(stop, partial);
  // A fault that names no kind of failure is about the request or the set-up.
  if (Fault.is(cause) && !cause.code.startsWith("model_")) throw cause;
  return { error, cause, charged, shown: parts > 0 };
}

function brokenOff({ reason, status, cause }: CancellationError, partial: string): CancellationError {
  return new CancellationError(reason, { status, partial, ...(cause !== undefined && { cause }) });
}

function tellFallback(
  { runner }: ActiveStep,
  from: Model,
  to: Model,
  { kind, message }: ClassifiedError,
): void {
  runner.emit({ type: "model_fallback", data: { from: nameOf(from), to: nameOf(to), kind, message } });
}

function nameOf({ provider, modelId }: Model): { readonly provider: string; readonly modelId: string } {
  return { provider, modelId };
}

/** How long to wait before the next attempt; throws when there is to be none. Tells of both. */
function retryDelay(open: ActiveStep, tries: number, { error, cause }: FailedAttempt): number {
  const { kind, retryable, message, retryAfterMs } = error;
  const { runner } = open;
  const { retry, random } = runner.worker;
  const fault = new Fault(`model_${kind}`, message, { cause });
  const ended = { type: "retry_end", data: { attempt: tries - 1, success: false } } as const;
  if (!retry.enabled || !retryable || fault.retry !== "backoff" || tries > retry.maxRetries) {
    if (tries > 1) open.emit(ended);
    throw fault;
  }
  if (tries > 1) runner.emit(ended);
  const delayMs = retryDelayMs(tries, retry, random, retryAfterMs);
  const start = { attempt: tries, maxAttempts: retry.maxRetries, delayMs, kind, message };
  runner.emit({ type: "retry_start", data: start });
  return delayMs;
}

/** B1, B3: what the answer cost, taken from its reservation. */
export function settleReservation({ runner }: ActiveStep, { response, grant }: Answer): Usage {
  const { taskId, host } = runner;
  const reported = response.usage;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = reported;
  const priced = priceUsage(grant.priceOf(inputTokens), reported);
  // As the ledger counts it: what a call is said to have cost adds up to what was spent.
  const costUsd = priced === null ? null : fromNanoUsd(toNanoUsd(priced));
  const usage = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens, costUsd };
  const tokens = usage.inputTokens + usage.outputTokens;
  host.ledger.apply(taskId, { type: "settle", id: grant.id, tokens, costUsd });
  if (runner.state.headcount.tasks[taskId]?.shielded === true)
    runner.log.applySeat({ type: "progress", taskId });
  return usage;
}

/** What the caller gets, and the journal keeps (J7). */
export function conclude(
  open: ActiveStep,
  { model, grant, durationMs = 0 }: Pick<Answer, "model"> & Partial<Answer>,
  { message, stopReason, modelId }: ModelResponse,
  usage: Usage,
): LlmReply {
  const { name } = open.runner.nameOf(model);
  const named =
    modelId === undefined || modelId === model.modelId ? name : { provider: model.provider, modelId };
  flattenText(message);
  open.emit({ type: "message_end", data: { message, stopReason, usage, model: named, durationMs } });
  const cut = truncatedByBudget(open, grant, stopReason, messageText(message));
  if (cut !== undefined) throw cut;
  return { message, stopReason, usage, model: named };
}

/** B1: output cut short by a clamp is an exhausted budget, never success. `partial`: what may be shown of it. */
export function truncatedByBudget(
  open: ActiveStep,
  grant: Grant | undefined,
  stopReason: ModelResponse["stopReason"],
  partial = "",
): BudgetExhaustedError | undefined {
  const cutBy = grant?.cutBy ?? null;
  if (cutBy === null || stopReason !== "length") return undefined;
  const { dimension, limit: most, used, taskId: of } = cutBy;
  open.emit({ type: "budget_exhausted", data: cutBy });
  const reason = "the answer was cut at what was left of the budget";
  const details = { taskId: of, reason, [partialOutput]: partial };
  return new BudgetExhaustedError({ dimension, limit: most, used, details });
}

/** B1: the bound holds only if the call says its limit. */
function limit(request: ModelRequest, { outputLimit }: Grant): ModelRequest {
  return outputLimit === null ? request : { ...request, maxOutputTokens: outputLimit };
}

/** Between two attempts. Not journaled. */
async function delay({ runner, cancelScope }: ActiveStep, delayMs: number): Promise<void> {
  const { clock } = runner.worker;
  const over = Promise.withResolvers<void>();
  const cancel = clock.schedule(clock.now() + delayMs, over.resolve);
  try {
    await runner.pauseFor(cancelScope, over.promise);
  } finally {
    cancel();
  }
}
