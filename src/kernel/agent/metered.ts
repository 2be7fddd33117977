import type { CancelSignal } from "../base/cancel-signal.ts";
import type { JsonValue } from "../base/json-value.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { ReportedUsage } from "../messages/model.ts";
import type { ProgramOptions } from "./foreign-program.ts";

/** A paid call that is not a request of `ctx.llm`: what the ledger must know before it leaves. */
export interface MeteredRequest {
  /** The provider, by its name in the price list. */
  readonly provider: string;
  /** The model, by its name in the price list. */
  readonly model: string;
  /** Upper bound of the input tokens. The number of bytes of the request is one. */
  readonly inputTokens: number;
  /** Output limit that the caller asks for. The ledger may grant less. */
  readonly maxOutputTokens: number;
  /** The lowest output limit with which the call is of use. If it does not fit, the call is refused. Default: 1. */
  readonly minOutputTokens?: number;
  /** Output limit that the program behind the call stated, for the log. `null`: none. Default: `maxOutputTokens`. */
  readonly statedOutputTokens?: number | null;
  /**
   * B4: whether the call is refused if the model has no known price, unless a cap on tokens and none on cost applies to the task.
   * Default: `false`, so that such a call is refused only under a cap on cost.
   */
  readonly needsPrice?: boolean;
  /** Counts the input tokens exactly. It is called only if the upper bound does not fit into the budget. */
  readonly countTokens?: (options: { readonly signal: CancelSignal }) => Promise<number>;
  /**
   * B5: how long the call waits for a top-up if a person is asked for one (`OnBudget`), in milliseconds. Then it fails with
   * `budget_exhausted`, and the question stays open. It does not wait if no person can be reached (`Runtime.attend`). If
   * absent, the call waits until the person answers.
   */
  readonly topUpWaitMs?: number;
  /** Called when the call would begin to wait `topUpWaitMs` for a top-up. `false`: it does not wait. */
  readonly onTopUpWait?: () => boolean;
  /**
   * H2: how long a call of `ctx.attempt` waits while its task has no seat, in milliseconds. Then it fails with `seat_lost`. If
   * absent, the call waits until the task is recalled.
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
  /** Output tokens that are reserved. The request must state this limit. */
  readonly outputLimit: number;
  /** Whether the limit is lower than the one that was asked for, because of a cap. */
  readonly isClamped: boolean;
  /** Aborted when the call is cancelled. */
  readonly signal: CancelSignal;
  /**
   * Reports the input that the provider has counted while the call is in flight. B3: if the call is lost, this input and
   * the output limit are charged in place of the upper bound.
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
  /** Value that identifies the attempt's step in addition to its name (J4). Default: `null`. */
  readonly input?: JsonValue;
  /**
   * Whether the attempt holds a slot of the worker while none of its calls is open. `false` is for code that only
   * waits for the requests of a program. Default: `true`.
   */
  readonly holdsSlot?: boolean;
  /**
   * The program that the body runs, if it thinks and acts by itself and only its paid calls and its questions pass through
   * the attempt. H2: its task has settled whenever none of the attempt's calls is in flight, so that it can lose its seat while
   * the program works on. If the body then fails with `seat_lost`, the next attempt starts after the recall. While
   * questions of the program are open, the run counts as waiting. Default: the attempt is one call, which settles at its end.
   */
  readonly program?: ProgramOptions;
}

/** The part of `RunContext` that pays for calls outside the runtime. */
export interface MeteredContext {
  /**
   * Performs a paid call that is not a request of `llm`, for example one that another program sends through this process.
   * The upper bound of the cost is reserved before `body` is called (B1), and settled with the usage that `body` returns
   * (B3). A body that throws has lost its call: what it reserved is charged. Each call counts as one turn.
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
