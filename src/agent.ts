import {
  AgentCore,
  type AgentHome,
  type AgentInput,
  type AgentOptions as BareAgentOptions,
  type InvokeOptions as BareInvokeOptions,
  type AgentStream,
  type RunUntilOptions as BareRunUntilOptions,
  type StreamOptions as BareStreamOptions,
} from "./agents/index.ts";
import { JsonSchemaCheck, SchemaReader, toModel, type ModelLike } from "./capabilities/index.ts";
import { defaultRuntime } from "./default-runtime.ts";
import {
  Fault,
  jsonText,
  type Infer,
  type JsonSchema,
  type JsonValue,
  type Model,
  type RunResult,
  type RunStatus,
  type Schema,
} from "./kernel/index.ts";

export interface AgentOptions extends Omit<BareAgentOptions, "model" | "models"> {
  /** Of an AI SDK provider, by its name (`"anthropic/claude-sonnet-5"`), or one of your own. */
  readonly model?: ModelLike;
  /** By role, where a role is to have another than `model`. */
  readonly models?: Readonly<Record<string, ModelLike>>;
}

/**
 * `Source`: any Standard Schema that can describe itself as JSON Schema (zod), or a plain JSON Schema written `as const`. Without one the
 * answer is a text.
 */
export interface InvokeOptions<Source extends Schema = never> extends Omit<BareInvokeOptions, "output"> {
  /** The answer is to be JSON that fits; it is asked for again, twice at most, when it does not. */
  readonly output?: Source | undefined;
}

export interface StreamOptions<Source extends Schema = never> extends Omit<BareStreamOptions, "output"> {
  readonly output?: Source | undefined;
}

export type RunUntilOptions = Omit<BareRunUntilOptions<string>, "output">;

/** `output` is the value only of a run that completed. */
export type ValueResult<Value> =
  | (Omit<RunResult<Value>, "status"> & { readonly status: "completed" })
  | (Omit<RunResult, "status"> & { readonly status: Exclude<RunStatus, "completed"> });

const home: AgentHome = {
  runtime: defaultRuntime,
  check: (schema, value) => checkFor(schema).problems(value),
};

/** Compiled once for each schema. */
const checks = new WeakMap<JsonSchema, JsonSchemaCheck>();

function checkFor(schema: JsonSchema): JsonSchemaCheck {
  const known = checks.get(schema);
  if (known !== undefined) return known;
  const check = new JsonSchemaCheck("the schema that was given", schema);
  checks.set(schema, check);
  return check;
}

/**
 * An agent: what it is (model, instructions, tools), how it thinks (its architecture) and what it is held to (budget, guardrails,
 * permissions, hooks, middleware).
 */
export class Agent extends AgentCore {
  readonly #given: AgentOptions;

  constructor(options: AgentOptions) {
    super(withModels(options), home);
    this.#given = options;
  }

  /** One that is like it but for `changes`. */
  override with(changes: Partial<AgentOptions>): Agent {
    return new Agent({ ...this.#given, ...changes });
  }

  /** Runs it on an input, and gives what it came to, however that ended: look at `status`. */
  override invoke(input: AgentInput, options?: InvokeOptions): Promise<RunResult>;
  override invoke<const Source extends Schema>(
    input: AgentInput,
    options: InvokeOptions<Source> & { readonly output: Source },
  ): Promise<ValueResult<Infer<Source>>>;
  /** With a schema or without, as it comes. */
  override invoke<const Source extends Schema>(
    input: AgentInput,
    options?: InvokeOptions<Source>,
  ): Promise<RunResult | ValueResult<Infer<Source>>>;
  override async invoke(input: AgentInput, options: InvokeOptions<Schema> = {}): Promise<never> {
    const { output, ...rest } = options;
    if (output === undefined) return textual(await super.invoke(input, rest)) as never;
    const reader = outputReader(output);
    return (await valued(await super.invoke(input, { ...rest, output: reader.jsonSchema }), reader)) as never;
  }

  override stream(input: AgentInput, options?: StreamOptions): AgentStream<RunResult>;
  override stream<const Source extends Schema>(
    input: AgentInput,
    options: StreamOptions<Source> & { readonly output: Source },
  ): AgentStream<ValueResult<Infer<Source>>>;
  override stream<const Source extends Schema>(
    input: AgentInput,
    options?: StreamOptions<Source>,
  ): AgentStream<RunResult | ValueResult<Infer<Source>>>;
  override stream(input: AgentInput, options: StreamOptions<Schema> = {}): never {
    const { output, ...rest } = options;
    if (output === undefined) return this.streamAs(input, rest, textual) as never;
    const reader = outputReader(output);
    const settings = { ...rest, output: reader.jsonSchema };
    return this.streamAs(input, settings, (result) => valued(result, reader)) as never;
  }

  /** Its rounds are those of `invoke` above: their output is a text. */
  override runUntil(input: AgentInput, options: RunUntilOptions): Promise<RunResult> {
    const asked = options as unknown as BareRunUntilOptions<JsonValue>;
    return super.runUntil(input, asked) as Promise<RunResult>;
  }

  override async resume(runId: string, options?: Pick<BareInvokeOptions, "runtime">): Promise<RunResult> {
    return textual(await super.resume(runId, options));
  }
}

function withModels({ model, models, ...rest }: AgentOptions): BareAgentOptions {
  const byRole = Object.entries(models ?? {}).map(([role, each]): [string, Model] => [role, toModel(each)]);
  return {
    ...rest,
    ...(model !== undefined && { model: toModel(model) }),
    ...(models !== undefined && { models: Object.fromEntries(byRole) }),
  };
}

function outputReader(schema: Schema): SchemaReader<unknown> {
  return new SchemaReader({ schemaName: "the schema of the output", refuse: refusedAnswer }, schema);
}

function refusedAnswer(problems: readonly string[]): Fault {
  return new Fault("model_format_error", `the answer does not fit its schema: ${problems.join("; ")}`);
}

/** What a JSON Schema cannot say of an answer is seen only here, when it was paid for: how it ended is a value all the same. */
async function valued(
  result: RunResult<JsonValue>,
  reader: SchemaReader<unknown>,
): Promise<RunResult<unknown>> {
  if (result.status !== "completed") return textual(result);
  try {
    return { ...result, output: await reader.parse(result.output) };
  } catch (error) {
    const fault = Fault.from(error);
    if (fault.code !== "model_format_error") throw error;
    const { message: interruptionReason } = fault;
    return { ...textual(result), status: "failed", interruptionReason, error: fault.toJSON() };
  }
}

function textual(result: RunResult<JsonValue>): RunResult {
  return { ...result, output: jsonText(result.output) };
}
