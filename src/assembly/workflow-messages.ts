import { SchemaReader } from "../capabilities/index.ts";
import {
  checkList,
  describeValue,
  Fault,
  is,
  optionTable,
  readProperty,
  type Infer,
  type InferInput,
  type JsonValue,
  type MaybePromise,
  type OptionKinds,
  type Query,
  type Schema,
  type Signal,
  type Update,
} from "../kernel/index.ts";

/** Schemas of an update. */
export interface UpdateSchemas<Input extends Schema = never, Output extends Schema = never> {
  /** Schema of the value that a sender passes. If absent, every JSON value is accepted. */
  readonly input?: Input;
  /** Schema of the reply. If absent, the reply is not checked. */
  readonly output?: Output;
}

const updateTable = optionTable({ input: is.any, output: is.any } satisfies OptionKinds<UpdateSchemas>);

/**
 * Declares a signal with a value of a certain type. `run.signal(paid, value)` checks the value before it is sent,
 * and `ctx.waitForSignal(paid)` returns it converted by the schema. The transforms of the schema must be pure.
 *
 * @example
 * ```ts
 * import { signal, workflow } from "reeve/workflow";
 * import { z } from "zod";
 *
 * const paid = signal("paid", z.object({ cents: z.number() }));
 *
 * const order = workflow("order", async (ctx) => {
 *   const payment = await ctx.waitForSignal(paid, { timeoutMs: 86_400_000 });
 *   return payment?.cents ?? null;
 * });
 * ```
 */
export function signal<const Source extends Schema>(
  name: string,
  schema: Source,
): Signal<InferInput<Source>, Infer<Source>> {
  requireName("signal", name, 'signal("paid", schema)');
  const reader = readerOf(`signal ${name}`, schema);
  return { name, schema: reader.jsonSchema, read: (value) => reader.parse(value) };
}

/**
 * Declares a published value of a certain type. `ctx.publish(progress, value)` publishes a value, and
 * `run.read(progress)` returns the last committed value, converted by the schema, without waking the run.
 *
 * @example
 * ```ts
 * import { query, workflow } from "reeve/workflow";
 * import { z } from "zod";
 *
 * const progress = query("progress", z.object({ done: z.number() }));
 *
 * const load = workflow("load", async (ctx) => {
 *   for (let done = 1; done <= 3; done++) {
 *     await ctx.step("part", () => done);
 *     ctx.publish(progress, { done });
 *   }
 * });
 * ```
 */
export function query<const Source extends Schema>(
  name: string,
  schema: Source,
): Query<InferInput<Source>, Infer<Source>> {
  requireName("query", name, 'query("progress", schema)');
  const reader = readerOf(`query ${name}`, schema);
  return {
    name,
    read: (value) => reader.parse(value),
    refusalOf: (value) => {
      const found = reader.inspect(value);
      return found instanceof Promise ? found.then(refusalIn) : refusalIn(found);
    },
  };

  function refusalIn({ problems }: Awaited<ReturnType<typeof reader.inspect>>): Fault | undefined {
    return problems === undefined ? undefined : refusalOfMessage(`query ${name}`, problems);
  }
}

/**
 * Declares an update: a message to a run with a reply. `run.update(changeAddress, value)` checks the value, sends it and
 * returns the reply; `ctx.handleUpdate(changeAddress, handler)` accepts one and replies. The transforms of the schema of the
 * input must be pure.
 *
 * @example
 * ```ts
 * import { update, workflow } from "reeve/workflow";
 * import { z } from "zod";
 *
 * const changeAddress = update("changeAddress", { input: z.string().min(1), output: z.boolean() });
 *
 * const order = workflow("order", async (ctx) => {
 *   await ctx.handleUpdate(changeAddress, (address) => ctx.step("move", () => address !== ""));
 * });
 * ```
 */
export function update<const In extends Schema = never, const Out extends Schema = never>(
  name: string,
  schemas: UpdateSchemas<In, Out> = {},
): Update<
  [In] extends [never] ? JsonValue : InferInput<In>,
  [In] extends [never] ? JsonValue : Infer<In>,
  [Out] extends [never] ? JsonValue : InferInput<Out>,
  [Out] extends [never] ? JsonValue : Infer<Out>
> {
  requireName("update", name, 'update("changeAddress", { input, output })');
  const { input, output } = updateTable.read(`update ${name}`, schemas);
  const reader = input === undefined ? undefined : readerOf(`update ${name}`, input);
  return {
    name,
    ...(reader !== undefined && { schema: reader.jsonSchema }),
    read: (value) => (reader === undefined ? (value as never) : reader.parse(value)),
    readReply: messageReader(`the reply to update ${name}`, output),
  };
}

function requireName(kind: string, name: unknown, use: string): void {
  if (typeof name === "string" && name !== "") return;
  throw new Fault(
    "invalid_argument",
    `invalid name ${describeValue(name)} of ${kind}(): expected a text that is not empty; use ${use}`,
  );
}

/** Returns a function that applies the schema. Without a schema, the function returns the value. */
export function messageReader(
  owner: string,
  schema: Schema | undefined,
): (value: JsonValue) => never | Promise<never> {
  if (schema === undefined) return (value) => value as never;
  const reader = readerOf(owner, schema);
  return (value) => reader.parse(value);
}

function refusalOfMessage(owner: string, problems: readonly string[]): Fault {
  return new Fault("invalid_argument", `invalid value of ${owner}: ${problems.join("; ")}`, {
    details: { message: owner, problems },
  });
}

function readerOf(owner: string, schema: Schema): SchemaReader<never> {
  const refuse = (problems: readonly string[]): Fault => refusalOfMessage(owner, problems);
  return new SchemaReader<never>({ schemaName: `the schema of ${owner}`, refuse }, schema);
}

/** Applies a schema to a received value. It is applied again only in a replay, which reads the recorded value. */
export class ReadOnce<Value> {
  readonly #read: (value: JsonValue) => MaybePromise<Value>;
  #found: { readonly value: Value } | undefined;

  constructor(read: (value: JsonValue) => MaybePromise<Value>) {
    this.#read = read;
  }

  /** Throws if the schema refuses the value. */
  readonly accept = async (value: JsonValue): Promise<void> => {
    this.#found = { value: await this.#read(value) };
  };

  valueOf(value: JsonValue): MaybePromise<Value> {
    return this.#found === undefined ? this.#read(value) : this.#found.value;
  }
}

/** Throws `invalid_argument` unless the value is a list of signals, or of updates. `owner` names the workflow. */
export function checkMessages(owner: string, kind: "signal" | "update", given: unknown): void {
  const option = `${kind}s of ${owner}`;
  const use =
    kind === "signal" ? 'signals: [signal("paid", schema)]' : 'updates: [update("move", { input })]';
  checkList(option, given, `use ${use}`);
  const names = new Set<string>();
  for (const each of given as readonly unknown[]) {
    const name = readProperty(each, "name");
    const isUpdate = typeof readProperty(each, "readReply") === "function";
    // A published value has a name and no schema.
    const isSignal = !isUpdate && readProperty(each, "schema") !== undefined;
    if (typeof name !== "string" || !(kind === "signal" ? isSignal : isUpdate))
      throw new Fault(
        "invalid_argument",
        `invalid entry ${describeValue(each)} of ${option}: expected what ${kind}() returns; use ${use}`,
      );
    if (names.has(name))
      throw new Fault(
        "invalid_argument",
        `invalid ${option}: two of them have the name ${JSON.stringify(name)}; remove one of them`,
      );
    names.add(name);
  }
}
