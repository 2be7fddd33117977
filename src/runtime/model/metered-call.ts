import {
  describeValue,
  Fault,
  fromNanoUsd,
  meteredTable,
  type EventData,
  type JsonValue,
  type MeteredCall,
  type MeteredRequest,
  type MeteredResult,
  type ReportedUsage,
} from "../../kernel/index.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { CallBody } from "../task/in-flight-calls.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import { invalidUsage, narrowReservation, reportLateUsage, usageProblem } from "./reported-usage.ts";
import { reserveCall, whenDurable, type Grant } from "./reservation.ts";
import { settleResponse } from "./settle-reply.ts";

/** Runs `ctx.metered`: reserves, calls the body, and settles in the commit that records the value (B1, B3). */
export function runMetered<Value extends JsonValue>(
  steps: StepExecutor,
  request: MeteredRequest,
  body: (call: MeteredCall) => Promise<MeteredResult<Value>>,
): Promise<Value> {
  let step;
  try {
    const { provider, model } = readRequest(request);
    if (typeof body !== "function")
      throw new Fault(
        "invalid_argument",
        `invalid body of ctx.metered(): expected a function, not ${describeValue(body)}; use async ({ outputLimit }) => ({ value, usage })`,
      );
    step = steps.identify("step", `metered ${provider}/${model}`, null);
  } catch (error) {
    return Promise.reject(Fault.from(error));
  }
  return steps.run<Value>(step, (open) => new MeteredAttempt(open, request, body).run());
}

function readRequest(request: MeteredRequest): MeteredRequest {
  const read = meteredTable.read("ctx.metered()", request);
  for (const name of ["provider", "model", "inputTokens", "maxOutputTokens"] as const)
    if (read[name] === undefined)
      throw new Fault(
        "invalid_argument",
        `invalid request of ctx.metered(): ${name} is missing; use { provider, model, inputTokens, maxOutputTokens }`,
      );
  return read;
}

type SentCall = Pick<EventData["metered_call"], "model" | "limit" | "reserved">;

/** One metered call in flight. */
class MeteredAttempt<Value extends JsonValue> implements CallBody {
  readonly #step: ActiveStep;
  readonly #request: MeteredRequest;
  readonly #body: (call: MeteredCall) => Promise<MeteredResult<Value>>;
  readonly #model: { readonly provider: string; readonly modelId: string };
  #fail: ((fault: Fault) => void) | undefined;

  constructor(
    step: ActiveStep,
    request: MeteredRequest,
    body: (call: MeteredCall) => Promise<MeteredResult<Value>>,
  ) {
    this.#step = step;
    this.#request = request;
    this.#body = body;
    this.#model = { provider: request.provider, modelId: request.model };
  }

  /**
   * Makes the call. Resolves to a function that settles the call and returns its value, and that runs in the commit
   * of the step.
   */
  async run(): Promise<() => Value> {
    const step = this.#step;
    const { runner } = step;
    const reserving = this.#reserve();
    // The call starts in the section in which the reservation is granted: the task could lose its seat during an `await`.
    const grant = reserving instanceof Promise ? await reserving : reserving;
    step.start().body = this;
    const flushed = runner.log.flush();
    if (flushed !== undefined) await whenDurable(step, grant, flushed);
    if (runner.isDropped) return pendingForever();
    const sentAt = runner.worker.clock.now();
    const sent = this.#sent(grant);
    const { value, usage } = await this.#perform(grant, sent, sentAt);
    if (runner.isDropped) return pendingForever();
    return () => {
      const durationMs = step.durationSince(sentAt);
      if (usage !== null) {
        const settled = settleResponse(step, grant, { usage }, durationMs);
        step.emit({ type: "metered_call", data: { ...sent, usage: settled, durationMs, status: "ok" } });
        return value;
      }
      runner.host.ledger.apply(runner.taskId, { type: "refund", id: grant.id, failed: true });
      step.emit({ type: "metered_call", data: { ...sent, usage: null, durationMs, status: "refused" } });
      return value;
    };
  }

  /** Returns what the log says about the call, apart from its end. */
  #sent({ id, outputTokens }: Grant): SentCall {
    const { maxOutputTokens, statedOutputTokens: asked = maxOutputTokens } = this.#request;
    const reserved = this.#heldFor(id);
    return {
      model: this.#model,
      limit: { asked, sent: outputTokens },
      ...(reserved !== undefined && { reserved }),
    };
  }

  /**
   * Returns the amount that the ledger has reserved for the call, and charges if the call ends without reported
   * usage.
   */
  #heldFor(id: string): SentCall["reserved"] {
    const open = this.#step.runner.state.ledger.open.find((each) => each.id === id);
    if (open === undefined) return undefined;
    const { held, narrowed = held, priced } = open;
    return { tokens: narrowed.tokens, costUsd: priced ? fromNanoUsd(narrowed.nanoUsd) : null };
  }

  #reserve(): Grant | Promise<Grant> {
    const { inputTokens, maxOutputTokens: outputTokens, minOutputTokens } = this.#request;
    const { countTokens, topUpWaitMs, onTopUpWait, needsPrice, seatWaitMs } = this.#request;
    const step = this.#step;
    return reserveCall({
      step,
      model: this.#model,
      inputTokens,
      outputTokens,
      ...(minOutputTokens !== undefined && { minOutputTokens }),
      isLimited: true,
      attempt: 1,
      turns: 1,
      topUpWaitMs,
      onTopUpWait,
      needsPrice,
      seatWaitMs,
      count: countTokens && (() => this.#count(countTokens)),
    });
  }

  /** B1: counts the input tokens. If the count fails, an event reports the error, and the upper bound applies. */
  async #count(countTokens: NonNullable<MeteredRequest["countTokens"]>): Promise<number | undefined> {
    const { runner, cancelScope } = this.#step;
    try {
      const { signal } = cancelScope;
      const tokens: unknown = await runner.activity.whileAlive(countTokens({ signal }), cancelScope);
      if (typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens >= 0) return tokens;
      throw new Fault(
        "invalid_argument",
        `countTokens of ctx.metered() returned ${describeValue(tokens)}: expected an integer from 0`,
      );
    } catch (error) {
      cancelScope.check();
      const failure = Fault.from(error).toJSON();
      this.#step.emit({ type: "hook_error", data: { hook: "countTokens", failure } });
      return undefined;
    }
  }

  /**
   * Calls the body. B3: a call that ends without usage is charged in the same synchronous section in which it ends.
   * If its result arrives later, the result corrects the charge.
   */
  #perform(grant: Grant, sent: SentCall, sentAt: number): Promise<MeteredResult<Value>> {
    const step = this.#step;
    const { cancelScope, runner } = step;
    let isOver = false;
    return new Promise((resolve, reject) => {
      const lose = (error: unknown): void => {
        if (isOver) return;
        isOver = true;
        if (runner.isDropped) return;
        const cancellation = cancelScope.token.error;
        const charged = this.#heldFor(grant.id);
        runner.host.ledger.lose(runner.taskId, grant.id, cancellation === undefined);
        const durationMs = step.durationSince(sentAt);
        const data = {
          ...sent,
          usage: null,
          durationMs,
          status: "error",
          ...(charged && { charged }),
        } as const;
        step.emit({ type: "metered_call", data });
        step.end();
        reject(cancellation ?? error);
      };
      this.#fail = lose;
      const arrive = (result: MeteredResult<Value>): void => {
        const problem = resultProblem(result);
        if (problem !== undefined) return lose(invalidUsage(this.#model, problem));
        if (!isOver) {
          isOver = true;
          resolve(result);
        } else if (result.usage !== null) void reportLateUsage(step, grant, { usage: result.usage });
      };
      const call: MeteredCall = {
        outputLimit: grant.outputTokens,
        isClamped: grant.outputTokens < this.#request.maxOutputTokens,
        signal: cancelScope.signal,
        report: (usage: ReportedUsage) => {
          if (!isOver && !runner.isDropped) narrowReservation(step, this.#model, grant, usage);
        },
      };
      try {
        this.#body(call).then(arrive, lose);
      } catch (error) {
        lose(error);
      }
    });
  }

  /** B3: charges the call in flight in full. */
  abandon(fault: Fault): void {
    this.#fail?.(fault);
  }
}

/**
 * Returns what is wrong with the result of a body. It is checked at run time, because the body may be code without
 * types.
 */
function resultProblem(result: unknown): string | undefined {
  if (typeof result !== "object" || result === null || !("usage" in result))
    return `result ${describeValue(result)} of ctx.metered(): expected { value, usage }`;
  return result.usage === null ? undefined : usageProblem(result.usage);
}
