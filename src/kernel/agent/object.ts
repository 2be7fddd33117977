import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import { is, type OptionKinds } from "../base/option-table.ts";
import { readProperty } from "../base/read-property.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { RunHandle } from "./run-handle.ts";
import type { HostedWorkflow, WorkflowResult } from "./hosted-workflow.ts";

/** The input of a run that is a call of an object. */
export interface ObjectCall {
  /** Name of the handler. */
  readonly handler: string;
  /** Key of the object. */
  readonly key: string;
  /** Input of the handler. */
  readonly input: JsonValue;
}

/** What callers know of a handler of an object. For the compiler only. */
export interface HandlerTypes {
  /** Takes what a caller may pass. */
  readonly input: (input: never) => void;
  /** What the handler returns. */
  readonly output: unknown;
}

/**
 * L19: an object as a worker hosts it and `Runtime.object` calls it: state by key, with one writer per key. `object()` of
 * `reeve/workflow` creates one.
 */
export interface HostedObject<
  State = unknown,
  Handlers = Readonly<Record<string, HandlerTypes>>,
  Context = unknown,
> extends HostedWorkflow<ObjectCall, unknown, Context> {
  /** The names of the handlers. */
  readonly handlerNames: readonly string[];
  /** Applies the schema to a stored state. `undefined` means that the key has none, so that the default of the schema counts. */
  readState(stored: JsonValue | undefined): Promise<State>;
  /** The types of the handlers. For the compiler only; no object has this property. */
  readonly handlerTypes?: Handlers;
}

/** The arguments of a call: the input, if the handler takes one, and the options. */
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
   * Makes repeats harmless: a call of the same key with the same id and an equal input returns the result of the first one;
   * another input is refused with `already_exists`. It holds as long as the run of the call is kept. Default: each call is a
   * new one.
   */
  readonly id?: string;
  /** Data for lists of runs. Default: `{}`. */
  readonly metadata?: JsonObject;
  /** Budget of the call. Default: that of the object. */
  readonly budget?: Partial<ExecutionBudget>;
  /** Milliseconds after which the call enters the queue of its key. Default: 0. */
  readonly delayMs?: number;
}

/** The options of a call of an object, by name. */
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
  /** Tenant of the keys. `null`: the keys without a tenant. Default: that of the view, or `null`. */
  readonly tenantId?: string | null;
  /** `next` of the previous page. */
  readonly after?: string;
  /** Maximum number of states. Default: 100. */
  readonly limit?: number;
}

/** The options of `Runtime.objectStates`, by name. */
export const objectStateKinds = {
  key: is.text({ empty: false }),
  tenantId: is.any,
  after: is.text(),
  limit: is.integer({ from: 1, to: 1_000 }),
} satisfies OptionKinds<ObjectStateQuery>;

/** One page of the states of an object. */
export interface ObjectStatePage {
  /** The keys that have a state, in the order of their stored form, and their last committed states. No schema is applied. */
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
  /** Returns the last committed state of the key. Waits for no call, and starts no run. */
  state(): Promise<State>;
  /** Calls that are durable when the promise resolves. The returned run has the result. */
  readonly send: {
    readonly [Name in keyof Handlers]: (
      ...given: HandlerArguments<Handlers[Name], ObjectCallOptions>
    ) => Promise<RunHandle<WorkflowResult<HandlerOutput<Handlers[Name]>>>>;
  };
};

/** Names that a handler cannot have, because clients of objects have members of these names. */
const reservedNames: ReadonlySet<string> = new Set(["state", "send", "start", "then"]);

/** Throws `invalid_argument` unless a handler may have this name. `owner` names the object. */
export function requireHandlerName(owner: string, name: string): void {
  if (/^[A-Za-z_][A-Za-z0-9_]{0,127}$/u.test(name) && !reservedNames.has(name) && !(name in {})) return;
  throw new Fault(
    "invalid_argument",
    `invalid handler ${describeValue(name)} of ${owner}: expected letters, digits and _, and none of ${[...reservedNames].join(", ")} and the members of every object; choose another name`,
  );
}

/** Names that code reads of a value to find out what it is: `await`, `JSON.stringify`, loggers and comparisons of tests. */
const probes: ReadonlySet<string> = new Set(["then", "toJSON", "inspect", "nodeType", "asymmetricMatch"]);

/**
 * The calls of one key of an object. A handler that does not exist throws `invalid_argument`, which names those that exist.
 * `owner` names the object, and `call` the expression that returned the calls, such as `ctx.object(cart, key)`.
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

/** Throws `invalid_argument` unless the value is an object. `owner` names the call, such as `ctx.object()`. */
export function requireObject(owner: string, value: unknown): void {
  if (Array.isArray(readProperty(value, "handlerNames"))) return;
  throw new Fault(
    "invalid_argument",
    `invalid object ${describeValue(value)} of ${owner}: expected an object; use object("name", { state }, { ... }) of reeve/workflow`,
  );
}
