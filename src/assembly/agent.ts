import {
  AgentCore,
  checkAgentOptions,
  type AgentHome,
  type AgentInput,
  type AgentSubmitOptions as BareSubmitOptions,
  type AgentOptions as BareAgentOptions,
  type ChildOfSession,
  type ContinueOptions as BareContinueOptions,
  type InvokeOptions as BareInvokeOptions,
  type JudgedLoopOptions as BareJudgedLoopOptions,
  type RunUntilOptions as BareRunUntilOptions,
  type StreamOptions as BareStreamOptions,
} from "../agents/index.ts";
import { AgentStream } from "./agent-stream.ts";
import { JsonSchemaCheck, SchemaReader, toModel, type ModelLike } from "../capabilities/index.ts";
import {
  changedResult,
  Fault,
  jsonText,
  type HostedAgent,
  type Infer,
  type JsonSchema,
  type JsonValue,
  type Model,
  type RunHandle,
  type RunResult,
  type RunStatus,
  type Runtime,
  type Schema,
  type WaitingResult,
} from "../kernel/index.ts";
import { openRuntime } from "./open-runtime.ts";
import { systemClock } from "../runtime/index.ts";

/**
 * Options of an agent. `Context` is the type of the live value that tools, instructions, hooks and guardrails receive. It
 * follows from the tools and the instructions that declare it.
 */
export interface AgentOptions<Context = unknown> extends Omit<BareAgentOptions<Context>, "model" | "models"> {
  /** The model: one of an AI SDK provider, a name such as `"anthropic/claude-sonnet-5"`, or your own `Model`. */
  readonly model?: ModelLike;
  /** Models for single roles. A role without an entry uses `model`. */
  readonly models?: Readonly<Record<string, ModelLike>>;
}

/**
 * Options of `invoke`. `Source` is a Standard Schema that can convert itself to JSON Schema (such as one of zod), or a
 * JSON Schema written `as const`. Without a schema the answer is a text.
 */
export interface InvokeOptions<Source extends Schema = never, Context = unknown> extends Omit<
  BareInvokeOptions<Context>,
  "output"
> {
  /** The schema of the answer. If an answer does not match, the model is asked again, at most twice. */
  readonly output?: Source | undefined;
}

/** Options of `continue`: those of `invoke` without `sessionId`. */
export interface ContinueOptions<Source extends Schema = never, Context = unknown> extends Omit<
  BareContinueOptions<Context>,
  "output"
> {
  readonly output?: Source | undefined;
}

export interface StreamOptions<Source extends Schema = never, Context = unknown> extends Omit<
  BareStreamOptions<Context>,
  "output"
> {
  readonly output?: Source | undefined;
}

export type RunUntilOptions<Context = unknown> = Omit<BareRunUntilOptions<string, Context>, "output">;
/** Options of `runUntil` with a goal in words, which the model of the role `judge` checks. */
export type JudgedLoopOptions<Context = unknown> = Omit<BareJudgedLoopOptions<Context>, "output">;

/** Options of `invoke` that make it return when the run needs a person's answer, or may make it do so. */
export interface ReturnOnApproval<Source extends Schema = never, Context = unknown> extends Omit<
  InvokeOptions<Source, Context>,
  "onApproval" | "output"
> {
  readonly output?: Source | undefined;
  /** `"return"` resolves with a `WaitingResult` when the run needs a person's answer. The run waits durably. */
  readonly onApproval: "return" | NonNullable<InvokeOptions["onApproval"]>;
}

/** Options of `submit`. */
export interface SubmitRunOptions<Source extends Schema = never, Context = unknown> extends Omit<
  BareSubmitOptions<Context>,
  "output"
> {
  readonly output?: Source | undefined;
}

/** The result of a run with an output schema, or without one if `Source` is `never`. */
export type AnswerOf<Source extends Schema> = [Source] extends [never]
  ? RunResult
  : ValueResult<Infer<Source>>;

/** The result of a run with an output schema. `output` has the schema's type only if the run completed. */
export type ValueResult<Value> =
  | (Omit<RunResult<Value>, "status"> & { readonly status: "completed" })
  | (Omit<RunResult, "status"> & { readonly status: Exclude<RunStatus, "completed"> });

let openedDefault: Promise<Runtime> | undefined;

/**
 * Returns the runtime of agents that are invoked without one. It is opened on first use, stores everything in memory
 * and lasts until the process ends. It does not keep the process alive, and therefore never drops a waiting run from
 * memory: the poll that would find the run again does not keep the process alive either. So that a server does not run
 * out of memory, an ended run is deleted after a minute, and an unnamed session an hour after its last message.
 */
function defaultRuntime(): Promise<Runtime> {
  return (openedDefault ??= openRuntime({
    keepAlive: false,
    sameName: "replace",
    keepEndedRunsMs: 60_000,
    keepUnnamedSessionsMs: 3_600_000,
    suspendAfterMs: Number.MAX_SAFE_INTEGER,
  }));
}

const home: AgentHome = {
  runtime: defaultRuntime,
  clock: systemClock,
  check: (schema, value) => checkFor(schema).problems(value),
};

/** Compiled validators, one per schema. */
const checks = new WeakMap<JsonSchema, JsonSchemaCheck>();

function checkFor(schema: JsonSchema): JsonSchemaCheck {
  const known = checks.get(schema);
  if (known !== undefined) return known;
  const check = new JsonSchemaCheck("the schema that was given", schema);
  checks.set(schema, check);
  return check;
}

/** Changes of an agent's options, or a function that derives them from the present options. */
export type AgentChanges<Context = unknown> =
  | Partial<AgentOptions<Context>>
  // The type of a method, so that agents with different contexts stay assignable to each other.
  | { derive(options: AgentOptions<Context>): Partial<AgentOptions<Context>> }["derive"];

/**
 * An agent: its model, instructions and tools, its architecture, and its policy (budget, guardrails, permissions,
 * hooks, middleware).
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 *
 * const agent = new Agent({ name: "scout", model: "anthropic/claude-sonnet-5", budget: { maxCostUsd: 0.5 } });
 * const { status, output } = await agent.invoke("Which licence does this project use?");
 * ```
 */
export class Agent<Context = unknown> extends AgentCore implements HostedAgent<Context> {
  declare readonly contextType?: Context;
  readonly #given: AgentOptions;

  constructor(options: AgentOptions<Context>) {
    // The compiler has checked that the parts accept the context. From here on it is a value of unknown type.
    super(withModels(options as AgentOptions), home);
    this.#given = options as AgentOptions;
  }

  /** Returns an agent with the same options except for `changes`. A function receives the options and returns the changes. */
  override with(changes: AgentChanges<Context>): Agent<Context> {
    const options = this.#given as AgentOptions<Context>;
    return new Agent<Context>({
      ...options,
      ...(typeof changes === "function" ? changes(options) : changes),
    });
  }

  /** Runs the agent on an input and resolves with the result, whatever its status. */
  override invoke(input: AgentInput, options?: InvokeOptions<never, Context>): Promise<RunResult>;
  override invoke<const Source extends Schema>(
    input: AgentInput,
    options: InvokeOptions<Source, Context> & { readonly output: Source },
  ): Promise<ValueResult<Infer<Source>>>;
  /** Accepts options with or without a schema. */
  override invoke<const Source extends Schema>(
    input: AgentInput,
    options?: InvokeOptions<Source, Context>,
  ): Promise<RunResult | ValueResult<Infer<Source>>>;
  /** With `onApproval: "return"`, also resolves when the run needs a person's answer. */
  override invoke<const Source extends Schema = never>(
    input: AgentInput,
    options: ReturnOnApproval<Source, Context>,
  ): Promise<AnswerOf<Source> | WaitingResult<AnswerOf<Source>>>;
  override async invoke(
    input: AgentInput,
    options: InvokeOptions<Schema, Context> | ReturnOnApproval<Schema, Context> = {},
  ): Promise<never> {
    const { options: bare, shape } = shaped(options);
    const result = await this.invokeOrReturn(input, bare);
    if (result.status !== "waiting") return (await shape(result)) as never;
    return { ...result, run: result.run.withResult(shape) } as never;
  }

  /** Starts a run and returns its handle without waiting for the result. The result has the type that `invoke` returns. */
  override submit(
    input: AgentInput,
    options?: SubmitRunOptions<never, Context>,
  ): Promise<RunHandle<RunResult>>;
  override submit<const Source extends Schema>(
    input: AgentInput,
    options: SubmitRunOptions<Source, Context> & { readonly output: Source },
  ): Promise<RunHandle<ValueResult<Infer<Source>>>>;
  override async submit(input: AgentInput, options: SubmitRunOptions<Schema, Context> = {}): Promise<never> {
    const { options: bare, shape } = shaped(options);
    return (await super.submit(input, bare)).withResult(shape) as never;
  }

  /**
   * Starts a child of a session and returns its run. Its request starts with what the session's last closed invocation
   * was sent, so that a provider that caches prompts bills only `prompt` in full.
   */
  override async spawnChild(options: ChildOfSession<Context>): Promise<RunHandle<RunResult>> {
    return (await super.spawnChild(options)).withResult(textual);
  }

  /**
   * Continues a session without a new message, for example after a run that ended with `max_turns` or was cancelled. The
   * run fails with `invalid_argument` if the session has no messages or ends with an answer.
   */
  override continue(sessionId: string, options?: ContinueOptions<never, Context>): Promise<RunResult>;
  override continue<const Source extends Schema>(
    sessionId: string,
    options: ContinueOptions<Source, Context> & { readonly output: Source },
  ): Promise<ValueResult<Infer<Source>>>;
  override continue(sessionId: string, options: ContinueOptions<Schema, Context> = {}): Promise<never> {
    return this.invoke({ continue: true }, { ...options, sessionId }) as Promise<never>;
  }

  override stream(input: AgentInput, options?: StreamOptions<never, Context>): AgentStream<RunResult>;
  override stream<const Source extends Schema>(
    input: AgentInput,
    options: StreamOptions<Source, Context> & { readonly output: Source },
  ): AgentStream<ValueResult<Infer<Source>>, Infer<Source>>;
  override stream<const Source extends Schema>(
    input: AgentInput,
    options?: StreamOptions<Source, Context>,
  ): AgentStream<RunResult | ValueResult<Infer<Source>>, Infer<Source>>;
  override stream(input: AgentInput, options: StreamOptions<Schema, Context> = {}): never {
    const { options: bare, shape } = shaped(options);
    return new AgentStream(this.streamParts(input, bare, shape)) as never;
  }

  /** Invokes the agent repeatedly until `until` or the judge accepts the answer. The output of each iteration is a text. */
  override runUntil(
    input: AgentInput,
    options: RunUntilOptions<Context> | JudgedLoopOptions<Context>,
  ): Promise<RunResult> {
    const asked = options as unknown as BareRunUntilOptions<JsonValue, never>;
    return super.runUntil(input, asked) as Promise<RunResult>;
  }

  override async resume(runId: string, options?: Pick<BareInvokeOptions, "runtime">): Promise<RunResult> {
    return textual(await super.resume(runId, options));
  }
}

function withModels(options: AgentOptions): BareAgentOptions {
  checkAgentOptions(options);
  const { model, models, ...rest } = options;
  const byRole = Object.entries(models ?? {}).map(([role, each]): [string, Model] => [role, toModel(each)]);
  return {
    ...rest,
    ...(model !== undefined && { model: toModel(model) }),
    ...(models !== undefined && { models: Object.fromEntries(byRole) }),
  };
}

/** Options with the schema of the output as a JSON Schema, and the function that gives a result its type. */
function shaped<Options extends { readonly output?: Schema | undefined }>(
  options: Options,
): {
  readonly options: Omit<Options, "output"> & { readonly output?: JsonSchema };
  readonly shape: (result: RunResult<JsonValue>) => RunResult | Promise<RunResult<unknown>>;
} {
  const { output, ...rest } = options;
  if (output === undefined) return { options: rest, shape: textual };
  const reader = outputReader(output);
  const shape = (result: RunResult<JsonValue>): Promise<RunResult<unknown>> => valued(result, reader);
  return { options: { ...rest, output: reader.jsonSchema }, shape };
}

function outputReader(schema: Schema): SchemaReader<unknown> {
  return new SchemaReader({ schemaName: "the schema of the output", refuse: refusedAnswer }, schema);
}

function refusedAnswer(problems: readonly string[]): Fault {
  return new Fault("model_format_error", `the answer does not match its schema: ${problems.join("; ")}`);
}

/**
 * Applies the checks that JSON Schema cannot express, after the answer was paid. A mismatch is a failed result, not an
 * exception.
 */
async function valued(
  result: RunResult<JsonValue>,
  reader: SchemaReader<unknown>,
): Promise<RunResult<unknown>> {
  if (result.status !== "completed") return textual(result);
  try {
    return changedResult(result, { output: await reader.parse(result.output) });
  } catch (error) {
    const fault = Fault.from(error);
    if (fault.code !== "model_format_error") throw error;
    const { message: interruptionReason } = fault;
    const failed = { status: "failed", interruptionReason, error: fault.toJSON() } as const;
    return changedResult(textual(result), failed);
  }
}

function textual(result: RunResult<JsonValue>): RunResult {
  const { output } = result;
  if (typeof output === "string") return result as RunResult;
  return changedResult(result, { output: jsonText(output) });
}
