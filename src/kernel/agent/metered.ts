import type { CancelSignal } from "../base/cancel-signal.ts";
import type { JsonValue } from "../base/json-value.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { ReportedUsage } from "../messages/model.ts";
import type { ProgramOptions } from "./foreign-program.ts";

/** A paid call that is not a request of `ctx.llm`, with what the ledger must know before the call is made. */
export interface MeteredRequest {
  /** The provider, by its name in the price list. */
  readonly provider: string;
  /** The model, by its name in the price list. */
  readonly model: string;
  /** Upper bound of the input tokens. The number of bytes of the request is such a bound. */
  readonly inputTokens: number;
  /** Output limit that the caller asks for. The ledger may grant less. */
  readonly maxOutputTokens: number;
  /**
   * The lowest output limit with which the call is useful. If the budget does not cover it, the call is refused.
   * Default: 1.
   */
  readonly minOutputTokens?: number;
  /**
   * Output limit that the program behind the call stated, for the log. `null` if it stated none. Default:
   * `maxOutputTokens`.
   */
  readonly statedOutputTokens?: number | null;
  /**
   * B4: whether a call of a model without a known price is refused. If `true`, it is refused unless the task has a
   * cap on tokens and none on cost. If `false`, it is refused only under a cap on cost. Default: `false`.
   */
  readonly needsPrice?: boolean;
  /** Counts the input tokens exactly. Called only if the upper bound does not fit into the budget. */
  readonly countTokens?: (options: { readonly signal: CancelSignal }) => Promise<number>;
  /**
   * B5: how long the call waits for a top-up if a person is asked for one (`OnBudget`), in milliseconds. When this
   * time has passed, the call fails with `budget_exhausted`, and the question stays open. If no person can be
   * reached (`Runtime.attend`), the call does not wait. If absent, it waits until the person answers.
   */
  readonly topUpWaitMs?: number;
  /**
   * Called when the call would begin to wait for a top-up, as `topUpWaitMs` allows. If it returns `false`, the call
   * does not wait.
   */
  readonly onTopUpWait?: () => boolean;
  /**
   * H2: how long a call of `ctx.attempt` waits while its task has no seat, in milliseconds. When this time has
   * passed, the call fails with `seat_lost`. If absent, the call waits until the task gets a seat again.
   */
  readonly seatWaitMs?: number;
}

export const meteredTable = optionTable({
  provider: is.text(),
  model: is.text(),
  inputTokens: is.integer({ from: 0 }),
  maxOutputTokens: is.integer({ from: 1 }),
  minOutputTokens: is.integer({ from: 1 }),
  statedOutputTokens: is.integer({ from: 0, or: [null, "none"] }),
  needsPrice: is.boolean(),
  countTokens: is.callback(),
  topUpWaitMs: is.integer({ from: 0 }),
  onTopUpWait: is.callback(),
  seatWaitMs: is.integer({ from: 0 }),
} satisfies OptionKinds<MeteredRequest>);

/** A metered call whose cost is reserved. */
export interface MeteredCall {
  /** Number of output tokens that are reserved. The request must state this number as its output limit. */
  readonly outputLimit: number;
  /** Whether the output limit is lower than requested, because the budget does not cover more. */
  readonly isClamped: boolean;
  /** Aborted when the call is cancelled. */
  readonly signal: CancelSignal;
  /**
   * Reports the input tokens that the provider has counted, while the call is in flight. B3: if the process dies
   * before the answer, these tokens and the output limit are charged instead of the upper bound.
   */
  report(usage: ReportedUsage): void;
}

/** The end of a metered call. */
export interface MeteredResult<Value extends JsonValue> {
  /** The value that is recorded. */
  readonly value: Value;
  /** What the provider billed. `null` if it billed nothing, for example because it refused the request. */
  readonly usage: ReportedUsage | null;
}

/** Options of `ctx.attempt`. */
export interface AttemptOptions {
  /** Value that identifies the step of the attempt, in addition to its name (J4). Default: `null`. */
  readonly input?: JsonValue;
  /**
   * Whether the attempt holds a slot of the worker while none of its calls is open. Pass `false` for code that only
   * waits for the requests of a program. Default: `true`.
   */
  readonly holdsSlot?: boolean;
  /**
   * Describes the program that the body runs. Set it if the program works by itself, and only its paid calls and
   * its questions pass through the attempt.
   *
   * H2: the task can lose its seat while the program works, whenever none of the attempt's calls is in flight. If
   * the body then fails with `seat_lost`, the next attempt starts when the task has a seat again. While questions
   * of the program are open, the run counts as waiting. If absent, the whole attempt counts as one call in flight,
   * which ends with the attempt.
   */
  readonly program?: ProgramOptions;
}

/** The part of `RunContext` that charges the run for paid calls which other code or another program makes. */
export interface MeteredContext {
  /**
   * Performs a paid call that is not a request of `llm`, for example one that another program sends through this
   * process. The runtime reserves the upper bound of the cost before it calls `body` (B1), and charges the usage
   * that `body` returns (B3). If the body throws, the runtime charges the whole reservation, because the usage is
   * unknown. Each call counts as one turn.
   *
   * @example
   * ```ts
   * import type { RunContext } from "reeve";
   *
   * declare function translate(text: string, options: { maxTokens: number }): Promise<{ text: string; tokens: number }>;
   *
   * async function translated(ctx: RunContext, text: string): Promise<string> {
   *   const request = { provider: "example", model: "translate-1", inputTokens: text.length, maxOutputTokens: 2_000 };
   *   return ctx.metered(request, async ({ outputLimit }) => {
   *     const reply = await translate(text, { maxTokens: outputLimit });
   *     return { value: reply.text, usage: { inputTokens: text.length, outputTokens: reply.tokens } };
   *   });
   * }
   * ```
   */
  metered<Value extends JsonValue>(
    request: MeteredRequest,
    body: (call: MeteredCall) => Promise<MeteredResult<Value>>,
  ): Promise<Value>;
}

export const attemptTable = optionTable({
  input: is.any,
  holdsSlot: is.boolean(),
  program: is.any,
} satisfies OptionKinds<AttemptOptions>);
