import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import { is, type OptionKinds } from "../base/option-table.ts";
import { readProperty } from "../base/read-property.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { RunHandle } from "./run-handle.ts";
import type { HostedWorkflow, WorkflowResult } from "./hosted-workflow.ts";

/** The input of a run that calls a handler of an object. */
export interface ObjectCall {
  /** Name of the handler. */
  readonly handler: string;
  /** Key of the object. */
  readonly key: string;
  /** Input of the handler. */
  readonly input: JsonValue;
}

/** The input and output types of a handler of an object. Used by the compiler only. */
export interface HandlerTypes {
  /** Takes what a caller may pass. */
  readonly input: (input: never) => void;
  /** What the handler returns. */
  readonly output: unknown;
}

/**
 * L19: an object, which has a state for each key and one writer at a time per key. A worker hosts it, and
 * `Runtime.object` calls it. `object()` of `reeve/workflow` creates one.
 */
export interface HostedObject<
  State = unknown,
  Handlers = Readonly<Record<string, HandlerTypes>>,
  Context = unknown,
> extends HostedWorkflow<ObjectCall, unknown, Context> {
  /** The names of the handlers. */
  readonly handlerNames: readonly string[];
  /**
   * Applies the schema to a stored state. `undefined` means that the key has no state; the default of the schema
   * then applies.
   */
  readState(stored: JsonValue | undefined): Promise<State>;
  /** The types of the handlers. Used by the compiler only; no object has this property. */
  readonly handlerTypes?: Handlers;
}

/** The arguments with which code calls a handler: the input, if the handler takes one, and the options. */
export type HandlerArguments<Types, Options> = Types extends { readonly input: (input: infer Input) => void }
  ? undefined extends Input
    ? [input?: Input | null, options?: Options]
    : [input: Input, options?: Options]
  : never;

/** What a handler returns. */
export type HandlerOutput<Types> = Types extends { readonly output: infer Output } ? Output : never;

/** Options of a call of an object from outside a run. */
export interface ObjectCallOptions {
  /**
   * Id of the call, which makes repeats harmless. A call of the same key with the same id and an equal input
   * returns the result of the first call; another input throws `already_exists`. This holds while the store keeps
   * the run of the first call. Default: a new id for each call.
   */
  readonly id?: string;
  /** Data for lists of runs. Default: `{}`. */
  readonly metadata?: JsonObject;
  /** Budget of the call. Default: that of the object. */
  readonly budget?: Partial<ExecutionBudget>;
  /** Milliseconds after which the call enters the queue of its key. Default: 0. */
  readonly delayMs?: number;
}

/** Expected types of the options of a call of an object, by name. */
export const objectCallKinds = {
  id: is.text({ empty: false }),
  metadata: is.any,
  budget: is.any,
  delayMs: is.number({ from: 0, finite: true }),
} satisfies OptionKinds<ObjectCallOptions>;

/** Which states `Runtime.objectStates` returns. */
export interface ObjectStateQuery {
  /** Only the state of this key. If absent, the states of all keys. */
  readonly key?: string;
  /** Tenant of the keys. `null` selects the keys without a tenant. Default: the tenant of the view, or `null`. */
  readonly tenantId?: string | null;
  /** `next` of the previous page. */
  readonly after?: string;
  /** Maximum number of states. Default: 100. */
  readonly limit?: number;
}

/** Expected types of the options of `Runtime.objectStates`, by name. */
export const objectStateKinds = {
  key: is.text({ empty: false }),
  tenantId: is.any,
  after: is.text(),
  limit: is.integer({ from: 1, to: 1_000 }),
} satisfies OptionKinds<ObjectStateQuery>;

/** One page of the states of an object. */
export interface ObjectStatePage {
  /**
   * The keys that have a state, with their last committed states, in the order of their stored form. The schema is
   * not applied.
   */
  readonly states: readonly { readonly key: string; readonly state: JsonValue }[];
  /** Pass it as `after` to get the next page. `null` on the last page. */
  readonly next: string | null;
}

/** One key of an object, as code outside a run calls it. Each handler is a method that returns the result of the handler. */
export type ObjectClient<State, Handlers> = {
  readonly [Name in keyof Handlers]: (
    ...given: HandlerArguments<Handlers[Name], ObjectCallOptions>
  ) => Promise<HandlerOutput<Handlers[Name]>>;
} & {
  /** Returns the last committed state of the key. It does not wait for calls in progress and starts no run. */
  state(): Promise<State>;
  /**
   * Calls handlers without waiting for their results: the call is durable when the promise resolves. The returned
   * run has the result.
   */
  readonly send: {
    readonly [Name in keyof Handlers]: (
      ...given: HandlerArguments<Handlers[Name], ObjectCallOptions>
    ) => Promise<RunHandle<WorkflowResult<HandlerOutput<Handlers[Name]>>>>;
  };
};

/** Names that a handler cannot have, because an object client has methods of its own with these names. */
const reservedNames: ReadonlySet<string> = new Set(["state", "send", "start", "then"]);

/** Throws `invalid_argument` if a handler may not have this name. `owner` names the object in the error. */
export function requireHandlerName(owner: string, name: string): void {
  if (/^[A-Za-z_][A-Za-z0-9_]{0,127}$/u.test(name) && !reservedNames.has(name) && !(name in {})) return;
  throw new Fault(
    "invalid_argument",
    `invalid handler ${describeValue(name)} of ${owner}: expected letters, digits and _, and none of ${[...reservedNames].join(", ")} and the members of every object; choose another name`,
  );
}

/**
 * Names of properties that JavaScript reads of any value to find out what it is: `await`, `JSON.stringify`, loggers
 * and test comparisons do so.
 */
const probes: ReadonlySet<string> = new Set(["then", "toJSON", "inspect", "nodeType", "asymmetricMatch"]);

/**
 * Wraps the calls of one key of an object so that a handler which does not exist throws `invalid_argument` with the
 * names of the existing ones. `owner` names the object, and `call` the expression that returned the calls, such as
 * `ctx.object(cart, key)`.
 */
export function withKnownHandlers<Calls extends object>(
  { name, handlerNames }: Pick<HostedObject, "name" | "handlerNames">,
  call: string,
  calls: Calls,
): Calls {
  return new Proxy(calls, {
    get(target, member, receiver) {
      if (typeof member === "symbol" || member in target || probes.has(member))
        return Reflect.get(target, member, receiver);
      throw new Fault(
        "invalid_argument",
        `unknown handler ${describeValue(member)} of object ${name}: expected ${handlerNames.join(", ")}; use ${call}.${handlerNames[0] ?? "name"}(input)`,
      );
    },
  });
}

/**
 * Throws `invalid_argument` unless the value is an object of `object()`. `owner` is the call in the error text,
 * such as `ctx.object()`.
 */
export function requireObject(owner: string, value: unknown): void {
  if (Array.isArray(readProperty(value, "handlerNames"))) return;
  throw new Fault(
    "invalid_argument",
    `invalid object ${describeValue(value)} of ${owner}: expected an object; use object("name", { state }, { ... }) of reeve/workflow`,
  );
}
