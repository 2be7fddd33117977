import { AbortWatch } from "./abort-watch.ts";
import {
  checkInvokeOptions,
  checkRuntimeChoice,
  checkSubmitOptions,
  type AgentSubmitOptions,
  type InvokeOptions,
  type ReturnOnApproval,
  type RuntimeChoice,
} from "./invoke-options.ts";
import {
  type AgentId,
  type AgentPhase,
  type Architecture,
  type CallPath,
  type ChatMessage,
  type Clock,
  type Command,
  type CommandResult,
  type ExecutionBudget,
  type ExtensionPort,
  Fault,
  type HostedAgent,
  type InboxMode,
  type JsonValue,
  type Model,
  type ModelTimeouts,
  type RetryChanges,
  type RunContext,
  type RunHandle,
  type RunResult,
  type Runtime,
  type SessionNavigation,
  type SpawnBudget,
  type SpawnChildOptions,
  type TaskInbox,
  type Tool,
  type UserMessage,
  type WaitingResult,
  formatAgentId,
} from "../../kernel/index.ts";
import { cancelWithCaller } from "./cancel-with-caller.ts";
import { checkAgentLimits, checkAgentOptions } from "../definition/agent-check.ts";
import type { AgentOptions } from "../definition/agent-options.ts";
import {
  architectureOf,
  callPathOf,
  middlewareOf,
  modelsOf,
  refuseDuplicateTools,
  subAgentsOf,
} from "../definition/agent-parts.ts";
import { checkReviewers } from "../team/reviewers/reviewer.ts";
import { invocationPlan, turnLimits, type PlanParts } from "../definition/agent-plan.ts";
import { readInput, type AgentInput } from "../base/agent-input.ts";
import { runTask } from "../invocation/agent-task.ts";
import { runRequest } from "./run-request.ts";
import { AgentStream, type AgentStreamParts, type StartedRun } from "./stream/agent-stream.ts";
import type { SchemaCheck } from "../base/answer-format.ts";
import type { InvocationPlan } from "../invocation/invocation-plan.ts";
import { MiddlewarePipeline } from "../interception/middleware/pipeline.ts";
import { answering, checkOnApproval, resultOf } from "./on-approval.ts";
import { refuseDuplicateNamesBelow } from "../team/duplicate-names.ts";
import { judgeOptions } from "./goal-judge.ts";
import { checkRunUntilOptions, runUntil, type JudgedLoopOptions, type RunUntilOptions } from "./run-until.ts";
import { agentTool, type AgentToolOptions } from "../team/agent-tool.ts";
import { agentsBehind } from "../team/handed-answers.ts";
import { agentsOf, withHandoffs } from "../team/sub-agents.ts";
import { extensionTools, withExtensionTools } from "../interception/extensions/extended-parts.ts";
import { extendedOptions } from "../definition/extended-options.ts";
import { ExtensionHost } from "../interception/extensions/extension-host.ts";
import type { Registrations } from "../interception/extensions/registrations.ts";
import { toolsIn, type ToolList } from "../base/tool-list.ts";
import { ToolSpecs } from "../base/tool-specs.ts";

/**
 * Returns a run of the agent and registers the agent, because a worker without it would never finish the run. Throws
 * `not_found`, and `invalid_argument` for a run of another agent. `isDefault` tells whether the caller named no runtime.
 */
async function findRunOf(
  agent: HostedAgent,
  runId: string,
  runtime: Runtime,
  isDefault: boolean,
): Promise<RunHandle> {
  const run = await runtime.find(runId);
  if (run === undefined)
    throw new Fault(
      "not_found",
      `run ${runId} not found in this runtime's store${isDefault ? ", which is in memory: pass the runtime on which the run was started, as { runtime }" : ""}`,
    );
  if (run.agentId !== agent.id)
    throw new Fault(
      "invalid_argument",
      `${runId} is a run of agent ${run.agentId}, not of ${agent.id}; call the method on that agent`,
    );
  runtime.register(agent);
  return run;
}

/** The parts that the package injects, because the agents layer knows no runtime. */
export interface AgentHome {
  readonly runtime: () => Promise<Runtime>;
  /** Clock of the durations that `AgentOptions.telemetry` receives. */
  readonly clock: Clock;
  readonly check: SchemaCheck;
}

export interface StreamOptions<Context = unknown> extends InvokeOptions<Context> {
  /** C3: whether leaving the loop cancels the run. Default: `false`, the run continues. */
  readonly cancelOnBreak?: boolean;
}

/** Options of `spawnChild`. */
export type ChildOfSession<Context = unknown> = SpawnChildOptions<Context> & RuntimeChoice;

/** Options of `continue`. */
export type ContinueOptions<Context = unknown> = Omit<InvokeOptions<Context>, "sessionId">;

/**
 * An agent: its model, instructions and tools, its architecture, and its policy (budget, guardrails, permissions,
 * hooks, middleware). `invoke` and `stream` start a run. A worker that hosts the agent executes the same code for inbox
 * messages.
 */
export class AgentCore implements HostedAgent {
  readonly id: AgentId;
  readonly name: string;
  readonly description: string;
  architecture: Architecture;
  models: Readonly<Record<string, Model>>;
  readonly subAgents: readonly HostedAgent[];
  readonly budget: Partial<ExecutionBudget>;
  readonly inbox: InboxMode;
  declare compactionBudget?: Partial<ExecutionBudget>;
  declare readonly spawnBudget?: Partial<SpawnBudget>;
  declare readonly modelTimeouts?: Partial<ModelTimeouts>;
  declare readonly retry?: RetryChanges;
  checksInput: boolean;
  declare readonly version?: string;
  declare callPath?: CallPath;
  declare readonly clearHistory?: NonNullable<HostedAgent["clearHistory"]>;
  readonly #options: AgentOptions;
  readonly #tools: ToolList;
  readonly #home: AgentHome | undefined;
  readonly #host: ExtensionHost | undefined;
  /** The tools that extensions have registered. */
  #extensionTools: readonly Tool[] = [];
  #plan: InvocationPlan;
  /** The agent that judges the answers of `runUntil`. Created on first use, and once, because its id is registered. */
  #judge: AgentCore | undefined;

  constructor(options: AgentOptions, home?: AgentHome) {
    checkAgentOptions(options);
    const { name, subAgents = [] } = options;
    this.#options = options;
    this.#tools = withHandoffs(options.tools, subAgents);
    this.#home = home;
    this.id = formatAgentId({ name, ...(options.key !== undefined && { key: options.key }) });
    this.name = name;
    this.description = options.description ?? "";
    this.architecture = architectureOf(options);
    checkAgentLimits(options);
    this.budget = options.budget ?? {};
    this.inbox = options.inbox ?? "each";
    this.checksInput = options.guardrails?.some((each) => each.onInput !== undefined) ?? false;
    if (options.spawnBudget !== undefined) this.spawnBudget = options.spawnBudget;
    if (options.modelTimeouts !== undefined) this.modelTimeouts = options.modelTimeouts;
    if (options.retry !== undefined) this.retry = options.retry;
    if (options.version !== undefined) this.version = options.version;
    const { history } = options;
    if (history !== undefined) this.clearHistory = (runId) => history.clearRun(runId);
    const limits = turnLimits(options);
    const tools = toolsIn(this.#tools);
    const toolSpecs = new ToolSpecs(tools);
    this.subAgents = subAgentsOf(this.architecture, [...agentsOf(subAgents), ...agentsBehind(tools)]);
    if (this.subAgents.length > 0) refuseDuplicateNamesBelow(this);
    this.models = modelsOf(this.architecture, options);
    refuseDuplicateTools(name, tools);
    // Extensions register tools later, and a function may return others.
    const isFixed = typeof this.#tools !== "function" && options.extensions === undefined;
    if (options.reviewers !== undefined) checkReviewers(name, options.reviewers, isFixed ? tools : undefined);
    const pipeline = new MiddlewarePipeline(middlewareOf(options, home?.clock));
    const { extensions = [] } = options;
    const parts = { ...limits, pipeline, toolSpecs, check: home?.check };
    const extend = (registered: Registrations): void => this.#extend(registered, parts);
    this.#host = extensions.length === 0 ? undefined : new ExtensionHost(extensions, () => this, extend);
    this.#plan = this.#compose(options, parts);
  }

  /** F1: composes the call path and the plan from the configuration, and again when extensions have changed it. */
  #compose(options: AgentOptions, parts: Omit<PlanParts, "architecture" | "extensions">): InvocationPlan {
    const callPath = callPathOf(parts.pipeline, options, this.#host);
    if (callPath !== undefined) this.callPath = callPath;
    const plan = invocationPlan(this, options, {
      ...parts,
      architecture: this.architecture,
      extensions: this.#host,
    });
    if (plan.compaction !== null) this.compactionBudget = plan.compaction.budget;
    return plan;
  }

  /** Adds what the extensions have registered. Called once, before the first invocation. */
  #extend(registered: Registrations, parts: Omit<PlanParts, "architecture" | "extensions">): void {
    if (this.#options.memory !== undefined) registered.dropMemory();
    const options = extendedOptions(this.#options, registered);
    this.checksInput = options.guardrails?.some((each) => each.onInput !== undefined) ?? false;
    this.#extensionTools = extensionTools(registered);
    this.architecture = architectureOf(options, registered.all("architecture"));
    this.models = {
      ...Object.fromEntries(registered.all("model")),
      ...modelsOf(this.architecture, options),
    };
    this.#plan = this.#compose(options, parts);
  }

  /** The tools at this moment. The list may change between the calls of a turn. */
  get tools(): readonly Tool[] {
    const own = toolsIn(this.#tools);
    return this.#extensionTools.length === 0 ? own : withExtensionTools(own, this.#extensionTools);
  }

  /** Returns an agent with the same options except for `changes`. */
  with(changes: Partial<AgentOptions>): AgentCore {
    return new AgentCore({ ...this.#options, ...changes }, this.#home);
  }

  /**
   * Returns a tool whose calls run this agent as a child task of the calling agent: the child takes a seat, counts
   * against the caller's budget and continues where it was after a crash. The model writes the task. The agent is
   * registered with each agent that is created with the tool.
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
    const run = (): Promise<JsonValue> => runTask(this, this.#plan, ctx, inbox);
    return this.#host === undefined ? run() : this.#host.open(ctx).then(run);
  }

  /** Asks the agent's extensions whether a session of the agent may be switched, forked or moved. */
  async beforeNavigation(navigation: SessionNavigation, port: ExtensionPort): Promise<string | undefined> {
    return this.#host?.refusal(navigation, port);
  }

  /** Runs the agent on an input and resolves with the result, whatever its status. */
  async invoke(input: AgentInput, options: InvokeOptions = {}): Promise<RunResult<JsonValue>> {
    checkOnApproval("invoke()", options.onApproval, ["wait", "a function"]);
    return (await this.invokeOrReturn(input, options)) as RunResult<JsonValue>;
  }

  /** Like `invoke`. With `onApproval: "return"` it also resolves when the run needs a person's answer. */
  protected async invokeOrReturn(
    input: AgentInput,
    options: InvokeOptions | ReturnOnApproval,
  ): Promise<RunResult<JsonValue> | WaitingResult> {
    checkInvokeOptions(this.name, options);
    const { signal, onApproval = "wait", ...rest } = options;
    checkOnApproval("invoke()", onApproval, ["wait", "return", "a function"]);
    const watch = signal && new AbortWatch(signal);
    watch?.assertNotAborted();
    const run = await this.startRun(input, rest);
    watch?.start(run);
    const end = cancelWithCaller(run, () => resultOf(run, onApproval));
    return watch === undefined ? end : watch.untilEnd(end);
  }

  /**
   * Continues a session without a new message, for example after a run that ended with `max_turns` or was cancelled. The
   * run fails with `invalid_argument` if the session has no messages or ends with an answer.
   */
  continue(sessionId: string, options: ContinueOptions = {}): Promise<RunResult<JsonValue>> {
    return this.invoke({ continue: true }, { ...options, sessionId });
  }

  /** Like `invoke`, but returns the events and text deltas while the run proceeds. */
  stream(input: AgentInput, options: StreamOptions = {}): AgentStream {
    return new AgentStream(this.streamParts(input, options, (result) => result));
  }

  /** Invokes the agent repeatedly in one session until the function `until` or the judge accepts the answer. */
  async runUntil(
    input: AgentInput,
    options: RunUntilOptions<JsonValue, never> | JudgedLoopOptions<never>,
  ): Promise<RunResult<JsonValue>> {
    checkRunUntilOptions(options);
    if (options.judge !== undefined)
      this.#judge ??= new AgentCore(judgeOptions(this, this.#options), this.#home);
    const { clock } = options.runtime ?? (await this.#runtime());
    const deadlineMs = this.budget.deadlineMs ?? null;
    const invoke = (next: AgentInput, each: InvokeOptions) => this.invoke(next, each);
    const judge = (prompt: string, each: InvokeOptions) => (this.#judge ?? this).invoke(prompt, each);
    return runUntil({ invoke, judge, clock, deadlineMs }, input, options);
  }

  protected streamParts<Result>(
    input: AgentInput,
    { cancelOnBreak = false, ...options }: StreamOptions,
    shape: (result: RunResult<JsonValue>) => Result | Promise<Result>,
  ): AgentStreamParts<Result> {
    checkInvokeOptions(this.name, options);
    const { signal, onApproval = "wait", ...rest } = options;
    checkOnApproval("stream()", onApproval, ["wait", "a function"]);
    const start = async (): Promise<StartedRun> => {
      const run = await this.startRun(input, { ...rest, streaming: true });
      return { run, result: onApproval === "wait" ? () => run.result() : answering(run, onApproval) };
    };
    return { start, shape, cancelOnBreak, output: options.output, signal };
  }

  /** Resumes a run that ended on a fault, was paused, or was left by a process that died. */
  async resume(runId: string, options: RuntimeChoice = {}): Promise<RunResult<JsonValue>> {
    checkRuntimeChoice("resume()", options);
    const run = await this.#find(runId, options.runtime);
    await run.resume();
    return run.result();
  }

  /** Sends a signal to a run that waits for it now or later. */
  async signal(runId: string, name: string, value?: JsonValue, options: RuntimeChoice = {}): Promise<void> {
    checkRuntimeChoice("signal()", options);
    const run = await this.#find(runId, options.runtime);
    await run.signal(name, value);
  }

  /** Returns the commands that the agent's extensions have registered. Runs their `setup` if it has not run yet. */
  async commands(options: RuntimeChoice = {}): Promise<readonly Command[]> {
    checkRuntimeChoice("commands()", options);
    const { clock } = options.runtime ?? (await this.#runtime());
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
    const runtime = choice.runtime ?? (await this.#runtime());
    const port = runtime.extensionPort(sessionId);
    if (this.#host !== undefined) return this.#host.runCommand(name, args, port);
    throw new Fault("not_found", `agent ${this.name} has no command ${name}: it has no extensions`);
  }

  /** S5: what this agent is doing in a session, whichever process drives it. `idle` for an unknown session. */
  async phase(sessionId: string, options: RuntimeChoice = {}): Promise<AgentPhase> {
    checkRuntimeChoice("phase()", options);
    const runtime = options.runtime ?? (await this.#runtime());
    return runtime.sessions.phase(sessionId, this.id);
  }

  /**
   * Starts a child of a session and returns its run. Its request starts with what the session's last closed invocation
   * was sent, so that a provider that caches prompts bills only `prompt` in full. The child may call the tools that
   * `tools` names, writes nothing to the session and does not make it busy (`Runtime.spawnChild`).
   */
  async spawnChild(options: ChildOfSession): Promise<RunHandle> {
    const { runtime, ...child } = { ...options };
    return (runtime ?? (await this.#runtime())).spawnChild(this, child);
  }

  /** Starts a run and returns its handle without waiting for the result. */
  async submit(input: AgentInput, options: AgentSubmitOptions = {}): Promise<RunHandle> {
    checkSubmitOptions(this.name, options);
    return this.startRun(input, options);
  }

  /** Starts a run with options that were checked. `submit`, `invoke` and `stream` call it. */
  protected async startRun(input: AgentInput, options: AgentSubmitOptions): Promise<RunHandle> {
    const { runtime, ...requested } = options;
    const target = runtime ?? (await this.#runtime());
    const request = await runRequest(this, this.#plan.check, input, requested);
    return target.submit(this, request.input, request.options);
  }

  async #find(runId: string, chosen: Runtime | undefined): Promise<RunHandle> {
    return findRunOf(this, runId, chosen ?? (await this.#runtime()), chosen === undefined);
  }

  #runtime(): Promise<Runtime> {
    if (this.#home !== undefined) return this.#home.runtime();
    throw new Fault(
      "invalid_argument",
      `agent ${this.name} has no default runtime; submit it to a runtime, or pass the option \`runtime\``,
    );
  }
}
