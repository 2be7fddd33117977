import type { CancelSignal } from "../base/cancel-signal.ts";
import { describeValue } from "../base/describe-value.ts";
import { Fault, type Failure } from "../base/fault.ts";
import type { RunId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import { readProperty } from "../base/read-property.ts";
import type { JsonSchema } from "../base/schema.ts";

/** A signal with a typed value. `signal()` of `reeve/workflow` creates one. `Given` is what a sender passes. */
export interface Signal<Given = JsonValue, Value = Given> {
  /** Name of the signal, by which any process may send it. */
  readonly name: string;
  /** JSON Schema of what a sender passes, for people who fill in a form. `signal()` sets it. */
  readonly schema?: JsonSchema | undefined;
  /**
   * Applies the schema of the signal to a value and returns the result. Throws `invalid_argument` for an invalid
   * value. Must be pure.
   */
  read(value: JsonValue): MaybePromise<Value>;
  /** The type of the values that a sender passes. Used by the compiler only; no signal object has this property. */
  readonly givenType?: (value: Given) => void;
}

/** Options of `RunHandle.signal`. */
export interface SignalOptions {
  /** The task that receives the signal. Default: the root. */
  readonly taskId?: string;
  /**
   * P1: id of the signal. If a signal of the same name was sent with this id before, the new one has no effect.
   * Default: a new id.
   */
  readonly id?: string;
}

/** Option kind of the names of signals, updates and published values. */
export const messageNameKind = is.text({ required: true, empty: false });

export const signalTable = optionTable({
  taskId: is.text(),
  id: is.text({ empty: false }),
} satisfies OptionKinds<SignalOptions>);

/** A published value with a type. `query()` of `reeve/workflow` creates one. `Given` is what the run publishes. */
export interface Query<Given = JsonValue, Value = Given> {
  /** Name under which a run publishes the value. */
  readonly name: string;
  /**
   * Applies the schema of the query to a value and returns the result. Throws `invalid_argument` for an invalid
   * value.
   */
  read(value: JsonValue): MaybePromise<Value>;
  /**
   * Returns the error if a run must not publish this value. The result is synchronous if the schema is synchronous.
   */
  refusalOf(value: JsonValue): MaybePromise<Fault | undefined>;
  /** The type of the values that a run publishes. Used by the compiler only; no query object has this property. */
  readonly givenType?: (value: Given) => void;
}

/**
 * An update: a message to a run with a reply. `update()` of `reeve/workflow` creates one. `Given` is what a sender passes,
 * `Value` what the handler receives, `Returned` what the handler returns, and `Reply` what the sender receives.
 */
export interface Update<Given = JsonValue, Value = Given, Returned = JsonValue, Reply = Returned> {
  /** Name of the update, by which any process may send it. */
  readonly name: string;
  /** JSON Schema of what a sender passes, for people who fill in a form. Absent if every JSON value is accepted. */
  readonly schema?: JsonSchema | undefined;
  /**
   * Applies the input schema of the update to a value and returns the result. Throws `invalid_argument` for an
   * invalid value. Must be pure.
   */
  read(value: JsonValue): MaybePromise<Value>;
  /**
   * Applies the output schema of the update to a reply and returns the result. Throws `invalid_argument` for an
   * invalid reply.
   */
  readReply(value: JsonValue): MaybePromise<Reply>;
  /**
   * The types of the value that a sender passes and of the reply that a handler returns. Used by the compiler only;
   * no update object has this property.
   */
  readonly givenTypes?: { readonly value: (value: Given) => void; readonly reply: (reply: Returned) => void };
}

/**
 * The reply to an update. `refused`: the update was not accepted, and the run has not changed. `failed`: its
 * handler threw an error.
 */
export type UpdateReply =
  | { readonly status: "completed"; readonly value: JsonValue }
  | { readonly status: "refused" | "failed"; readonly failure: Failure };

/** An update that a task has accepted. The task must reply to it once. */
export interface ReceivedUpdate {
  /** Id of the update, unique for its name and run. */
  readonly id: string;
  /** The value as it was sent. */
  readonly value: JsonValue;
}

/** Options of `RunHandle.update`. */
export interface UpdateOptions {
  /**
   * P1: id of the update. If an update of the same name was sent with this id before, the call returns the reply to
   * that one. Default: a new id.
   */
  readonly id?: string;
  /**
   * Ends the wait for the reply, which then rejects with `cancelled`. The update itself is not withdrawn. Default:
   * the wait ends with the run.
   */
  readonly signal?: CancelSignal;
}

export const updateTable = optionTable({
  id: is.text({ empty: false }),
  signal: is.any,
} satisfies OptionKinds<UpdateOptions>);

/** Returns which function created a message: `signal()`, `query()` or `update()`. `undefined` for another value. */
function kindOfMessage(value: unknown): "signal" | "query" | "update" | undefined {
  if (typeof readProperty(value, "name") !== "string" || typeof readProperty(value, "read") !== "function")
    return undefined;
  if (typeof readProperty(value, "readReply") === "function") return "update";
  return typeof readProperty(value, "refusalOf") === "function" ? "query" : "signal";
}

/**
 * Throws `invalid_argument` if the value is neither a non-empty name nor a message of this kind. `caller` names the
 * call in the error.
 */
export function requireMessage(kind: "signal" | "query" | "update", caller: string, message: unknown): void {
  if (typeof message === "string" && message !== "") return;
  const found = kindOfMessage(message);
  if (found === kind) return;
  const articles = { signal: "a signal", query: "a query", update: "an update" } as const;
  const given = found === undefined ? describeValue(message) : articles[found];
  throw new Fault(
    "invalid_argument",
    `invalid ${kind} ${given} of ${caller}: expected a name or ${articles[kind]}; use ${kind}(${uses[kind]}) of reeve/workflow`,
  );
}

const uses = {
  signal: '"paid", schema',
  query: '"progress", schema',
  update: '"changeAddress", { input, output }',
} as const;

/** A run as the target of a message: its id, or a handle of it. */
export type RunTarget = string | { readonly runId: RunId };

/** Options of `RunContext.waitForUpdate`. */
export interface WaitForUpdateOptions {
  /** Milliseconds after which the wait ends without an update. Default: no limit. */
  readonly timeoutMs?: number;
  /**
   * Throws to refuse the update. The refusal is recorded, and the sender receives the error. Default: every update
   * is accepted.
   */
  readonly accept?: (value: JsonValue) => MaybePromise<unknown>;
}

/** Options of `RunContext.waitForPromise`. */
export interface WaitForPromiseOptions {
  /**
   * Throws to refuse the value with which the promise was resolved. The wait records this error and throws it.
   * Default: every value is accepted.
   */
  readonly accept?: (value: JsonValue) => MaybePromise<unknown>;
}

/** Options of `RunContext.waitForSignal`. */
export interface WaitForSignalOptions extends WaitForPromiseOptions {
  /** Milliseconds after which the wait ends without a signal. Default: no limit. */
  readonly timeoutMs?: number;
}

/** How a promise of a run was settled. */
export type PromiseOutcome =
  | { readonly status: "resolved"; readonly value: JsonValue }
  | { readonly status: "rejected"; readonly failure: Failure };

/** A promise of a run, which code outside the run settles. `Runtime.promise` returns it. */
export interface RunPromise {
  /** Id of the promise. */
  readonly id: string;
  /**
   * Resolves the promise. Default value: `null`. Returns `false` if the promise was already settled, because the
   * first call counts. Rejects with `not_found` if the run has ended, or does not exist for this caller (S6).
   */
  resolve(value?: JsonValue): Promise<boolean>;
  /**
   * Rejects the promise. The run receives an error with the code and the message of `error`. Otherwise works like
   * `resolve`.
   */
  reject(error: unknown): Promise<boolean>;
}
