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
 * The options of an agent whose models are resolved to `Model` objects. The public `AgentOptions` also accept names
 * of models. `Context` is the type of the live value that its tools and instructions receive.
 */
export interface AgentDefinition<Context = unknown> {
  readonly name: string;
  /** Key that distinguishes several instances of one agent. The id is then `name/key`. */
  readonly key?: string;
  /** Describes what the agent is good at. Other agents choose it by this text. */
  readonly description?: string;
  /** The model of the agent. Architectures that only delegate to other agents need none. */
  readonly model?: Model;
  /**
   * Models for single roles of the architecture, such as `planner`, `critic` or `judge`. A role without an entry uses
   * `model`.
   */
  readonly models?: Readonly<Record<string, Model>>;
  /**
   * Maximum times of one attempt of a model call: `firstChunkMs` until the first chunk of a streamed answer,
   * `chunkMs` between two of its chunks, `totalMs` until any answer is complete. An attempt that exceeds one of
   * these limits is retried like other faults of the provider. `null` sets no limit. Default: the timeouts of the
   * runtime.
   */
  readonly modelTimeouts?: Partial<ModelTimeouts>;
  /**
   * How a failed model call of this agent is retried inside its step: `maxRetries`, `baseDelayMs`, `jitter`,
   * `maxDelayMs`. `false` means no retries. For a setting that is absent here, that of the runtime applies, by
   * default 3 retries after 2, 4 and 8 seconds. The setting does not apply to sub-agents.
   */
  readonly retry?: RetryChanges;
  /** The system prompt, or a function or source that builds it once per invocation. Default: empty. */
  readonly instructions?: string | InstructionsFunction<Context> | InstructionsSource;
  /**
   * A list of tools, or a function that returns the current list. A list may change over time, such as that of
   * `mcpServers`.
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
   * Maximum number of tool calls of one turn that run at the same time. Further calls start in order, each as soon
   * as an earlier call has its result. A call that waits for a person counts as running. Default: no limit.
   */
  readonly maxParallelToolCalls?: number;
  /**
   * Corrects a tool call whose tool does not exist or whose arguments do not match the schema. It runs before the
   * checks of the call, and its result is journaled. If absent, the model receives the problem as an error result.
   */
  readonly repairToolCall?: RepairToolCall;
  /**
   * Chooses the model role, the tools and additional messages of each turn. The choice is journaled, so that a
   * replay does not call the function again. Only architectures with `supportsTurnControl` accept it.
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
   * B5: what happens when a call of the agent or of its sub-agents does not fit into `budget`. `end`: the run stops
   * as `budget_exhausted`. `ask`: the inbox and the channels ask a person for a top-up. The task waits without a
   * seat and then continues with the same call. A spending cap cannot be topped up. Default: `end`.
   */
  readonly onBudget?: OnBudget;
  /**
   * B8: the total amount that callers of a server with the scope `run` may add to the budget of a run, for example
   * `{ maxCostUsd: 0.5, maxTurns: 10, deadlineMs: 60_000 }`. Callers with the scope `admin` may add any amount. The
   * value at the submission of the run applies to the whole run. Default: nothing.
   */
  readonly topUp?: Partial<TopUp>;
  /**
   * What callers of a server with the scope `run` may change in a run: `{ models: ["openai/gpt-5-mini"],
   * instructions: true, tools: true, toolResults: true }`. The budget, the permissions and the guardrails of the
   * agent apply in any case. Callers with the scope `admin` may change everything. Default: nothing.
   */
  readonly allowedChanges?: AllowedChanges;
  /**
   * Schema for runs whose input is an object and not a message. It is a Standard Schema that can convert itself to
   * JSON Schema (such as one of zod), or a JSON Schema. A run starts only with an input that matches; the model
   * sees it as JSON. It does not apply to messages that a run receives later, or to tasks that a parent agent
   * gives. Default: the input is a message.
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
   * Gives each task of this agent its own folder. The file tools and the shell of the task, their sandbox, and
   * sub-agents without their own isolation work in this folder. If absent, the tools work in the folders for which
   * they were made.
   */
  readonly isolation?: Isolation;
  /**
   * Sources of live state, such as that of a browser. The model sees this state before each turn, and it is never
   * stored.
   */
  readonly ephemeral?: readonly EphemeralSource[];
  /** An observer of the agent's events, usually a `HookManager`. */
  readonly hooks?: EventObserver;
  /** Guardrails, called in this order at the stages that they implement. */
  readonly guardrails?: readonly Guardrail<Context>[];
  readonly permissions?: Permissions;
  /** Guardrails of the agent. At each stage that they implement, they are called in this order. */
  readonly extensions?: readonly Extension[];
  /** Hooks that run before and after tool calls. */
  readonly toolHooks?: HookRegistry;
  /**
   * How long conversations are shortened: within an invocation by a strategy, and after it by a compaction of the
   * session, which is a separate run. `false` switches both off. Default: no strategy, and a compaction when the
   * session exceeds the model's context window minus 8_192 tokens.
   */
  readonly compaction?: false | CompactionOptions;
  /** Middleware of the agent. On each level (run, model call, tool call), the first one is the outermost. */
  readonly middleware?: readonly (Layer | LevelMiddleware)[];
  /** Hooks that can make an invocation continue when it would end. */
  readonly stopHooks?: readonly StopHook[];
  /** Background reviews of sessions, such as for memory and skills. `reviewer()` creates one. */
  readonly reviewers?: readonly Reviewer[];
  /**
   * What the agent remembers about the run's user across sessions. At the start of each invocation, all blocks are
   * added to the instructions, and up to five episodes and five facts that match the input best. If absent, nothing
   * is remembered.
   */
  readonly memory?: Memory;
  /** A store for conversations, used instead of the runtime's sessions. */
  readonly history?: HistoryProvider;
  /**
   * Receives spans and metrics of the agent, such as `openTelemetry()`. It adds the middleware `tracing` as the
   * outermost layer, without texts of prompts and answers; to include these, add `tracing({ telemetry, content:
   * true })` to `middleware` instead. If absent, the agent is not traced.
   */
  readonly telemetry?: Telemetry;
  /** How many waiting steering inputs the agent reads at once. Default: `"one"`. */
  readonly steering?: DrainMode;
  readonly followUps?: DrainMode;
  /**
   * How messages to this agent are handled. With `"each"` every message starts its own run and conversation, in
   * parallel with those of other senders. With `"together"` all waiting messages become one input, listed as JSON, of
   * one run at a time. Default: `"each"`.
   */
  readonly inbox?: InboxMode;
  /**
   * Limits how many runs of a key run at the same time, over all workers. Other runs wait in the store. Default: no
   * limit.
   */
  readonly concurrency?: ConcurrencyLimit;
  /**
   * Limits how many runs of a key start within a time, over all workers. Other runs wait in the store. Default: no
   * limit.
   */
  readonly rate?: RateLimit;
  /** J9: the version of the agent's code. Change it when the order or meaning of its steps changes. */
  readonly version?: string;
}

/**
 * Builds the system prompt of an invocation from its user, metadata and context. It is called once per invocation; the
 * text is journaled, so a resumed invocation does not call it again.
 */
export type InstructionsFunction<Context = unknown> = (facts: RunFacts<Context>) => string | Promise<string>;
