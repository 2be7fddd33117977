import type { InvokeOptions } from "./invoke-options.ts";
import {
  eventDraft,
  executionBudget,
  Fault,
  formatAgentId,
  spawnBudget,
  type HostedAgent,
  type AgentId,
  type Architecture,
  type AuditLog,
  type CallPath,
  type CompactionStrategy,
  type DrainMode,
  type EphemeralSource,
  type EventObserver,
  type ExecutionBudget,
  type Guardrail,
  type HistoryProvider,
  type HookRegistry,
  type JsonValue,
  type Memory,
  type InboxMode,
  type Message,
  type Model,
  type Permissions,
  type PromptSource,
  type RunContext,
  type RunHandle,
  type RunResult,
  type Runtime,
  type SpawnBudget,
  type TaskInbox,
  type Telemetry,
  type Tool,
  type UserMessage,
} from "../kernel/index.ts";
import { readInput, readMessage, refusedInput, type AgentInput, type ReadInput } from "./agent-input.ts";
import { AgentStream } from "./agent-stream.ts";
import { acceptForm, acceptSchema, type SchemaCheck } from "./answer-format.ts";
import { createArchitecture } from "./architectures/registry.ts";
import { PromptWindow, type WindowChange } from "./compaction/prompt-window.ts";
import type { Summarizer } from "./compaction/summarizer.ts";
import { composeGate } from "./gate/compose-gate.ts";
import type { ToolExtension } from "./gate/extension-layer.ts";
import { withGuardrailModels } from "./guardrails/guarded-run.ts";
import { invokeIn } from "./invocation.ts";
import type { InvocationPlan } from "./invocation-plan.ts";
import type { Layer } from "./middleware/layer.ts";
import { MiddlewarePipeline } from "./middleware/pipeline.ts";
import { refuseNamesakesBelow } from "./namesakes.ts";
import { runUntil, type RunUntilOptions } from "./run-until.ts";
import type { StopHook } from "./stop-hook.ts";
import { agentsOf, withHandoffs, type SubAgent } from "./sub-agents.ts";
import { toolsIn, type ToolList } from "./tool-list.ts";
import { ToolSpecs } from "./tool-specs.ts";

export interface AgentOptions {
  readonly name: string;
  /** Tells instances of one agent apart: its id is `name/key`. */
  readonly key?: string;
  /** What it is good at: others choose it by this. */
  readonly description?: string;
  /** What it thinks with. An architecture that only sets others to work needs none. */
  readonly model?: Model;
  /** By role, where a role is to have another than `model`: `planner`, `critic`, `judge` and what else the architecture says. */
  readonly models?: Readonly<Record<string, Model>>;
  /** Asked once for each invocation, which goes by them to its end. */
  readonly instructions?: string | Pick<PromptSource, "build">;
  /** A list, which may change while it stands, as that of `mcpServers` does; or what gives one whenever it is asked. */
  readonly tools?: ToolList;
  /** How it thinks: an architecture, or the name of a registered one. ReAct unless told. */
  readonly architecture?: Architecture | string;
  /** Of one loop. 25 unless told; `budget.maxTurns` caps the whole task. */
  readonly maxTurns?: number;
  readonly budget?: Partial<ExecutionBudget>;
  /** Of runs it is the root of. */
  readonly spawnBudget?: Partial<SpawnBudget>;
  /**
   * Agents that this agent may spawn, in addition to those of its architecture. They are registered with it. An entry given as a
   * `SubAgentConfig` also adds the tool `handoff_<key>`.
   */
  readonly subAgents?: readonly SubAgent[];
  /** Live state the model is shown before each turn and nobody keeps, such as a browser's. */
  readonly ephemeral?: readonly EphemeralSource[];
  /** Who watches it: a `HookManager`. */
  readonly hooks?: EventObserver;
  /** Asked in this order, at the stages they have a method for. */
  readonly guardrails?: readonly Guardrail[];
  readonly permissions?: Permissions;
  /** What has a say at the tool gate beside them: may block a call or patch its result. */
  readonly extensions?: readonly ToolExtension[];
  /** Hooks of the tool gate. */
  readonly toolHooks?: HookRegistry;
  /** What the model is shown of a long conversation. The summariser is paid by the run. */
  readonly compaction?: (summarize: Summarizer) => CompactionStrategy;
  /** The first is outermost, at each level it is for. */
  readonly middleware?: readonly Layer[];
  /** Each may vote to go on when it would end. */
  readonly stopHooks?: readonly StopHook[];
  readonly memory?: Memory;
  /** Where its conversations are kept, if not in the runtime's sessions. */
  readonly history?: HistoryProvider;
  readonly telemetry?: Telemetry;
  readonly auditLog?: AuditLog;
  /** How many inputs that wait are heard at a time; `one` unless told. */
  readonly steering?: DrainMode;
  readonly followUps?: DrainMode;
  /**
   * What messages that wait for it are: each a conversation and a run of its own, unless told, side by side with those of other senders; or,
   * together, one input that lists them as JSON, to one run at a time.
   */
  readonly inbox?: InboxMode;
  /** J9: change it when the order or meaning of its steps changes. */
  readonly version?: string;
}

/** What the package around hands in, since an agent knows no runtime. */
export interface AgentHome {
  readonly runtime: () => Promise<Runtime>;
  readonly check: SchemaCheck;
}

export interface StreamOptions extends InvokeOptions {
  /** C3: leaving the loop cancels the run, which otherwise goes on. */
  readonly cancelOnBreak?: boolean;
}

/** A role of its own: layers tell a summary from an answer by it, and a `route` may ask a cheaper model. */
const summaryRole = "summary";

/**
 * An agent: what it is (model, instructions, tools), how it thinks (its architecture) and what it is held to (budget, guardrails,
 * permissions, hooks, middleware). `invoke` and `stream` start a run of it; a worker that hosts it runs the same code for messages.
 */
export class AgentCore implements HostedAgent {
  readonly id: AgentId;
  readonly name: string;
  readonly description: string;
  readonly architecture: Architecture;
  readonly models: Readonly<Record<string, Model>>;
  readonly subAgents: readonly HostedAgent[];
  readonly budget: Partial<ExecutionBudget>;
  readonly inbox: InboxMode;
  declare readonly spawnBudget?: Partial<SpawnBudget>;
  declare readonly version?: string;
  declare readonly callPath?: CallPath;
  readonly #options: AgentOptions;
  readonly #tools: ToolList;
  readonly #home: AgentHome | undefined;
  readonly #plan: InvocationPlan;

  constructor(options: AgentOptions, home?: AgentHome) {
    const { name, budget = {}, guardrails = [], compaction, maxTurns = 25, subAgents = [] } = options;
    this.#options = options;
    this.#tools = withHandoffs(options.tools, subAgents);
    this.#home = home;
    this.id = formatAgentId({ name, ...(options.key !== undefined && { key: options.key }) });
    this.name = name;
    this.description = options.description ?? "";
    this.architecture = architectureOf(options);
    // B2: refused here, not when the first run is paid for.
    executionBudget(budget);
    this.budget = budget;
    this.inbox = options.inbox ?? "each";
    if (options.spawnBudget !== undefined) {
      spawnBudget(options.spawnBudget);
      this.spawnBudget = options.spawnBudget;
    }
    if (options.version !== undefined) this.version = options.version;
    if (!Number.isSafeInteger(maxTurns) || maxTurns < 1)
      throw new Fault(
        "invalid_argument",
        `maxTurns of agent ${name} is ${maxTurns}: it must be an integer from 1`,
      );
    this.subAgents = subAgentsOf(this.architecture, agentsOf(subAgents));
    if (this.subAgents.length > 0) refuseNamesakesBelow(this);
    this.models = modelsOf(this.architecture, options);
    const tools = toolsIn(this.#tools);
    refuseTwice(name, tools);
    const pipeline = new MiddlewarePipeline(options.middleware ?? []);
    const callPath = callPathOf(pipeline, options);
    if (callPath !== undefined) this.callPath = callPath;
    this.#plan = {
      agent: this,
      architecture: this.architecture,
      instructions: options.instructions ?? "",
      maxTurns,
      ephemeral: options.ephemeral ?? [],
      guardrails,
      pipeline,
      stopHooks: options.stopHooks ?? [],
      window: compaction && ((ctx) => promptWindow(ctx, compaction)),
      history: options.history,
      memory: options.memory ?? null,
      permissions: options.permissions ?? null,
      hooks: options.toolHooks ?? null,
      telemetry: options.telemetry ?? null,
      auditLog: options.auditLog ?? null,
      steering: options.steering ?? "one",
      followUps: options.followUps ?? "one",
      check: home?.check ?? unchecked,
      toolSpecs: new ToolSpecs(tools),
    };
  }

  /** As they are now: a call of a turn finds what its server has by then. */
  get tools(): readonly Tool[] {
    return toolsIn(this.#tools);
  }

  /** What it was made of, for one that is like it but for `changes`. */
  with(changes: Partial<AgentOptions>): AgentCore {
    return new AgentCore({ ...this.#options, ...changes }, this.#home);
  }

  messageOf(input: JsonValue): UserMessage | undefined {
    return readInput(input)?.message;
  }

  run(ctx: RunContext, inbox: TaskInbox): Promise<JsonValue> {
    if (inbox.messages.length > 0) return this.#answer(ctx, inbox);
    const given = readInput(ctx.input);
    return given === undefined ? Promise.reject(refusedInput(this.name)) : invokeIn(this.#plan, ctx, given);
  }

  async #answer(ctx: RunContext, inbox: TaskInbox): Promise<JsonValue> {
    const kept: Parameters<typeof invokeIn>[3] = { number: 0, kept: [] };
    let output: JsonValue = "";
    for (const [number, { given, messages }] of this.#mailIn(inbox).entries()) {
      output = await invokeIn(this.#plan, ctx, given, { ...kept, number });
      for (const message of messages) if (message.replyTo !== undefined) await ctx.reply(message, output);
    }
    return output;
  }

  /** Runs it on an input, and gives what it came to, however that ended: look at `status`. */
  async invoke(input: AgentInput, options: InvokeOptions = {}): Promise<RunResult<JsonValue>> {
    const run = await this.submit(input, options);
    return run.result();
  }

  /** The same, as it happens. */
  stream(input: AgentInput, options: StreamOptions = {}): AgentStream {
    return this.streamAs(input, options, (result) => result);
  }

  /** Invokes it again and again in one session, until what it says will do. */
  async runUntil(input: AgentInput, options: RunUntilOptions<JsonValue>): Promise<RunResult<JsonValue>> {
    const { clock } = options.runtime ?? (await this.#runtime());
    const deadlineMs = this.budget?.deadlineMs ?? null;
    return runUntil({ invoke: (next, each) => this.invoke(next, each), clock, deadlineMs }, input, options);
  }

  protected streamAs<Result>(
    input: AgentInput,
    { cancelOnBreak = false, ...options }: StreamOptions,
    shape: (result: RunResult<JsonValue>) => Result | Promise<Result>,
  ): AgentStream<Result> {
    return new AgentStream(() => this.submit(input, { ...options, streaming: true }), shape, cancelOnBreak);
  }

  /** A run that ended on a fault, or was paused, goes on; so does one that a process that died left behind. */
  async resume(
    runId: string,
    { runtime }: Pick<InvokeOptions, "runtime"> = {},
  ): Promise<RunResult<JsonValue>> {
    const run = await this.#find(runId, runtime);
    await run.resume();
    return run.result();
  }

  /** To a run of it that waits for a signal, or will. */
  async signal(
    runId: string,
    name: string,
    value?: JsonValue,
    { runtime }: Pick<InvokeOptions, "runtime"> = {},
  ): Promise<void> {
    const run = await this.#find(runId, runtime);
    await run.signal(name, value);
  }

  /** Starts a run and does not wait for it. */
  async submit(
    input: AgentInput,
    { runtime, timeoutMs, output, ...options }: InvokeOptions & { readonly streaming?: boolean } = {},
  ): Promise<RunHandle> {
    const at = runtime ?? (await this.#runtime());
    // Callers without types say so that there is none.
    const budget = options.budget ?? {};
    const deadlineMs =
      timeoutMs == null ? budget.deadlineMs : Math.min(timeoutMs, budget.deadlineMs ?? Infinity);
    const read = readInput(input as JsonValue);
    if (read === undefined) throw refusedInput(this.name);
    const schema = output ?? read.output;
    if (schema !== undefined) {
      acceptForm(this, this.architecture);
      await acceptSchema(this.#plan.check, schema);
    }
    const asked = output === undefined ? input : { ...requestOf(input), output };
    return at.submit(this, asked as JsonValue, {
      ...options,
      budget: deadlineMs == null ? budget : { ...budget, deadlineMs },
    });
  }

  /** Each is a conversation of its own, unless told: who wrote one does not see the others. */
  #mailIn({ messages }: TaskInbox): readonly {
    readonly given: ReadInput;
    readonly messages: readonly Message[];
  }[] {
    return this.inbox === "together"
      ? [{ given: readMessage(messages.map(({ from, body }) => ({ from, body }))), messages }]
      : messages.map((message) => ({ given: readMessage(message.body), messages: [message] }));
  }

  async #find(runId: string, given: Runtime | undefined): Promise<RunHandle> {
    const runtime = given ?? (await this.#runtime());
    const run = await runtime.find(runId);
    if (run === undefined) throw new Fault("not_found", `there is no run ${runId} in this runtime's store`);
    // Where nobody hosts its agent it would be waited for in vain.
    if (run.agentId !== this.id)
      throw new Fault(
        "invalid_argument",
        `${runId} is a run of ${run.agentId}, not of ${this.id}: ask that one`,
      );
    runtime.register(this);
    return run;
  }

  #runtime(): Promise<Runtime> {
    if (this.#home !== undefined) return this.#home.runtime();
    throw new Fault(
      "invalid_argument",
      `agent ${this.name} has no runtime of its own: submit it to one, or hand one in as the option runtime`,
    );
  }
}

function requestOf(input: AgentInput): Exclude<AgentInput, string | readonly unknown[]> {
  return typeof input === "object" && "prompt" in input ? input : { prompt: input };
}

function architectureOf({ architecture = "react" }: AgentOptions): Architecture {
  return typeof architecture === "string" ? createArchitecture(architecture) : architecture;
}

function subAgentsOf(architecture: Architecture, more: readonly HostedAgent[]): readonly HostedAgent[] {
  return [...new Set([...Object.values(architecture.declaredWorkers()), ...more])];
}

function modelsOf(
  { name: architecture, requiresModel: thinks = true }: Architecture,
  { name, model, models = {}, compaction, guardrails = [] }: AgentOptions,
): Readonly<Record<string, Model>> {
  if (model === undefined && models["main"] === undefined && thinks) {
    throw new Fault(
      "invalid_argument",
      `agent ${name} thinks by ${architecture} and has nothing to think with: give it a model`,
    );
  }
  const main = model ?? models["main"];
  const own = { ...(main && compaction && { [summaryRole]: main }), ...models, ...(main && { main }) };
  return withGuardrailModels(own, guardrails);
}

function callPathOf(
  pipeline: MiddlewarePipeline,
  { guardrails = [], extensions = [], permissions, toolHooks, hooks: observer }: AgentOptions,
): CallPath | undefined {
  const gate = composeGate({
    guardrails,
    extensions,
    ...(permissions && { permissions }),
    ...(toolHooks && { hooks: toolHooks }),
  });
  return pipeline.callPath({ ...(gate && { gate }), ...(observer && { observer }) });
}

/** As they are now; of what comes later under one name the first counts (`ToolSpecs`). */
function refuseTwice(agent: string, tools: readonly Tool[]): void {
  const names = new Set<string>();
  for (const { name } of tools) {
    if (names.has(name)) throw new Fault("invalid_argument", `agent ${agent} has two tools named ${name}`);
    names.add(name);
  }
}

/** That the model is shown less than was said is told in the log. */
function promptWindow(ctx: RunContext, compaction: NonNullable<AgentOptions["compaction"]>): PromptWindow {
  const onCompact = (change: WindowChange): void => {
    const data = { architecture: "agent", name: "agent.messages_snipped", data: { ...change } };
    ctx.emitEvent(eventDraft("architecture_event", data));
  };
  return new PromptWindow({ ctx, strategy: compaction, role: summaryRole, onCompact });
}

function unchecked(): never {
  throw new Fault(
    "unsupported",
    "nothing here can check an answer against a JSON Schema: use the Agent of the package reeve",
  );
}
