import { SchemaReader } from "../capabilities/index.ts";
import { cancelWithCaller } from "../agents/calling/cancel-with-caller.ts";
import { checkAgent } from "../agents/base/part-check.ts";
import {
  checkList,
  collectKinds,
  describeValue,
  executionBudget,
  Fault,
  flowControl,
  flowKinds,
  formatAgentId,
  is,
  optionTable,
  readTopUp,
  rootTaskId,
  startKinds,
  workflowOutput,
  type AgentId,
  type BatchOptions,
  type JoinedStartOptions,
  type ExecutionBudget,
  type OnBudget,
  type FlowControl,
  type FlowOptions,
  type GivenAsJson,
  type HostedAgent,
  type HostedWorkflow,
  type Infer,
  type InferInput,
  type JsonSchema,
  type JsonValue,
  type MaybePromise,
  type OptionKinds,
  type RunContext,
  type Runtime,
  type Schema,
  type Serializable,
  type Signal,
  type SpawnBudget,
  type StartOptions,
  type TaskInbox,
  type Tool,
  type TopUp,
  type Update,
  type WorkflowContext,
} from "../kernel/index.ts";
import { insideCall } from "../runtime/index.ts";
import { defaultRuntime } from "./open-runtime.ts";
import { WorkflowScope } from "./workflow-context.ts";
import { checkMessages } from "./workflow-messages.ts";
import { workflowTool, type WorkflowToolOptions } from "./workflow-tool.ts";

/** Options of `workflow()`. */
export interface WorkflowOptions<Input extends Schema = never, Output extends Schema = never>
  extends FlowOptions<InputOf<Input>>, JoinedStartOptions<InputOf<Input>> {
  /**
   * Schema of the input: any Standard Schema that can describe itself as JSON Schema (zod), or a plain JSON Schema
   * written `as const`. It is applied once, before the run is created; the run stores the converted input. If
   * absent, every JSON value is accepted.
   */
  readonly input?: Input;
  /** Schema of the output. It is applied to the return value of the function. If absent, the output is not checked. */
  readonly output?: Output;
  /** Description of the workflow, for people and for models that call it as a tool. */
  readonly description?: string;
  /** Version of the function (J9). Change it when the order or the meaning of steps changes. */
  readonly version?: string;
  /**
   * How this version treats a run that another version has started (J9): it continues the run (`resume`), leaves it
   * to a worker with the run's version (`pin`), or fails it (`refuse`). Default: `versionPolicy` of the runtime.
   */
  readonly versionPolicy?: "resume" | "pin" | "refuse";
  /** Agents and workflows that the function calls. They are registered together with the workflow. */
  readonly agents?: readonly HostedAgent[];
  /**
   * Signals for which the function waits. The page offers a form for each of them, made from its schema, and
   * servers describe them. The function may also wait for other signals. Default: none.
   */
  readonly signals?: readonly Signal<never, unknown>[];
  /** Updates that the function handles. They are shown in the same way as `signals`. Default: none. */
  readonly updates?: readonly Update<never, unknown, never, unknown>[];
  /** Budget of each run, including its agents. If absent, a run has no limit. */
  readonly budget?: Partial<ExecutionBudget>;
  /**
   * Amounts that compensations may spend in addition to the rest of the budget, for example on agents. If absent,
   * they may spend only the rest.
   */
  readonly compensationBudget?: Partial<Omit<TopUp, "deadlineMs">>;
  /** Spawn budget of each run. */
  readonly spawnBudget?: Partial<SpawnBudget>;
  /**
   * What happens if a call of a run exceeds `budget` (B5): it fails (`end`), or a person is asked for a top-up
   * while the calling task is paused (`ask`). Default: `end`.
   */
  readonly onBudget?: OnBudget;
  /** Maximum amounts that limited top-ups may add to a run in total (B8). If absent, they may add nothing. */
  readonly topUp?: Partial<TopUp>;
}

/** The data types of the options of `workflow()`. */
export const workflowKinds = {
  input: is.any,
  output: is.any,
  description: is.text(),
  version: is.text(),
  versionPolicy: is.choice(["resume", "pin", "refuse"]),
  agents: is.any,
  signals: is.any,
  updates: is.any,
  budget: is.checkedBy(executionBudget),
  compensationBudget: is.any,
  spawnBudget: is.any,
  onBudget: is.choice(["ask", "end"]),
  topUp: is.any,
  ...flowKinds,
  ...collectKinds,
} satisfies OptionKinds<WorkflowOptions>;

const workflowTable = optionTable(workflowKinds);

/** Options of `Workflow.run`. */
export interface RunWorkflowOptions<Context = unknown> extends StartOptions<Context> {
  /** The runtime on which the run starts. Default: a runtime in this process that stores everything in memory. */
  readonly runtime?: Runtime;
}

const runTable = optionTable({ ...startKinds, runtime: is.any } satisfies OptionKinds<RunWorkflowOptions>);

/** The code of a workflow. */
type WorkflowFunction<Input, Output, Context> = (
  ctx: WorkflowContext<Context>,
  input: Input,
) => Promise<Output>;

/** A durable function. Create it with `workflow()`. */
export class Workflow<Input = JsonValue, Output = unknown, Context = unknown> implements HostedWorkflow<
  Input,
  Output,
  Context
> {
  declare readonly contextType?: Context;
  declare readonly types?: { readonly input: (input: Input) => void; readonly output: Output };
  readonly runKind = "workflow";
  readonly id: AgentId;
  readonly name: string;
  declare readonly description?: string;
  declare readonly version?: string;
  declare readonly versionPolicy?: "resume" | "pin" | "refuse";
  declare readonly budget?: Partial<ExecutionBudget>;
  declare readonly compensationBudget?: Partial<Omit<TopUp, "deadlineMs">>;
  declare readonly spawnBudget?: Partial<SpawnBudget>;
  declare readonly onBudget?: OnBudget;
  declare readonly topUp?: Partial<TopUp>;
  readonly flowOf: FlowControl | undefined;
  readonly subAgents: readonly HostedAgent[];
  readonly signals: readonly Signal<never, unknown>[];
  readonly updates: readonly Pick<Update, "name" | "schema">[];
  readonly #input: SchemaReader<JsonValue> | undefined;
  readonly #output: SchemaReader<JsonValue> | undefined;
  readonly #isBatch: boolean;
  readonly #code: WorkflowFunction<never, unknown, never>;

  /** Use `workflow()`, which infers the types. */
  constructor(
    name: string,
    options: WorkflowOptions<Schema, Schema>,
    code: WorkflowFunction<never, unknown, never>,
  ) {
    this.id = formatAgentId({ name });
    this.name = name;
    const read = workflowTable.read(`workflow ${name}`, options);
    if (typeof code !== "function")
      throw new Fault(
        "invalid_argument",
        `invalid function of workflow ${name}: expected a function, not ${describeValue(code)}; use workflow("${name}", { input, output }, async (ctx, input) => ...)`,
      );
    this.#code = code;
    this.#input = readerOf(name, "input", options.input);
    this.#output = readerOf(name, "output", options.output);
    const {
      description,
      version,
      versionPolicy,
      agents = [],
      signals = [],
      updates = [],
      budget,
      compensationBudget,
      spawnBudget,
      onBudget,
      topUp,
    } = options;
    checkList(`agents of workflow ${name}`, agents, "use agents: [agent]");
    for (const agent of agents) checkAgent(`entry of agents of workflow ${name}`, agent);
    this.subAgents = agents;
    checkMessages(`workflow ${name}`, "signal", signals);
    checkMessages(`workflow ${name}`, "update", updates);
    this.signals = signals;
    this.updates = updates;
    this.flowOf = flowControl(`workflow ${name}`, name, options);
    this.#isBatch = options.batch !== undefined;
    if (description !== undefined) this.description = description;
    if (version !== undefined) this.version = version;
    if (versionPolicy !== undefined) this.versionPolicy = versionPolicy;
    if (budget !== undefined) this.budget = read.budget as Partial<ExecutionBudget>;
    if (compensationBudget !== undefined) {
      checkBudgetOfCompensations(name, compensationBudget);
      this.compensationBudget = compensationBudget;
    }
    if (spawnBudget !== undefined) this.spawnBudget = spawnBudget;
    if (onBudget !== undefined) this.onBudget = onBudget;
    if (topUp !== undefined) this.topUp = topUp;
  }

  /** The schema of the input as JSON Schema. `undefined` if every JSON value is accepted. */
  get inputSchema(): JsonSchema | undefined {
    return this.#input?.jsonSchema;
  }

  readInput(input: JsonValue): MaybePromise<JsonValue> {
    return this.#input === undefined ? input : this.#input.parse(input);
  }

  /** Executes a run. Only a worker calls it. */
  run(ctx: RunContext, inbox: TaskInbox): Promise<JsonValue>;
  /**
   * Starts a run and returns its output. If the run does not complete, throws the error that ended it. To get the
   * run instead of its output, use `runtime.start`.
   */
  run(input: Input, options?: RunWorkflowOptions<Context>): Promise<Output>;
  run(first: RunContext | Input, second?: TaskInbox | RunWorkflowOptions<Context>): Promise<unknown> {
    // An input is JSON, so it has no methods.
    return isRunContext(first)
      ? this.#execute(first, second as TaskInbox)
      : this.#call(first, (second ?? {}) as RunWorkflowOptions<Context>);
  }

  /**
   * Returns a tool with which an agent calls the workflow. A call is a child task of the agent's run: it needs a
   * seat, and its costs are charged to the budget of the run. The schema of the input must describe an object.
   */
  asTool(options: WorkflowToolOptions = {}): Tool {
    return workflowTool(this, options);
  }

  async #call(input: Input, options: RunWorkflowOptions<Context>): Promise<Output> {
    runTable.read(`run() of workflow ${this.name}`, options);
    const { runtime, ...starting } = options;
    return insideCall(async () => {
      const run = await (runtime ?? (await defaultRuntime())).start(this, input, starting);
      return workflowOutput(`workflow ${this.name}`, await cancelWithCaller(run, () => run.result()));
    });
  }

  async #execute(ctx: RunContext, { messages }: TaskInbox): Promise<JsonValue> {
    if (messages.length > 0)
      throw new Fault(
        "invalid_argument",
        `workflow ${this.name} takes no messages; start it with runtime.start(), or send the message to an agent`,
      );
    const scope = new WorkflowScope<never>(ctx, this.#isBatch ? undefined : (input) => this.readInput(input));
    // A child task is one start. The run of a batch has collected a list.
    const input = this.#isBatch && ctx.taskId !== rootTaskId ? [ctx.input] : ctx.input;
    const returned = await scope.run("the function", (own) => this.#code(own, input as never));
    const output = (returned ?? null) as JsonValue;
    return this.#output === undefined ? output : this.#output.parse(output);
  }
}

/**
 * Declares a durable function: after a crash another worker continues it, without repeating steps whose results
 * were recorded.
 *
 * @example
 * ```ts
 * import { openRuntime } from "reeve";
 * import { workflow } from "reeve/workflow";
 * import { z } from "zod";
 *
 * declare function charge(cents: number, options: { key: string }): Promise<string>;
 *
 * const order = workflow(
 *   "order",
 *   { input: z.object({ cents: z.number() }), output: z.object({ receipt: z.string() }) },
 *   async (ctx, { cents }) => {
 *     const receipt = await ctx.step("charge", ({ idempotencyKey }) => charge(cents, { key: idempotencyKey }));
 *     return { receipt };
 *   },
 * );
 *
 * const runtime = await openRuntime({ store: "sqlite:./reeve.db" });
 * const run = await runtime.start(order, { cents: 900 }, { runId: "run_order-7" });
 * const { status, output } = await run.result();
 * ```
 */
export function workflow<Output, Context = unknown>(
  name: string,
  code: (ctx: WorkflowContext<Context>, input: JsonValue) => Promise<Output & Serializable<Output>>,
): Workflow<JsonValue, Output, Context>;
/** With `batch`, the function receives the inputs of several starts. */
export function workflow<const Out extends Schema, const In extends Schema = never, Context = unknown>(
  name: string,
  options: WorkflowOptions<In, Out> & { readonly output: Out; readonly batch: BatchOptions<InputOf<In>> },
  code: (
    ctx: Omit<WorkflowContext<Context>, "continueAsNew">,
    inputs: readonly InputOf<In>[],
  ) => Promise<GivenAsJson<InferInput<Out>, Infer<Out>>>,
): Workflow<GivenOf<In>, Infer<Out>, Context>;
/** With `batch` and without a schema of the output, the function returns any JSON value. */
export function workflow<const In extends Schema = never, Output = unknown, Context = unknown>(
  name: string,
  options: WorkflowOptions<In> & { readonly batch: BatchOptions<InputOf<In>> },
  code: (
    ctx: Omit<WorkflowContext<Context>, "continueAsNew">,
    inputs: readonly InputOf<In>[],
  ) => Promise<Output & Serializable<Output>>,
): Workflow<GivenOf<In>, Output, Context>;
/** With a schema of the output, the function must return a value that the schema accepts. */
export function workflow<const Out extends Schema, const In extends Schema = never, Context = unknown>(
  name: string,
  options: WorkflowOptions<In, Out> & { readonly output: Out },
  code: (
    ctx: WorkflowContext<Context, GivenOf<In>>,
    input: InputOf<In>,
  ) => Promise<GivenAsJson<InferInput<Out>, Infer<Out>>>,
): Workflow<GivenOf<In>, Infer<Out>, Context>;
/** Without a schema of the output, the function returns any JSON value. */
export function workflow<const In extends Schema = never, Output = unknown, Context = unknown>(
  name: string,
  options: WorkflowOptions<In>,
  code: (
    ctx: WorkflowContext<Context, GivenOf<In>>,
    input: InputOf<In>,
  ) => Promise<Output & Serializable<Output>>,
): Workflow<GivenOf<In>, Output, Context>;
export function workflow(
  name: string,
  options: WorkflowOptions<Schema, Schema> | WorkflowFunction<never, unknown, never>,
  code?: WorkflowFunction<never, unknown, never>,
): unknown {
  // A missing function is named, and not the missing options.
  if (options === undefined && code === undefined) return new Workflow(name, {}, code as never);
  return typeof options === "function"
    ? new Workflow(name, {}, options)
    : new Workflow(name, options, code as WorkflowFunction<never, unknown, never>);
}

/** What the function receives. */
type InputOf<In extends Schema> = [In] extends [never] ? JsonValue : Infer<In>;
/** What a caller passes. */
type GivenOf<In extends Schema> = [In] extends [never] ? JsonValue : InferInput<In>;

function readerOf(
  name: string,
  part: "input" | "output",
  schema: Schema | undefined,
): SchemaReader<JsonValue> | undefined {
  if (schema === undefined) return undefined;
  const schemaName = `the ${part} schema of workflow ${name}`;
  const refuse = (problems: readonly string[]): Fault =>
    new Fault("invalid_argument", `invalid ${part} of workflow ${name}: ${problems.join("; ")}`, {
      details: { workflow: name, problems },
    });
  return new SchemaReader({ schemaName, refuse }, schema);
}

/**
 * Throws for a budget that a ledger would refuse, and for a time limit, because `timeoutMs` already limits each
 * compensation.
 */
function checkBudgetOfCompensations(name: string, budget: Partial<TopUp>): void {
  const owner = `compensationBudget of workflow ${name}`;
  const { deadlineMs } = readTopUp(budget, owner);
  if (deadlineMs > 0)
    throw new Fault(
      "invalid_argument",
      `invalid deadlineMs of ${owner}: each compensation has its own time limit; use ctx.compensate(name, undo, { timeoutMs })`,
    );
}

function isRunContext(value: unknown): value is RunContext {
  return (
    typeof value === "object" &&
    value !== null &&
    "taskId" in value &&
    "step" in value &&
    typeof value.step === "function"
  );
}
