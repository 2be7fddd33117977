import {
  type DeltaFilter,
  type Exhaustion,
  FailedAnswerError,
  Fault,
  type LlmReply,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type StopReason,
  addUsage,
  boundProviderTools,
  classifyError,
  describeValue,
  noUsage,
} from "../../kernel/index.ts";
import { faultUsage } from "../journal/task-end.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { ActiveStep } from "../task/active-step.ts";
import { askOrStop, mayAsk } from "../task/budget-stop.ts";
import type { CallBody } from "../task/in-flight-calls.ts";
import { AttemptTimer } from "./attempt-timer.ts";
import { CandidateModels, type FailedAttempt } from "./candidate-models.ts";
import { usualOutputTokens } from "./call-cost.ts";
import { openDeltaSink, type DeltaSink } from "./delta-stream.ts";
import {
  invalidUsage,
  narrowReservation,
  reportLateUsage,
  usageProblem,
  usesProblem,
} from "./reported-usage.ts";
import { type Grant, reserveCall, whenDurable } from "./reservation.ts";
import {
  emitFallback,
  modelFault,
  nextRetryDelayMs,
  settleFailedAttempt,
  waitForRetry,
  withLastError,
} from "./retry.ts";
import { PendingReply, settleResponse } from "./settle-reply.ts";
import { canCount, countInput } from "./token-count.ts";

/**
 * Checks the usage of a response. B3: if it is invalid, charges the response in full as unreported, and throws.
 * There is no further attempt, because the error is in the code of the model.
 */
function requireUsage(step: ActiveStep, model: Model, grant: Grant, response: ModelResponse): void {
  const problem = usageProblem(response.usage) ?? usesProblem(response.providerToolUses);
  if (problem === undefined) return;
  const { taskId, host } = step.runner;
  host.ledger.lose(taskId, grant.id, true);
  step.end();
  throw invalidUsage(model, problem);
}

const stopReasons: Readonly<Record<StopReason, true>> = {
  stop: true,
  length: true,
  tool_calls: true,
  content_blocked: true,
  pause: true,
  malformed_call: true,
  other: true,
};

/**
 * Checks the stop reason of a response. If it is unknown, charges the response and throws, for example for a model
 * that returns `error` instead of throwing. There is no further attempt, because the error is in the code of the
 * model.
 */
function requireStopReason(
  step: ActiveStep,
  { provider, modelId }: Model,
  grant: Grant,
  response: ModelResponse,
  durationMs: number,
): void {
  const { stopReason } = response;
  if (Object.hasOwn(stopReasons, stopReason)) return;
  const usage = settleResponse(step, grant, response, durationMs);
  step.end();
  throw new Fault(
    "invalid_argument",
    `${provider}/${modelId} returned an invalid stopReason ${describeValue(stopReason)}: expected one of ${Object.keys(stopReasons).join(", ")}; throw an error if the call failed`,
    { details: { provider, modelId, [faultUsage]: { ...usage } } },
  );
}

/** Result of a model call that went through middleware. */
export interface ModelCallResult {
  /** Settles the reservation and returns the reply. Called synchronously before the step is recorded. */
  readonly settle: () => LlmReply;
  /**
   * The model whose reported input tokens are the size of the recorded transcript. `undefined` if middleware
   * changed the request or called the model more than once.
   */
  readonly countedBy: Model | undefined;
}

/** A request to a model, before the model is chosen among its candidates. */
export interface OutgoingRequest {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly role: string;
  /** Number of ephemeral messages at the end of the request. */
  readonly ephemeralMessages: number;
  /** B1: returns an upper bound of the input tokens as `model` may count them. */
  inputTokens(model: Model): number;
  readonly filters: readonly DeltaFilter[];
  /** Called with a reply before the caller of the model receives it. */
  onReply?(reply: PendingReply): void;
}

/** Counts the attempts of one step over all its requests and models. */
export class AttemptCount {
  attempts = 0;
  /**
   * B1: turns that the next attempt reserves. B3: an unreported attempt is not charged its turn, so that a step
   * counts as one turn.
   */
  turns = 1;
}

/** How an attempt ended: with a response, or with a failure after which another attempt may follow. */
type AttemptEnd = { readonly response: ModelResponse } | { readonly failed: FailedAttempt };

/**
 * Sends one request until a model answers it. J5: all attempts are part of one step.
 *
 * - Each attempt reserves its own upper bound (B1), and is charged in full if it ends without reported usage (B3).
 * - After a failure, the next candidate model is called at once. When every candidate has failed, the first one is
 *   called again after a delay.
 * - The reply is not settled yet: `PendingReply.settle` settles it in the commit of the step.
 * - If the task is dropped, the promise never settles.
 */
export class ModelAttempts implements CallBody {
  readonly #step: ActiveStep;
  readonly #outgoing: OutgoingRequest;
  readonly #count: AttemptCount;
  readonly #candidates: CandidateModels;
  /** Number of the round through the candidates, from 1. */
  #round = 1;
  /** Time at which the current attempt was sent. Epoch milliseconds. */
  #sentAt = 0;
  /** Number of stream parts that the current attempt has received. */
  #receivedParts = 0;
  /** Ends the attempt in flight with a fault. */
  #failAttempt: ((fault: Fault) => void) | undefined;
  /** The failure of the round before. */
  #lastError: Fault | undefined;
  #hasMalformedCall = false;
  /** The cap because of which the budget cut the last reply, if a person is asked to raise the cap. */
  #cutBy: Exhaustion | null = null;
  /** Usage of replies that were not usable. */
  #earlierUsage = noUsage;
  #deltas: DeltaSink | undefined;

  constructor(step: ActiveStep, outgoing: OutgoingRequest, count: AttemptCount) {
    this.#step = step;
    this.#outgoing = outgoing;
    this.#count = count;
    this.#candidates = new CandidateModels(outgoing.model, outgoing.request, outgoing.role);
  }

  /** Resolves to the reply of the first attempt that succeeds. Call it once. */
  async run(): Promise<PendingReply> {
    const { runner } = this.#step;
    try {
      for (;;) {
        const { model } = this.#candidates;
        const reserving = this.#reserve(model);
        // The call starts in the section in which the reservation is granted: the task could lose its seat during an `await`.
        const grant = reserving instanceof Promise ? await reserving : reserving;
        this.#step.start().body = this;
        const flushed = runner.log.flush();
        if (flushed !== undefined) await whenDurable(this.#step, grant, flushed);
        const isFirst = this.#count.attempts === 1 && flushed === undefined;
        this.#sentAt = isFirst ? this.#step.startedAt : runner.worker.clock.now();
        if (runner.isDropped) return await pendingForever();
        const end = await this.#send(model, grant);
        if (runner.isDropped) return await pendingForever();
        if ("response" in end) {
          const reply = this.#replyOf(model, grant, end.response);
          if (reply !== undefined) return reply;
          const cutBy = this.#cutBy;
          this.#cutBy = null;
          if (cutBy !== null) await askOrStop(this.#step, cutBy);
        } else {
          const delayMs = this.#retryDelayMs(end.failed);
          if (delayMs !== undefined) await waitForRetry(this.#step, delayMs);
        }
      }
    } catch (error) {
      throw withLastError(error, this.#lastError);
    }
  }

  #reserve(model: Model): Grant | Promise<Grant> {
    const { request } = this.#outgoing;
    const attempt = ++this.#count.attempts;
    const { turns } = this.#count;
    const { maxOutputTokens } = request;
    const outputTokens = maxOutputTokens ?? usualOutputTokens(model);
    const providerTools = boundProviderTools(request.tools, model);
    const withResults = (tokens: number): number =>
      providerTools === undefined ? tokens : providerTools.inputTokens(tokens, outputTokens);
    const count = async (): Promise<number | undefined> => {
      const tokens = canCount(model) ? await countInput(this.#step, model, request) : undefined;
      return tokens === undefined ? undefined : withResults(tokens);
    };
    return reserveCall({
      step: this.#step,
      model,
      inputTokens: withResults(this.#outgoing.inputTokens(model)),
      outputTokens,
      isLimited: maxOutputTokens !== undefined,
      count: canCount(model) ? count : undefined,
      providerTools,
      attempt,
      turns,
    });
  }

  /**
   * Sends the request. Resolves to the first end of the attempt; an attempt that timed out may still answer or fail
   * later. Rejects if no attempt may follow. B3: a failed attempt is settled in the same synchronous section in
   * which it ends, before other code runs. Never settles if the task is dropped.
   */
  #send(model: Model, grant: Grant): Promise<AttemptEnd> {
    const step = this.#step;
    const { streaming } = step.runner.task.record;
    this.#receivedParts = 0;
    return new Promise((resolve, reject) => {
      const isFirstEnd = (): boolean => {
        if (timer.isOver) return false;
        timer.end();
        return !step.runner.isDropped;
      };
      const answer = (response: ModelResponse): void => {
        if (isFirstEnd()) resolve({ response });
        else if (usageProblem(response.usage) === undefined) void reportLateUsage(step, grant, response);
      };
      const fail = (error: unknown): void => {
        if (isFirstEnd()) {
          const received = { count: this.#receivedParts, text: this.#partialText };
          try {
            resolve({ failed: settleFailedAttempt(step, model, grant, error, received) });
          } catch (fault) {
            reject(fault);
          }
        }
        if (error instanceof FailedAnswerError && usageProblem(error.usage) === undefined)
          void reportLateUsage(step, grant, error);
      };
      const timer = new AttemptTimer(step, model, this.#sentAt, streaming, fail);
      this.#failAttempt = fail;
      const request = withOutputLimit(this.#outgoing.request, grant);
      try {
        Promise.resolve(this.#call(model, grant, request, timer)).then(answer, fail);
      } catch (error) {
        fail(error);
      }
    });
  }

  /**
   * B3: charges the current attempt in full. If its response arrives later, the reported usage corrects the charge.
   */
  abandon(fault: Fault): void {
    this.#failAttempt?.(fault);
  }

  #call(
    model: Model,
    grant: Grant,
    request: ModelRequest,
    timer: AttemptTimer,
  ): ModelResponse | Promise<ModelResponse> {
    const { runner } = this.#step;
    const { ephemeralMessages } = this.#outgoing;
    if (runner.task.record.streaming) return this.#stream(model, grant, request, timer);
    return model.generate(request, timer.callOptions(runner, ephemeralMessages));
  }

  async #stream(
    model: Model,
    grant: Grant,
    request: ModelRequest,
    timer: AttemptTimer,
  ): Promise<ModelResponse> {
    const { runner } = this.#step;
    const { ephemeralMessages } = this.#outgoing;
    let units = 0;
    let reportedInput: number | undefined;
    const deltas = openDeltaSink(this.#step, this.#count.attempts, this.#outgoing.filters);
    this.#deltas = deltas;
    deltas.begin();
    for await (const part of model.stream(request, timer.callOptions(runner, ephemeralMessages))) {
      if (part.type === "finish") {
        const { type: _type, ...response } = part;
        if (timer.isOver) return response;
        timer.noteChunk();
        this.#receivedParts++;
        deltas.flush();
        return response;
      }
      if (timer.isOver) throw new Error("the attempt ended while its stream was read");
      timer.noteChunk();
      this.#receivedParts++;
      if (part.type === "usage") {
        // The input grows with the results of the provider's tools, so that the count at the start is no bound.
        if (grant.providerTools !== undefined) continue;
        // Some providers repeat the count with every chunk.
        if (part.usage.inputTokens !== reportedInput) narrowReservation(this.#step, model, grant, part.usage);
        reportedInput = part.usage.inputTokens;
        continue;
      }
      units += part.text.length;
      runner.worker.sizes.assertLength(units, "the reply of the model");
      deltas.push(part);
    }
    throw new Error("the stream ended without a finish: the connection was cut");
  }

  /** Returns the reply for the caller, or `undefined` if another attempt follows. */
  #replyOf(model: Model, grant: Grant, response: ModelResponse): PendingReply | undefined {
    const step = this.#step;
    requireUsage(step, model, grant, response);
    const tookMs = step.runner.worker.clock.now() - this.#sentAt;
    requireStopReason(step, model, grant, response, tookMs);
    this.#count.turns = 0;
    if ((grant.cutBy !== null && this.#isCut(grant, response)) || this.#isRepeated(model, response)) {
      this.#earlierUsage = addUsage(this.#earlierUsage, settleResponse(step, grant, response, tookMs));
      step.end();
      return undefined;
    }
    if (this.#round > 1) step.emit({ type: "retry_end", data: { attempt: this.#round - 1, success: true } });
    const durationMs = step.durationSince(this.#sentAt);
    const { role } = this.#outgoing;
    const reply = new PendingReply(step, model, grant, response, role, durationMs, this.#earlierUsage);
    this.#outgoing.onReply?.(reply);
    return reply;
  }

  /** B5: whether the budget cut the reply, so that the request is sent again after a top-up. The reply is charged. */
  #isCut({ cutBy }: Grant, { stopReason }: ModelResponse): boolean {
    if (cutBy === null || stopReason !== "length" || !mayAsk(this.#step.runner, cutBy)) return false;
    this.#cutBy = cutBy;
    return true;
  }

  /**
   * Whether another attempt follows a reply that cannot be used. After a malformed tool call, one more attempt
   * follows. After a withheld answer, the next candidate is tried if its choice falls back on `content_blocked`.
   */
  #isRepeated(model: Model, { stopReason }: ModelResponse): boolean {
    if (stopReason === "malformed_call") {
      const isFirst = !this.#hasMalformedCall;
      this.#hasMalformedCall = true;
      return isFirst;
    }
    if (stopReason !== "content_blocked") return false;
    const cause = new Error("the provider withheld the answer (content_filter)");
    const error = classifyError(cause, { now: this.#step.runner.worker.clock.now() });
    // The last part of a stream is its `finish`, which readers do not receive.
    if (!this.#candidates.fallBack({ model, error, cause, isShown: this.#receivedParts > 1 })) return false;
    emitFallback(this.#step, model, this.#candidates.model, error);
    return true;
  }

  /**
   * The text received so far. It belongs to the caller's answer only in the role `main`; other roles are for
   * internal calls.
   */
  get #partialText(): string {
    return this.#outgoing.role === "main" ? (this.#deltas?.text ?? "") : "";
  }

  /**
   * Returns the milliseconds to wait before the next attempt, or `undefined` if the next candidate is called at once.
   * Throws if no attempt follows.
   */
  #retryDelayMs(failed: FailedAttempt): number | undefined {
    const step = this.#step;
    if (this.#candidates.fallBack(failed)) {
      emitFallback(step, failed.model, this.#candidates.model, failed.error);
      return undefined;
    }
    const round = this.#candidates.startRound();
    this.#lastError = modelFault(round);
    return nextRetryDelayMs(step, this.#round++, round, this.#lastError);
  }
}

/**
 * Returns the request with the output limit. B1: the upper bound of the call is valid only if the request states
 * this limit.
 */
function withOutputLimit(request: ModelRequest, { outputLimit }: Grant): ModelRequest {
  return outputLimit === null ? request : { ...request, maxOutputTokens: outputLimit };
}
