import { AbortWatch } from "../agents/calling/abort-watch.ts";
import { cancelWithCaller } from "../agents/calling/cancel-with-caller.ts";
import { judgeOptions } from "../agents/calling/goal-judge.ts";
import {
  checkInvokeOptions,
  checkRuntimeChoice,
  checkSubmitOptions,
  type ChildOfSession,
  type ContinueOptions,
  type InvokeOptions,
  type ReturnOnApproval,
  type RuntimeChoice,
  type StreamOptions,
  type SubmitRunOptions,
} from "../agents/calling/invoke-options.ts";
import { answering, checkOnApproval, resultOf } from "../agents/calling/on-approval.ts";
import { runRequest } from "../agents/calling/run-request.ts";
import {
  readLoopOptions,
  runUntil,
  type JudgedLoopOptions,
  type RunUntilOptions,
} from "../agents/calling/run-until.ts";
import type { StartedRun } from "../agents/calling/stream/run-stream.ts";
import { checkAgentOptions, withDefaults, type AgentSettings } from "../agents/definition/agent-settings.ts";
import type { AgentDefinition } from "../agents/definition/agent-definition.ts";
import {
  architectureOf,
  callPathOf,
  extendedSettings,
  middlewareOf,
  modelsOf,
  refuseDuplicateTools,
  subAgentsOf,
} from "../agents/definition/agent-parts.ts";
import { agentPlan, type AgentPlan, type PlanParts } from "../agents/definition/agent-plan.ts";
import { readInput, type AgentInput } from "../agents/base/agent-input.ts";
import { InputValue } from "../agents/base/input-value.ts";
import { toolsIn, type ToolList } from "../agents/base/tool-list.ts";
import { ToolSpecs } from "../agents/base/tool-specs.ts";
import { extensionTools, withExtensionTools } from "../agents/interception/extensions/extended-parts.ts";
import { ExtensionHost } from "../agents/interception/extensions/extension-host.ts";
import type { Registrations } from "../agents/interception/extensions/registrations.ts";
import { MiddlewarePipeline } from "../agents/interception/middleware/pipeline.ts";
import { runTask } from "../agents/invocation/agent-task.ts";
import { agentTool, type AgentToolOptions } from "../agents/team/agent-tool.ts";
import { refuseDuplicateNamesBelow } from "../agents/team/duplicate-names.ts";
import { agentsBehind } from "../agents/team/handed-answers.ts";
import { checkReviewers } from "../agents/team/reviewers/reviewer.ts";
import { agentsOf, withHandoffs } from "../agents/team/sub-agents.ts";
import { toIsolation, toModel, tool, type IsolationOption, type ModelLike } from "../capabilities/index.ts";
import {
  Fault,
  flowControl,
  type FlowControl,
  formatAgentId,
  type AgentId,
  type AgentPhase,
  type AllowedChanges,
  type Architecture,
  type CallPath,
  type ChatMessage,
  type Command,
  type CommandResult,
  type ExecutionBudget,
  type OnBudget,
  type ExtensionPort,
  type HostedAgent,
  type InboxMode,
  type Infer,
  type Isolation,
  type JsonSchema,
  type JsonValue,
  type Model,
  type ModelTimeouts,
  type RetryChanges,
  type RunContext,
  type RunHandle,
  type RunResult,
  type Runtime,
  type Schema,
  type SessionNavigation,
  type SpawnBudget,
  type TaskInbox,
  type Tool,
  type UserMessage,
  type WaitingResult,
  type TopUp,
} from "../kernel/index.ts";
import { insideCall, isInsideTask, systemClock } from "../runtime/index.ts";
import { AgentStream } from "./agent-stream.ts";
import {
  inputReader,
  schemaProblems,
  shaped,
  textual,
  type AnswerOf,
  type ValueResult,
} from "./answer-shape.ts";
import { defaultRuntime } from "./open-runtime.ts";

/**
 * Options of an agent. `Context` is the type of the live value that tools, instructions, hooks and guardrails
 * receive. TypeScript infers it from the tools and the instructions that declare it.
 */
export interface AgentOptions<Context = unknown> extends Omit<
  AgentDefinition<Context>,
  "model" | "models" | "isolation"
> {
  /** The model: a model of an AI SDK provider, a name such as `"anthropic/claude-sonnet-5"`, or your own `Model`. */
  readonly model?: ModelLike;
  /** Models for specific roles. A role without an entry uses `model`. */
  readonly models?: Readonly<Record<string, ModelLike>>;
  /**
   * `"worktree"`, or `{ worktree: { copy: [".env"] } }`: each task of this agent works in its own git worktree,
   * which starts at the current commit of its caller. Its file tools, its shell and their sandbox work there, and
   * so do its sub-agents that have no isolation. If absent, the tools work in the folders for which they were made.
   */
  readonly isolation?: IsolationOption | Isolation;
}

/** Changes of an agent's options, or a function that calculates them from the current options. */
export type AgentChanges<Context = unknown> =
  | Partial<AgentOptions<Context>>
  // The type of a method, so that agents with different contexts stay assignable to each other.
  | { derive(options: AgentOptions<Context>): Partial<AgentOptions<Context>> }["derive"];

/**
 * An agent: its model, instructions and tools, its architecture, and its policy (budget, guardrails, permissions,
 * hooks, middleware). `invoke` and `stream` start a run. A worker that hosts the agent executes the same code for inbox
 * messages.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 *
 * const agent = new Agent({ name: "scout", model: "anthropic/claude-sonnet-5", budget: { maxCostUsd: 0.5 } });
 * const { status, output } = await agent.invoke("Which licence does this project use?");
 * ```
 */
export class Agent<Context = unknown> implements HostedAgent<Context> {
  declare readonly contextType?: Context;
  readonly id: AgentId;
  readonly name: string;
  readonly description: string;
  architecture: Architecture;
  models: Readonly<Record<string, Model>>;
  readonly subAgents: readonly HostedAgent[];
  readonly budget: Partial<ExecutionBudget>;
  readonly inbox: InboxMode;
  declare compactionBudget?: Partial<ExecutionBudget>;
  declare readonly onBudget?: OnBudget;
  declare readonly topUp?: Partial<TopUp>;
  declare readonly allowedChanges?: AllowedChanges;
  declare readonly ownInstructions?: string;
  declare readonly inputSchema?: JsonSchema;
  declare readonly readInput?: NonNullable<HostedAgent["readInput"]>;
  declare readonly spawnBudget?: Partial<SpawnBudget>;
  declare readonly modelTimeouts?: Partial<ModelTimeouts>;
  declare readonly retry?: RetryChanges;
  checksInput: boolean;
  declare readonly version?: string;
  readonly flowOf: FlowControl | undefined;
  declare callPath?: CallPath;
  declare readonly clearHistory?: NonNullable<HostedAgent["clearHistory"]>;
  readonly #options: AgentOptions;
  readonly #settings: AgentSettings;
  readonly #tools: ToolList;
  readonly #host: ExtensionHost | undefined;
  /** The tools that extensions have registered. */
  #extensionTools: readonly Tool[] = [];
  #plan: AgentPlan;
  /**
   * The agent that judges the answers of `runUntil`. It is created on first use, and only once, because its id is
   * registered.
   */
  #judge: Agent | undefined;

  constructor(options: AgentOptions<Context>) {
    // The compiler has checked that the parts accept the context. From here on it is a value of unknown type.
    this.#options = options as AgentOptions;
    checkAgentOptions(this.#options);
    const settings = withDefaults(withResolved(this.#options));
    this.#settings = settings;
    const { name, key, subAgents, history, extensions } = settings;
    this.#tools = withHandoffs(settings.tools, subAgents);
    this.id = formatAgentId({ name, ...(key !== undefined && { key }) });
    this.name = name;
    this.description = settings.description;
    this.architecture = architectureOf(settings);
    this.budget = settings.budget;
    this.inbox = settings.inbox;
    this.flowOf = flowControl(`agent ${name}`, name, settings);
    if (settings.onBudget !== undefined) this.onBudget = settings.onBudget;
    if (settings.topUp !== undefined) this.topUp = settings.topUp;
    if (settings.allowedChanges !== undefined) this.allowedChanges = settings.allowedChanges;
    if (typeof settings.instructions === "string") this.ownInstructions = settings.instructions;
    if (settings.input !== undefined) {
      const value = new InputValue(name, inputReader(name, settings.input));
      this.inputSchema = value.schema;
      // A parent agent gives its children texts.
      this.readInput = (input, from) => (from === "parent" ? input : value.accept(input));
    }
    if (settings.spawnBudget !== undefined) this.spawnBudget = settings.spawnBudget;
    if (settings.modelTimeouts !== undefined) this.modelTimeouts = settings.modelTimeouts;
    if (settings.retry !== undefined) this.retry = settings.retry;
    if (settings.version !== undefined) this.version = settings.version;
    if (history !== null) this.clearHistory = (runId) => history.clearRun(runId);
    const tools = toolsIn(this.#tools);
    const toolSpecs = new ToolSpecs(tools);
    this.subAgents = subAgentsOf(this.architecture, [...agentsOf(subAgents), ...agentsBehind(tools)]);
    if (this.subAgents.length > 0) refuseDuplicateNamesBelow(this);
    this.models = modelsOf(this.architecture, settings);
    refuseDuplicateTools(name, tools);
    // Extensions register tools later, and a function may return others.
    const isFixed = typeof this.#tools !== "function" && extensions.length === 0;
    checkReviewers(name, settings.reviewers, isFixed ? tools : undefined);
    const extend = (registered: Registrations): void => this.#extend(registered);
    this.#host = extensions.length === 0 ? undefined : new ExtensionHost(extensions, () => this, extend);
    this.checksInput = refusesInput(settings);
    const pipeline = new MiddlewarePipeline(middlewareOf(settings, systemClock));
    this.#plan = this.#compose(settings, { pipeline, toolSpecs });
  }

  /** Builds the call path and the plan from the settings, and again when extensions have changed the settings (F1). */
  #compose(
    settings: AgentSettings,
    { pipeline, toolSpecs }: Pick<PlanParts, "pipeline" | "toolSpecs">,
  ): AgentPlan {
    const { architecture } = this;
    const extensions = this.#host;
    const callPath = callPathOf(pipeline, settings, extensions);
    if (callPath !== undefined) this.callPath = callPath;
    const plan = agentPlan(settings, {
      agent: this,
      architecture,
      pipeline,
      toolSpecs,
      extensions,
      check: schemaProblems,
      clientTool: (spec) => tool({ ...spec, clientSide: true }),
    });
    if (plan.compaction !== null) this.compactionBudget = plan.compaction.budget;
    return plan;
  }

  /**
   * Adds the tools, hooks and other parts that the extensions have registered. Called once, before the first
   * invocation.
   */
  #extend(registered: Registrations): void {
    if (this.#settings.memory !== null) registered.dropMemory();
    const settings = extendedSettings(this.#settings, registered);
    this.checksInput = refusesInput(settings);
    this.#extensionTools = extensionTools(registered);
    this.architecture = architectureOf(settings, registered.all("architecture"));
    this.models = {
      ...Object.fromEntries(registered.all("model")),
      ...modelsOf(this.architecture, settings),
    };
    this.#plan = this.#compose(settings, this.#plan);
  }

  /** The current tools. The list may change between the calls of a turn. */
  get tools(): readonly Tool[] {
    const own = toolsIn(this.#tools);
    return this.#extensionTools.length === 0 ? own : withExtensionTools(own, this.#extensionTools);
  }

  /** Returns an agent with the same options except for `changes`. A function receives the options and returns the changes. */
  with(changes: AgentChanges<Context>): Agent<Context> {
    const options = this.#options as AgentOptions<Context>;
    return new Agent<Context>({
      ...options,
      ...(typeof changes === "function" ? changes(options) : changes),
    });
  }

  /**
   * Returns a tool whose calls run this agent as a child task of the calling agent: the child needs a seat, its
   * costs are charged to the caller's budget, and after a crash it continues at the same place. The model writes
   * the task. When another agent is created with this tool, this agent is registered with it.
   */
  asTool(options: AgentToolOptions = {}): Tool {
    return agentTool(this, options);
  }

  messageOf(input: JsonValue): UserMessage | undefined {
    return readInput(input)?.message;
  }

  historyOf(input: JsonValue): readonly ChatMessage[] | undefined {
    return readInput(input)?.earlier;
  }

  run(ctx: RunContext, inbox: TaskInbox): Promise<JsonValue> {
    if (inbox === undefined)
      throw new Fault(
        "invalid_argument",
        `invalid call of run() of agent ${this.name}: only a runtime calls run(); use invoke(input) or stream(input)`,
      );
    const run = (): Promise<JsonValue> => runTask(this.#plan, ctx, inbox);
    return this.#host === undefined ? run() : this.#host.open(ctx).then(run);
  }

  /** Asks the agent's extensions whether a session of the agent may be switched, forked or moved to another entry. */
  async beforeNavigation(navigation: SessionNavigation, port: ExtensionPort): Promise<string | undefined> {
    return this.#host?.refusal(navigation, port);
  }

  /** Runs the agent on an input and resolves with the result, regardless of its status. */
  invoke(input: AgentInput, options?: InvokeOptions<never, Context>): Promise<RunResult>;
  invoke<const Source extends Schema>(
    input: AgentInput,
    options: InvokeOptions<Source, Context> & { readonly output: Source },
  ): Promise<ValueResult<Infer<Source>>>;
  /** Accepts options with or without a schema. */
  invoke<const Source extends Schema>(
    input: AgentInput,
    options?: InvokeOptions<Source, Context>,
  ): Promise<RunResult | ValueResult<Infer<Source>>>;
  /** With `onApproval: "return"`, also resolves when the run needs a person's answer. */
  invoke<const Source extends Schema = never>(
    input: AgentInput,
    options: ReturnOnApproval<Source, Context>,
  ): Promise<AnswerOf<Source> | WaitingResult<AnswerOf<Source>>>;
  invoke(
    input: AgentInput,
    options: InvokeOptions<Schema, Context> | ReturnOnApproval<Schema, Context> = {},
  ): Promise<unknown> {
    return insideCall(() => this.#invoke(input, options));
  }

  async #invoke(
    input: AgentInput,
    options: InvokeOptions<Schema, Context> | ReturnOnApproval<Schema, Context>,
  ): Promise<unknown> {
    checkInvokeOptions(this.name, options);
    const { signal, onApproval = "wait", ...rest } = options;
    checkOnApproval("invoke()", onApproval, ["wait", "return", "a function"]);
    const { request, shape } = shaped(rest);
    const watch = signal && new AbortWatch(signal);
    watch?.assertNotAborted();
    const run = await this.#start(input, request);
    watch?.start(run);
    const end = cancelWithCaller(run, () => resultOf(run, onApproval));
    const result = await (watch === undefined ? end : watch.untilEnd(end));
    return result.status === "waiting" ? { ...result, run: result.run.withResult(shape) } : shape(result);
  }

  /**
   * Starts a run and returns its handle without waiting for the result. The result has the same type as for
   * `invoke`.
   */
  submit(input: AgentInput, options?: SubmitRunOptions<never, Context>): Promise<RunHandle<RunResult>>;
  submit<const Source extends Schema>(
    input: AgentInput,
    options: SubmitRunOptions<Source, Context> & { readonly output: Source },
  ): Promise<RunHandle<ValueResult<Infer<Source>>>>;
  async submit(input: AgentInput, options: SubmitRunOptions<Schema, Context> = {}): Promise<unknown> {
    checkSubmitOptions(this.name, options);
    const { request, shape } = shaped(options);
    return (await this.#start(input, request)).withResult(shape);
  }

  /**
   * Continues a session without a new message, for example after a run that ended with `max_turns` or was cancelled. The
   * run fails with `invalid_argument` if the session has no messages or ends with an answer.
   */
  continue(sessionId: string, options?: ContinueOptions<never, Context>): Promise<RunResult>;
  continue<const Source extends Schema>(
    sessionId: string,
    options: ContinueOptions<Source, Context> & { readonly output: Source },
  ): Promise<ValueResult<Infer<Source>>>;
  continue(sessionId: string, options: ContinueOptions<Schema, Context> = {}): Promise<unknown> {
    return this.invoke({ continue: true }, { ...options, sessionId });
  }

  /** Like `invoke`, but returns the events and text deltas while the run proceeds. */
  stream(input: AgentInput, options?: StreamOptions<never, Context>): AgentStream<RunResult>;
  stream<const Source extends Schema>(
    input: AgentInput,
    options: StreamOptions<Source, Context> & { readonly output: Source },
  ): AgentStream<ValueResult<Infer<Source>>, Infer<Source>>;
  stream<const Source extends Schema>(
    input: AgentInput,
    options?: StreamOptions<Source, Context>,
  ): AgentStream<RunResult | ValueResult<Infer<Source>>, Infer<Source>>;
  stream(input: AgentInput, options: StreamOptions<Schema, Context> = {}): unknown {
    const { cancelOnBreak = false, ...invokeOptions } = options;
    checkInvokeOptions(this.name, invokeOptions);
    const { signal, onApproval = "wait", ...rest } = invokeOptions;
    checkOnApproval("stream()", onApproval, ["wait", "a function"]);
    const { request, shape } = shaped(rest);
    const start = async (): Promise<StartedRun> => {
      const run = await this.#start(input, { ...request, streaming: true });
      return { run, result: onApproval === "wait" ? () => run.result() : answering(run, onApproval) };
    };
    return new AgentStream({
      start,
      shape,
      cancelOnBreak,
      output: request.output,
      signal,
      insideCall,
      isInsideTask,
    });
  }

  /**
   * Invokes the agent repeatedly in one session until the function `until` or the judge accepts the answer. The output of
   * each iteration is a text.
   */
  async runUntil(
    input: AgentInput,
    options: RunUntilOptions<Context> | JudgedLoopOptions<Context>,
  ): Promise<RunResult> {
    const loop = readLoopOptions(options);
    // An agent without a model for the judge is refused before an iteration is paid.
    if (options.judge !== undefined) this.#judgeAgent();
    const { clock } = options.runtime ?? (await defaultRuntime());
    const deadlineMs = this.budget.deadlineMs ?? null;
    const calls = {
      invoke: (next: AgentInput, each: InvokeOptions) => (this as Agent).invoke(next, each),
      judge: (prompt: string, each: InvokeOptions) => this.#judgeAgent().invoke(prompt, each),
    };
    return insideCall(() => runUntil({ ...calls, clock, deadlineMs }, input, loop));
  }

  #judgeAgent(): Agent {
    return (this.#judge ??= new Agent(judgeOptions(this, this.#settings)));
  }

  /** Resumes a run that ended on a fault, was paused, or was left unfinished by a crashed process. */
  async resume(runId: string, options: RuntimeChoice = {}): Promise<RunResult> {
    checkRuntimeChoice("resume()", options);
    const run = await findRunOf(this, runId, options.runtime);
    await run.resume();
    return textual(await run.result());
  }

  /** Sends a signal to a run. The run may wait for the signal already, or only later. */
  async signal(runId: string, name: string, value?: JsonValue, options: RuntimeChoice = {}): Promise<void> {
    checkRuntimeChoice("signal()", options);
    const run = await findRunOf(this, runId, options.runtime);
    await run.signal(name, value);
  }

  /** Returns the commands that the agent's extensions have registered. Runs their `setup` if it has not run yet. */
  async commands(options: RuntimeChoice = {}): Promise<readonly Command[]> {
    checkRuntimeChoice("commands()", options);
    const { clock } = options.runtime ?? (await defaultRuntime());
    return (await this.#host?.commands(clock)) ?? [];
  }

  /**
   * Runs a command of the agent's extensions in a session, with the text that a person typed after its name. Returns the
   * session in which to continue. Rejects with the error of the command.
   */
  async runCommand(
    name: string,
    args: string,
    options: RuntimeChoice & { readonly sessionId: string },
  ): Promise<CommandResult> {
    const { sessionId, ...choice } = options;
    checkRuntimeChoice("runCommand()", choice);
    const runtime = choice.runtime ?? (await defaultRuntime());
    const port = runtime.extensionPort(sessionId);
    if (this.#host !== undefined) return this.#host.runCommand(name, args, port);
    throw new Fault("not_found", `agent ${this.name} has no command ${name}: it has no extensions`);
  }

  /**
   * Returns what this agent is doing in a session, regardless of the process that executes it (rule S5). `idle` for
   * an unknown session.
   */
  async phase(sessionId: string, options: RuntimeChoice = {}): Promise<AgentPhase> {
    checkRuntimeChoice("phase()", options);
    const runtime = options.runtime ?? (await defaultRuntime());
    return runtime.sessions.phase(sessionId, this.id);
  }

  /**
   * Starts a child of a session and returns its run. Its request starts with the same content as the session's last
   * closed invocation, so that a provider that caches prompts charges the full price only for `prompt`. The child
   * may call the tools that `tools` names. It writes nothing to the session and does not make the session busy
   * (`Runtime.spawnChild`).
   */
  async spawnChild(options: ChildOfSession<Context>): Promise<RunHandle<RunResult>> {
    const { runtime, ...child } = { ...options };
    return (await (runtime ?? (await defaultRuntime())).spawnChild(this, child)).withResult(textual);
  }

  /** Starts a run with checked options. */
  async #start(input: AgentInput, options: SubmitRunOptions<JsonSchema>): Promise<RunHandle> {
    const { runtime, ...requested } = options;
    const target = runtime ?? (await defaultRuntime());
    const request = await runRequest(this, schemaProblems, input, requested);
    return target.submit<unknown>(this, request.input, request.options);
  }
}

/** Method names from other libraries, each with the method to call instead. They are not part of the type. */
const foreignMethods = {
  generate: "invoke(input)",
  generateText: "invoke(input)",
  streamText: "stream(input)",
  chat: "invoke(input, { sessionId })",
  call: "invoke(input)",
  execute: "invoke(input)",
  ask: "invoke(input)",
  start: "submit(input)",
} as const;

for (const [method, use] of Object.entries(foreignMethods))
  Object.defineProperty(Agent.prototype, method, {
    value(this: Agent): never {
      throw new Fault("unsupported", `agent ${this.name} has no method ${method}(); use agent.${use}`);
    },
  });

/** Whether a guardrail may refuse the input of the agent. */
function refusesInput({ guardrails }: AgentSettings): boolean {
  return guardrails.some((each) => each.onInput !== undefined);
}

/** Replaces options that were given by name by their values. */
function withResolved(options: AgentOptions): AgentDefinition {
  const { model, models, isolation, ...rest } = options;
  const byRole = Object.entries(models ?? {}).map(([role, each]): [string, Model] => [role, toModel(each)]);
  return {
    ...rest,
    ...(model !== undefined && { model: toModel(model) }),
    ...(models !== undefined && { models: Object.fromEntries(byRole) }),
    ...(isolation !== undefined &&
      isolation !== null && { isolation: toIsolation(isolation, `agent ${options.name}`) }),
  };
}

/**
 * Returns a run of the agent. Also registers the agent, because otherwise this process could never finish the run.
 * Throws `not_found`, and `invalid_argument` for a run of another agent.
 */
async function findRunOf(agent: HostedAgent, runId: string, chosen: Runtime | undefined): Promise<RunHandle> {
  const runtime = chosen ?? (await defaultRuntime());
  const run = await runtime.find(runId);
  if (run === undefined)
    throw new Fault(
      "not_found",
      `run ${runId} not found in this runtime's store${chosen === undefined ? ", which is in memory: pass the runtime on which the run was started, as { runtime }" : ""}`,
    );
  if (run.agentId !== agent.id)
    throw new Fault(
      "invalid_argument",
      `${runId} is a run of agent ${run.agentId}, not of ${agent.id}; call the method on that agent`,
    );
  runtime.register(agent);
  return run;
}
