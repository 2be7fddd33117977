import { SchemaReader } from "../capabilities/index.ts";
import {
  describeValue,
  Fault,
  is,
  optionTable,
  readProperty,
  requireHandlerName,
  requireObjectKey,
  type FlowControl,
  type GivenAsJson,
  type HandlerTypes,
  type HostedObject,
  type Infer,
  type InferInput,
  type JsonSchema,
  type JsonValue,
  type MaybePromise,
  type ObjectCall,
  type ObjectContext,
  type OptionKinds,
  type RunContext,
  type Schema,
  type Serializable,
  type SharedObjectContext,
  type Tool,
} from "../kernel/index.ts";
import { messageReader } from "./workflow-messages.ts";
import { WorkflowScope } from "./workflow-context.ts";
import { Workflow, workflowKinds, type WorkflowOptions } from "./workflow.ts";

/** Options of `object()`. The options that `workflow()` also has apply to each call. */
export interface ObjectOptions<State extends Schema = never> extends Pick<
  WorkflowOptions,
  | "description"
  | "version"
  | "versionPolicy"
  | "agents"
  | "signals"
  | "updates"
  | "budget"
  | "compensationBudget"
  | "spawnBudget"
  | "onBudget"
  | "topUp"
> {
  /**
   * Schema of the state of a key. It must have a default, which is used as the state of a key without a stored
   * state, and it must be synchronous. It is applied each time the state is read, so it must accept its own
   * results. If absent, the state is any JSON value, initially `null`.
   */
  readonly state?: State;
}

const objectTable = optionTable({
  state: is.any,
  description: workflowKinds.description,
  version: workflowKinds.version,
  versionPolicy: workflowKinds.versionPolicy,
  agents: workflowKinds.agents,
  signals: workflowKinds.signals,
  updates: workflowKinds.updates,
  budget: workflowKinds.budget,
  compensationBudget: workflowKinds.compensationBudget,
  spawnBudget: workflowKinds.spawnBudget,
  onBudget: workflowKinds.onBudget,
  topUp: workflowKinds.topUp,
} satisfies OptionKinds<ObjectOptions>);

/** Schemas of a handler. */
export interface HandlerSchemas<Input extends Schema = never, Output extends Schema = never> {
  /**
   * Schema of the input. It is applied once, before the run of the call is created. If absent, every JSON value is
   * accepted.
   */
  readonly input?: Input;
  /** Schema of the output. If absent, the output is not checked. */
  readonly output?: Output;
}

const schemasTable = optionTable({ input: is.any, output: is.any } satisfies OptionKinds<HandlerSchemas>);

/** The code of a handler. */
type HandlerCode<Context, Input, Output> = (ctx: Context, input: Input) => Promise<Output>;

/** A handler without schemas. Its input may be any JSON type that its declaration names. */
type PlainHandler<State> = {
  code(ctx: ObjectContext<State>, input: JsonValue): Promise<unknown>;
}["code"];

/** A handler with schemas, or a shared handler. Create it with `handler()` or `shared()`. */
export interface ObjectHandler<State, Given, Output> {
  readonly isShared: boolean;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly code: HandlerCode<ObjectContext<State>, never, unknown>;
  /** The types of input and output. Exists only for the compiler; no handler object has this property. */
  readonly types?: { readonly input: (input: Given) => void; readonly output: Output };
}

/** The handlers of an object, by name. */
export type ObjectHandlers<State> = Readonly<
  Record<string, PlainHandler<State> | ObjectHandler<State, never, unknown>>
>;

/** Checks the return types of plain handlers, and names the parts that cannot be represented in JSON. */
type SerializableHandlers<Handlers> = {
  readonly [Name in keyof Handlers]: Handlers[Name] extends (...given: never) => Promise<infer Output>
    ? (...given: never) => Promise<Serializable<Output>>
    : unknown;
};

/** The types of an object's handlers that callers need. */
export type TypesOfHandlers<Handlers> = {
  readonly [Name in keyof Handlers]: Handlers[Name] extends ObjectHandler<never, infer Given, infer Output>
    ? { readonly input: (input: Given) => void; readonly output: Output }
    : Handlers[Name] extends (ctx: never) => Promise<infer Output>
      ? { readonly input: (input: undefined) => void; readonly output: Output }
      : Handlers[Name] extends (ctx: never, input: infer Given) => Promise<infer Output>
        ? { readonly input: (input: Given) => void; readonly output: Output }
        : never;
};

/** The input type for the code, and the input type for callers. */
type InputOf<In extends Schema> = [In] extends [never] ? JsonValue : Infer<In>;
type GivenOf<In extends Schema> = [In] extends [never] ? JsonValue : InferInput<In>;
/** The input type that a shared handler declares. `undefined` if it declares no input. */
type NamedInput<Given> = [Given] extends [never] ? undefined : unknown extends Given ? undefined : Given;
type StateOf<S extends Schema> = [S] extends [never] ? JsonValue : Infer<S>;

/**
 * Declares a handler with schemas. The input of a call is checked before its run is created, the output when the
 * run ends.
 *
 * @example
 * ```ts
 * import { handler, object } from "reeve/workflow";
 * import { z } from "zod";
 *
 * const counter = object("counter", { state: z.number().default(0) }, {
 *   add: handler({ input: z.number().int() }, async (ctx, by) => {
 *     ctx.setState(ctx.state + by);
 *     return ctx.state;
 *   }),
 * });
 * ```
 */
export function handler<State, const In extends Schema, const Out extends Schema>(
  schemas: HandlerSchemas<In, Out> & { readonly output: Out },
  code: HandlerCode<ObjectContext<State>, InputOf<In>, GivenAsJson<InferInput<Out>, Infer<Out>>>,
): ObjectHandler<State, GivenOf<In>, Infer<Out>>;
/** Without a schema of the output, the handler returns any JSON value. */
export function handler<State, const In extends Schema, Output>(
  schemas: HandlerSchemas<In>,
  code: HandlerCode<ObjectContext<State>, InputOf<In>, Output & Serializable<Output>>,
): ObjectHandler<State, GivenOf<In>, Output>;
export function handler(schemas: HandlerSchemas<Schema, Schema>, code: unknown): unknown {
  return declared("handler()", schemas, code, false);
}

/**
 * Declares a handler that only reads. It neither waits for other calls of its key nor delays them. It sees the
 * state that was last committed when it started.
 */
export function shared<State, Given, Output>(
  code: HandlerCode<SharedObjectContext<State>, Given, Output & Serializable<Output>>,
): ObjectHandler<State, NamedInput<Given>, Output>;
/** With schemas, like `handler()`. */
export function shared<State, const In extends Schema, const Out extends Schema>(
  schemas: HandlerSchemas<In, Out> & { readonly output: Out },
  code: HandlerCode<SharedObjectContext<State>, InputOf<In>, GivenAsJson<InferInput<Out>, Infer<Out>>>,
): ObjectHandler<State, GivenOf<In>, Infer<Out>>;
/** Without a schema of the output, the handler returns any JSON value. */
export function shared<State, const In extends Schema, Output>(
  schemas: HandlerSchemas<In>,
  code: HandlerCode<SharedObjectContext<State>, InputOf<In>, Output & Serializable<Output>>,
): ObjectHandler<State, GivenOf<In>, Output>;
export function shared(first: unknown, code?: unknown): unknown {
  return typeof first === "function"
    ? declared("shared()", {}, first, true)
    : declared("shared()", first as HandlerSchemas<Schema, Schema>, code, true);
}

function declared(
  owner: string,
  schemas: HandlerSchemas<Schema, Schema>,
  code: unknown,
  isShared: boolean,
): ObjectHandler<never, never, unknown> {
  const { input, output } = schemasTable.read(owner, schemas);
  if (typeof code !== "function")
    throw new Fault(
      "invalid_argument",
      `invalid function ${describeValue(code)} of ${owner}: expected a function; use ${owner.slice(0, -1)}{ input, output }, async (ctx, input) => ...)`,
    );
  return { isShared, input, output, code: code as HandlerCode<ObjectContext<never>, never, unknown> };
}

/** A handler as an object uses it. */
interface ReadHandler {
  readonly isShared: boolean;
  readonly read: (input: JsonValue) => MaybePromise<JsonValue>;
  readonly readOutput: (output: JsonValue) => MaybePromise<JsonValue>;
  readonly code: HandlerCode<unknown, unknown, unknown>;
}

/** An object with a state for each key (L19). Create it with `object()`. */
export class DurableObject<
  State = JsonValue,
  Handlers = Readonly<Record<string, HandlerTypes>>,
  Context = unknown,
>
  extends Workflow<ObjectCall, unknown, Context>
  implements HostedObject<State, Handlers, Context>
{
  declare readonly handlerTypes?: Handlers;
  readonly handlerNames: readonly string[];
  readonly #handlers: ReadonlyMap<string, ReadHandler>;
  readonly #state: StateReader<State>;

  /** Use `object()`, which infers the types. */
  constructor(name: string, options: ObjectOptions<Schema>, handlers: Readonly<Record<string, unknown>>) {
    super(name, workflowOptions(name, options), (ctx, call: ObjectCall) => this.#handle(ctx, call));
    this.#handlers = readHandlers(name, handlers);
    this.handlerNames = [...this.#handlers.keys()];
    this.#state = new StateReader<State>(name, options.state);
  }

  override readonly flowOf: FlowControl = ({ input }) => {
    const { handler: called, key } = input as unknown as ObjectCall;
    const isShared = this.#handlers.get(called)?.isShared === true;
    return { object: { name: this.name, key, ...(isShared && { isShared }) } };
  };

  override get inputSchema(): JsonSchema {
    return {
      type: "object",
      properties: { handler: { enum: [...this.handlerNames] }, key: { type: "string" }, input: {} },
      required: ["handler", "key"],
    };
  }

  override async readInput(call: JsonValue): Promise<JsonValue> {
    const owner = `object ${this.name}`;
    const called = readProperty(call, "handler");
    const found = typeof called === "string" ? this.#handlers.get(called) : undefined;
    if (found === undefined)
      throw new Fault(
        "invalid_argument",
        `invalid handler ${describeValue(called)} of ${owner}: expected one of ${this.handlerNames.join(", ")}; use runtime.object(${this.name}, key).${this.handlerNames[0] ?? "name"}(input)`,
      );
    const key = readProperty(call, "key");
    requireObjectKey(owner, key);
    const input = (readProperty(call, "input") ?? null) as JsonValue;
    return { handler: called as string, key, input: await found.read(input) };
  }

  readState(stored: JsonValue | undefined): Promise<State> {
    return this.#state.read(stored);
  }

  override asTool(): Tool {
    throw new Fault(
      "invalid_argument",
      `object ${this.name} cannot be a tool: each call is a separate run; write a tool whose function calls runtime.object(${this.name}, key)`,
    );
  }

  async #handle(ctx: unknown, { handler: called, key, input }: ObjectCall): Promise<JsonValue> {
    const found = this.#handlers.get(called);
    if (found === undefined)
      throw new Fault(
        "invalid_argument",
        `object ${this.name} has no handler ${JSON.stringify(called)} any more; host the version of the object that has it`,
      );
    const { runContext } = ctx as WorkflowScope<unknown>;
    const stored = await runContext.objectState();
    const scope = new ObjectScope(runContext, key, this.#state, await stateNow(this.#state, stored));
    try {
      const output = ((await scope.run("the handler", (own) => found.code(own, input))) ?? null) as JsonValue;
      return await found.readOutput(output);
    } finally {
      scope.isOver = true;
    }
  }
}

/**
 * The state of a key, or the error if the stored state does not match the schema. A handler may still replace such
 * a state.
 */
type StateNow<State> = { readonly value: State } | { readonly error: unknown };

async function stateNow<State>(
  reader: StateReader<State>,
  stored: JsonValue | undefined,
): Promise<StateNow<State>> {
  try {
    return { value: await reader.read(stored) };
  } catch (error) {
    return { error };
  }
}

/** The context of a handler. */
class ObjectScope<State> extends WorkflowScope<unknown> implements ObjectContext<State> {
  readonly key: string;
  /** Whether the handler has returned. */
  isOver = false;
  readonly #reader: StateReader<State>;
  #now: StateNow<State>;

  constructor(ctx: RunContext, key: string, reader: StateReader<State>, now: StateNow<State>) {
    super(ctx);
    this.key = key;
    this.#reader = reader;
    this.#now = now;
  }

  get state(): State {
    if ("error" in this.#now) throw this.#now.error;
    return this.#now.value;
  }

  setState(state: State): void {
    this.#change(state as JsonValue);
  }

  clearState(): void {
    this.#change(undefined);
  }

  #change(state: JsonValue | undefined): void {
    if (this.isOver)
      throw new Fault(
        "invalid_argument",
        "ctx.setState() was called after the handler had ended, for example by a compensation; call the object again with ctx.object(...).send",
      );
    // The value that later reads of the state return, so that a handler sees what the next one would.
    const value = this.#reader.readNow(state);
    this.setObjectState(state);
    this.#now = { value };
  }
}

/** Applies the schema of the state of an object. */
class StateReader<State> {
  readonly #name: string;
  readonly #reader: SchemaReader<State> | undefined;
  /** The state of a key without a stored state. `undefined` if the schema provides it. */
  readonly #initial: JsonValue | undefined;

  constructor(name: string, schema: Schema | undefined) {
    this.#name = name;
    this.#initial = schema === undefined ? null : (readProperty(schema, "default") as JsonValue | undefined);
    if (schema === undefined) return;
    const schemaName = `the state schema of object ${name}`;
    this.#reader = new SchemaReader<State>(
      { schemaName, refuse: (problems) => this.#refusal(problems) },
      schema,
    );
    const isStandard = "~standard" in schema;
    // The `default` of a Standard Schema is a method, and its own business.
    if (isStandard) this.#initial = undefined;
    const initial = isStandard ? this.#reader.inspect(undefined as unknown as JsonValue) : undefined;
    if (isStandard ? initial !== undefined && "problems" in initial : this.#initial === undefined)
      throw new Fault(
        "invalid_argument",
        `${schemaName} has no default, which is the state of a key that has none; use z.object({ ... }).default({ ... }), or the keyword default of a JSON Schema`,
      );
  }

  /** Applies the schema to a stored state. Some schemas are loaded by the first call. */
  async read(stored: JsonValue | undefined): Promise<State> {
    const found = this.#inspect(stored);
    return this.#accepted(found instanceof Promise ? await found : found);
  }

  /** Like `read`, but synchronous. Only allowed after a first call of `read`. */
  readNow(stored: JsonValue | undefined): State {
    const found = this.#inspect(stored);
    if (!(found instanceof Promise)) return this.#accepted(found);
    throw new Fault(
      "invalid_argument",
      `the state schema of object ${this.#name} is asynchronous; use a schema without asynchronous checks`,
    );
  }

  #inspect(stored: JsonValue | undefined): Inspected<State> | Promise<Inspected<State>> {
    const value = stored === undefined ? this.#initial : stored;
    return this.#reader === undefined
      ? { value: structuredClone(value) as State }
      : this.#reader.inspect(value as JsonValue);
  }

  #accepted(found: Inspected<State>): State {
    if (found.problems === undefined) return found.value;
    throw this.#refusal(found.problems);
  }

  #refusal(problems: readonly string[]): Fault {
    return new Fault(
      "invalid_argument",
      `the state does not match the schema of object ${this.#name}: ${problems.join("; ")}; let the schema accept what is stored, or replace it with ctx.setState() or ctx.clearState()`,
      { details: { object: this.#name, problems } },
    );
  }
}

type Inspected<State> = Awaited<ReturnType<SchemaReader<State>["inspect"]>>;

/** Returns the options of the workflow that executes the calls. */
function workflowOptions(name: string, options: ObjectOptions<Schema>): WorkflowOptions<Schema, Schema> {
  objectTable.read(`object ${name}`, options);
  const { state: _state, ...more } = options;
  return more;
}

function readHandlers(name: string, handlers: unknown): ReadonlyMap<string, ReadHandler> {
  const owner = `object ${name}`;
  const use = `use object("${name}", { state }, { add: async (ctx, by: number) => ... })`;
  if (typeof handlers !== "object" || handlers === null || Array.isArray(handlers))
    throw new Fault(
      "invalid_argument",
      `invalid handlers ${describeValue(handlers)} of ${owner}: expected functions by name; ${use}`,
    );
  const read = new Map<string, ReadHandler>();
  for (const [called, given] of Object.entries(handlers) as readonly [string, unknown][]) {
    requireHandlerName(owner, called);
    const code = typeof given === "function" ? given : readProperty(given, "code");
    if (typeof code !== "function")
      throw new Fault(
        "invalid_argument",
        `invalid handler ${called} of ${owner}: expected a function, handler() or shared(), not ${describeValue(given)}; ${use}`,
      );
    const { isShared, input, output } =
      typeof given === "function"
        ? { isShared: false, input: undefined, output: undefined }
        : (given as ObjectHandler<never, never, unknown>);
    read.set(called, {
      isShared,
      read: messageReader(`the input of ${called}() of ${owner}`, input),
      readOutput: messageReader(`the output of ${called}() of ${owner}`, output),
      code: code as HandlerCode<unknown, unknown, unknown>,
    });
  }
  if (read.size > 0) return read;
  throw new Fault("invalid_argument", `invalid handlers of ${owner}: there are none; ${use}`);
}

/**
 * Declares an object: state by key in the store, with one writer per key (a virtual object). The calls of a key run
 * one at a time, in the order in which they arrive; calls of other keys run in parallel.
 *
 * @example
 * ```ts
 * import { openRuntime } from "reeve";
 * import { object, shared } from "reeve/workflow";
 * import { z } from "zod";
 *
 * const counter = object(
 *   "counter",
 *   { state: z.object({ count: z.number() }).default({ count: 0 }) },
 *   {
 *     add: async (ctx, by: number) => {
 *       ctx.setState({ count: ctx.state.count + by });
 *       return ctx.state.count;
 *     },
 *     get: shared(async (ctx) => ctx.state.count),
 *   },
 * );
 *
 * const runtime = await openRuntime({ store: "sqlite:./reeve.db" });
 * const count = await runtime.object(counter, "visits").add(1, { id: "request-7" });
 * const { count: same } = await runtime.object(counter, "visits").state();
 * ```
 */
export function object<const State extends Schema, Handlers extends ObjectHandlers<StateOf<State>>>(
  name: string,
  options: ObjectOptions<State> & { readonly state: State },
  handlers: Handlers & SerializableHandlers<Handlers>,
): DurableObject<StateOf<State>, TypesOfHandlers<Handlers>>;
/** Without a schema of the state, the state is any JSON value. */
export function object<Handlers extends ObjectHandlers<JsonValue>>(
  name: string,
  options: ObjectOptions,
  handlers: Handlers & SerializableHandlers<Handlers>,
): DurableObject<JsonValue, TypesOfHandlers<Handlers>>;
/** Without options. */
export function object<Handlers extends ObjectHandlers<JsonValue>>(
  name: string,
  handlers: Handlers & SerializableHandlers<Handlers>,
): DurableObject<JsonValue, TypesOfHandlers<Handlers>>;
export function object(name: string, first: unknown, second?: unknown): unknown {
  const [options, handlers] = second === undefined ? [{}, first] : [first, second];
  return new DurableObject(
    name,
    options as ObjectOptions<Schema>,
    handlers as Readonly<Record<string, unknown>>,
  );
}
