import type {
  AllowedChanges,
  Architecture,
  ConcurrencyLimit,
  DrainMode,
  EphemeralSource,
  EventObserver,
  ExecutionBudget,
  OnBudget,
  Extension,
  Guardrail,
  HistoryProvider,
  HookRegistry,
  InboxMode,
  InstructionsSource,
  Isolation,
  Memory,
  Model,
  ModelTimeouts,
  Permissions,
  PrepareStep,
  RateLimit,
  RepairToolCall,
  RetryChanges,
  RunFacts,
  Schema,
  SpawnBudget,
  StopCondition,
  Telemetry,
  TopUp,
} from "../../kernel/index.ts";
import type { CompactionOptions } from "../context/compaction/compaction-plan.ts";
import type { Layer, LevelMiddleware } from "../interception/middleware/layer.ts";
import type { Reviewer } from "../team/reviewers/reviewer.ts";
import type { StopHook } from "../interception/turns/stop-hook.ts";
import type { SubAgent } from "../team/sub-agents.ts";
import type { ToolList } from "../base/tool-list.ts";

/**
 * The options of an agent whose models are resolved. The public `AgentOptions` differ in the models that they accept.
 * `Context` is the type of the live value that its tools and instructions receive.
 */
export interface AgentDefinition<Context = unknown> {
  readonly name: string;
  /** Distinguishes several instances of one agent. The id is then `name/key`. */
  readonly key?: string;
  /** What the agent is good at. Other agents choose it by this text. */
  readonly description?: string;
  /** The model of the agent. Architectures that only delegate to other agents need none. */
  readonly model?: Model;
  /**
   * Models for single roles of the architecture, such as `planner`, `critic` or `judge`. A role without an entry uses
   * `model`.
   */
  readonly models?: Readonly<Record<string, Model>>;
  /**
   * Maximum times of one attempt of a model call: `firstChunkMs` until the first chunk of a streamed answer, `chunkMs`
   * between two of its chunks, `totalMs` until any answer is complete. An attempt that exceeds one is retried like
   * other faults of the provider. `null` sets no limit. Default: the timeouts of the runtime.
   */
  readonly modelTimeouts?: Partial<ModelTimeouts>;
  /**
   * How a failed model call of this agent is retried inside its step: `maxRetries`, `baseDelayMs`, `jitter`,
   * `maxDelayMs`. `false`: it is not retried. A setting that is absent here is the runtime's, by default 3 retries after
   * 2, 4 and 8 seconds. Sub-agents have their own.
   */
  readonly retry?: RetryChanges;
  /** The system prompt, or a function or source that builds it once per invocation. Default: empty. */
  readonly instructions?: string | InstructionsFunction<Context> | InstructionsSource;
  /**
   * A list of tools, which may change over time as that of `mcpServers` does, or a function that returns the current
   * list.
   */
  readonly tools?: ToolList<Context>;
  /** The architecture, or the name of a registered one. Default: `"react"`. */
  readonly architecture?: Architecture | string;
  /**
   * Maximum number of turns of this agent's loop in one invocation. `budget.maxTurns` limits the turns of the task and
   * its descendants instead. Default: 25.
   */
  readonly maxTurns?: number;
  /**
   * Maximum number of tool calls of one model reply that are executed. Each further call gets an error result, which the model sees. The
   * number is frozen when an invocation starts. Default: 128.
   */
  readonly maxToolCallsPerTurn?: number;
  /**
   * Maximum number of tool calls of one turn that run at the same time. Further calls start in their order, each when a
   * call before it has its result; a call that waits for a person keeps its place. Default: no limit.
   */
  readonly maxParallelToolCalls?: number;
  /**
   * Corrects a tool call whose tool does not exist or whose arguments do not match the schema, before the checks of the call. Its
   * result is journaled. If absent, the model receives the problem as an error result.
   */
  readonly repairToolCall?: RepairToolCall;
  /**
   * Chooses the model role, the tools and additional messages of each turn. Its result is journaled, so a replay does not
   * ask again. Only architectures with `supportsTurnControl` accept it.
   */
  readonly prepareStep?: PrepareStep;
  /**
   * Ends the loop after a turn with tool results if the condition, or one of several, returns `true`. The run completes
   * with the latest text as its output. The decision is journaled. Only architectures with `supportsTurnControl` accept
   * it.
   */
  readonly stopWhen?: StopCondition | readonly StopCondition[];
  readonly budget?: Partial<ExecutionBudget>;
  /**
   * B5: what happens when a call of the agent or of its sub-agents does not fit into `budget`. `end`: the run stops as
   * `budget_exhausted`. `ask`: a person is asked for a top-up in the inbox and the channels; the task waits without a seat and
   * continues with the same call. A spending cap cannot be topped up. Default: `end`.
   */
  readonly onBudget?: OnBudget;
  /**
   * B8: what callers of a server with the scope `run` may add to the budget of a run in all, for example
   * `{ maxCostUsd: 0.5, maxTurns: 10, deadlineMs: 60_000 }`. Callers with the scope `admin` may add any amount. The run keeps the value with which it was
   * submitted. Default: nothing.
   */
  readonly topUp?: Partial<TopUp>;
  /**
   * What callers of a server with the scope `run` may change in a run: `{ models: ["openai/gpt-5-mini"], instructions: true,
   * tools: true, toolResults: true }`. Whatever they change, the budget, the permissions and the guardrails of the agent
   * apply. Callers with the scope `admin` may change everything. Default: nothing.
   */
  readonly allowedChanges?: AllowedChanges;
  /**
   * The schema of an object that is the input of a run: a Standard Schema that can convert itself to JSON Schema (such as one
   * of zod), or a JSON Schema. A run starts only with an input that matches; the model sees it as JSON. It applies to
   * submissions, not to messages that a run receives later and not to tasks of a parent agent. Default: the input is a message.
   */
  readonly input?: Schema;
  /** Limits on the agents of runs in which this agent is the root. */
  readonly spawnBudget?: Partial<SpawnBudget>;
  /**
   * Agents that this agent may spawn, in addition to those of its architecture. They are registered with it. An entry given as a
   * `SubAgentConfig` also adds the tool `handoff_<key>`.
   */
  readonly subAgents?: readonly SubAgent[];
  /**
   * Gives each task of this agent a folder of its own. Its file tools, its shell and their sandbox work there, and so do its
   * sub-agents that have no isolation. If absent, the tools work in the folders for which they were made.
   */
  readonly isolation?: Isolation;
  /** Sources of live state, such as a browser's, that the model sees before each turn and that is never stored. */
  readonly ephemeral?: readonly EphemeralSource[];
  /** An observer of the agent's events, usually a `HookManager`. */
  readonly hooks?: EventObserver;
  /** Guardrails, called in this order at the stages that they implement. */
  readonly guardrails?: readonly Guardrail<Context>[];
  readonly permissions?: Permissions;
  /**
   * Extensions: code that handles the agent's events and registers tools, commands, guardrails and other parts. Their
   * `setup` runs once, before the first invocation of this agent.
   */
  readonly extensions?: readonly Extension[];
  /** Hooks that run before and after tool calls. */
  readonly toolHooks?: HookRegistry;
  /**
   * How long conversations are shortened: within an invocation by a strategy, and after it by a compaction of the
   * session, which is a run of its own. `false` switches both off. Default: no strategy, and a compaction of the session
   * when it exceeds the model's context window minus 8_192 tokens.
   */
  readonly compaction?: false | CompactionOptions;
  /** Middleware. The first one is the outermost at each of its levels. */
  readonly middleware?: readonly (Layer | LevelMiddleware)[];
  /** Hooks that may continue an invocation that would end. */
  readonly stopHooks?: readonly StopHook[];
  /** Background reviews of sessions, such as for memory and skills. `reviewer()` creates one. */
  readonly reviewers?: readonly Reviewer[];
  /**
   * What the agent remembers about the run's user across sessions. At the start of each invocation, all blocks and the
   * up to five episodes and five facts that match the input best are added to the instructions. If absent, nothing is
   * recalled.
   */
  readonly memory?: Memory;
  /** A store for conversations, used instead of the runtime's sessions. */
  readonly history?: HistoryProvider;
  /**
   * Where spans and metrics of the agent go, such as `openTelemetry()`. Adds the middleware `tracing` as the outermost
   * layer, without contents; to have them, add `tracing({ telemetry, content: true })` to `middleware` instead. If absent,
   * the agent is not traced.
   */
  readonly telemetry?: Telemetry;
  /** How many waiting inputs one drain returns. Default: `"one"`. */
  readonly steering?: DrainMode;
  readonly followUps?: DrainMode;
  /**
   * How messages to this agent are handled. With `"each"` every message starts its own run and conversation, in
   * parallel with those of other senders. With `"together"` all waiting messages become one input, listed as JSON, of
   * one run at a time. Default: `"each"`.
   */
  readonly inbox?: InboxMode;
  /** How many runs of a key run at the same time, over all workers. Other runs wait in the store. If absent, any number. */
  readonly concurrency?: ConcurrencyLimit;
  /** How many runs of a key start within a time, over all workers. Other runs wait in the store. If absent, any number. */
  readonly rate?: RateLimit;
  /** J9: the version of the agent's code. Change it when the order or meaning of its steps changes. */
  readonly version?: string;
}

/**
 * Builds the system prompt of an invocation from its user, metadata and context. It is called once per invocation; the
 * text is journaled, so a resumed invocation does not call it again.
 */
export type InstructionsFunction<Context = unknown> = (facts: RunFacts<Context>) => string | Promise<string>;
