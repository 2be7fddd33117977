import type { AgentResolver } from "./agent-resolver.ts";
import type { HostedAgent } from "./hosted-agent.ts";
import type { CallSettings } from "../messages/call-settings.ts";
import type { ExtensionError, ExtensionPort } from "./extension-context.ts";
import type { ContextFactory } from "../run/run-facts.ts";
import type { Clock } from "../base/clock.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { HistoryRetention } from "../limits/history-retention.ts";
import type { Delivery } from "../stores/inbox.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import { optionNames } from "../base/option-check.ts";
import type { Priority } from "../limits/priority.ts";
import type { SpawnChildOptions } from "../run/spawn-options.ts";
import type { RunHandle } from "./run-handle.ts";
import type { RuntimeSessions } from "./session-api.ts";
import type { ApprovalPage, ApprovalQuery } from "../run/open-approval.ts";
import type { RunPage, RunQuery } from "../run/run-summary.ts";
import type { SpawnBudget } from "../limits/spawn-budget.ts";
import type { TenantScope } from "../run/tenant-scope.ts";
import type { UsageQuery, UsageRow } from "../stores/usage-totals.ts";

/** Options of `Runtime.submit`. */
export interface SubmitOptions<Context = unknown> {
  /** Id of the session, in the form that `parseSessionId` accepts. If absent, the run gets a new session (S5). */
  readonly sessionId?: string;
  /**
   * Id of the user. Commands through the returned handle carry this name; `RunHandle.as` changes it. Default, if
   * `tenantId` is absent as well: the user of the run whose code submits, such as the body of a tool.
   */
  readonly userId?: string;
  /** Id of the tenant. Default, if `userId` is absent as well: the tenant of the run whose code submits. */
  readonly tenantId?: string;
  /** Name of the channel that the input came from. Selects the variant of the prompt. */
  readonly channel?: string;
  /**
   * Data of the caller. Available as `facts.metadata` inside the run, and as `metadata` in lists of runs. `list` can
   * select runs by its top-level strings.
   */
  readonly metadata?: JsonObject;
  /**
   * L9: time before which the run does not start, in epoch milliseconds. Its deadline counts from there. Until then the
   * run is `pending` and waits for `time`; it can be cancelled. A time that has passed starts the run at once. Default:
   * the run starts at once.
   */
  readonly startAt?: number;
  /**
   * Budget of the whole run; tightens the agent's own (B6). Its `maxTurns` counts the model calls of all tasks of the
   * run. The `maxTurns` option of an agent counts only the turns of that agent's loop.
   */
  readonly budget?: Partial<ExecutionBudget>;
  /**
   * Whether the deadline of the run also passes while the run waits for a person. If not, the clock of the deadline stops
   * meanwhile (B5). It always stops while the run is paused. Default: `false`.
   */
  readonly timeoutWhileWaiting?: boolean;
  /** Spawn budget of the run. Overrides the agent's own. */
  readonly spawnBudget?: Partial<SpawnBudget>;
  /**
   * Settings for the model calls of the root task. They are stored with the run, so another worker uses them as well.
   * `toolChoice` applies to the first call of the loop, and `"none"` to every call. Sub-agents, guardrails and
   * summaries do not use them. If the input becomes steering, the settings of that run stay.
   */
  readonly settings?: CallSettings;
  /**
   * A live value for tools, instructions, hooks and guardrails of all agents of the run, such as a database connection.
   * It is not stored: a worker that resumes the run asks the factory of `register`, and without one the run fails with
   * `context_missing`. A repeated submission and steering do not change it. Default: the value of the factory, if there
   * is one.
   */
  readonly context?: Context;
  /** Priority of the root task. Default: `Priority.NORMAL`. */
  readonly priority?: Priority;
  /** How long the run's history is kept. Default: `HistoryRetention.PERMANENT`. */
  readonly retention?: HistoryRetention;
  /** Whether readers receive text while it is written (E2). Default: `false`. */
  readonly streaming?: boolean;
  /**
   * S5: what happens to the input while the agent runs in the session. `refuse` throws `agent_busy`. `steer` sends the
   * input as steering for the next turn. A run that waits or is paused takes the input as steering in both cases. A run of another
   * user or tenant never takes it. Default: `refuse`.
   */
  readonly whenBusy?: "refuse" | "steer";
  /**
   * Id of the run: `run_` followed by letters, digits, `_` or `-`. Submitting again with the same id has no further
   * effect.
   */
  readonly runId?: string;
}

/** The names of the options of `Runtime.submit`. */
export const submitOptionNames = optionNames<SubmitOptions>({
  sessionId: true,
  userId: true,
  tenantId: true,
  channel: true,
  metadata: true,
  startAt: true,
  budget: true,
  timeoutWhileWaiting: true,
  spawnBudget: true,
  settings: true,
  context: true,
  priority: true,
  retention: true,
  streaming: true,
  whenBusy: true,
  runId: true,
});

/** Options of `Runtime.register`. */
export interface RegisterOptions<Context = unknown> {
  /**
   * Returns the context of a run that has none in this process. It applies to runs of the agent, and to runs of its
   * sub-agents that have no factory of their own. If absent, a run that was submitted with a context cannot be resumed
   * here.
   */
  readonly context?: ContextFactory<Context>;
}

/** Hosts agents and starts runs. `openRuntime` creates one. */
export interface Runtime {
  /** The clock that deadlines use. */
  readonly clock: Clock;
  /** The conversations of this store: lists, trees, navigation, forks, search and settings. */
  readonly sessions: RuntimeSessions;
  /**
   * Registers an agent and its sub-agents, or a resolver that makes the agents of runs. A runtime drives only runs of
   * registered agents, and of agents that a resolver makes. Inbox messages reach only registered agents.
   */
  register<Context>(
    agent: HostedAgent<Context> | AgentResolver<Context>,
    options?: RegisterOptions<NoInfer<Context>>,
  ): void;
  /**
   * Starts a run. The run is durable when the promise resolves. S5: if the input became steering for an unfinished run
   * of the session, returns that run. Throws `agent_busy`, with that run and what it waits for, if the session is busy
   * and cannot take the input.
   */
  submit<Context>(
    agent: HostedAgent<Context>,
    input: JsonValue,
    options?: SubmitOptions<NoInfer<Context>>,
  ): Promise<RunHandle>;
  /**
   * Starts a child of a session: a run of kind `child` whose request starts with what the session's last closed
   * invocation of the agent was sent, with the same model, system prompt, tools and settings. A provider that caches
   * prompts therefore bills only `prompt` in full. The child does not write to the session and does not make it busy; its
   * content is erased when it ends. It belongs to the user and the tenant of that invocation. Like a task of
   * `RunContext.child` it has no extensions and no compaction. Throws `not_found` if the session has no closed invocation
   * of the agent, and `invalid_argument` if `tools` names a tool that does not exist.
   */
  spawnChild<Context>(
    agent: HostedAgent<Context>,
    options: SpawnChildOptions<NoInfer<Context>>,
  ): Promise<RunHandle>;
  /** Returns a run of this store, whichever worker drives it, or `undefined` if there is none. */
  find(runId: string): Promise<RunHandle | undefined>;
  /** Returns runs of this store, newest first, whichever workers drive them. */
  list(query?: RunQuery): Promise<RunPage>;
  /**
   * Returns what the runs of this store have spent, by day, agent, model or user, also runs that were deleted since. A
   * run's usage is added when it is suspended, is paused or ends: what a run in progress has spent since then is not
   * included.
   */
  usage(query: UsageQuery): Promise<readonly UsageRow[]>;
  /**
   * K4: returns everything of this store that waits for a person, the question that has waited longest first: approvals
   * of tool calls, questions of code and of MCP servers, and calls of client-side tools. `RunHandle.approve` and
   * `toolResult` answer. Costs O(open questions).
   */
  approvals(query?: ApprovalQuery): Promise<ApprovalPage>;
  /**
   * Returns the last 1,000 errors of extensions that happened in this process, oldest first. Errors inside a run are also
   * `extension_error` events of its log.
   */
  extensionErrors(): readonly ExtensionError[];
  /** Returns what the extensions of an agent use of this runtime in a session, outside a run. `Agent.runCommand` uses it. */
  extensionPort(sessionId: string): ExtensionPort;
  /**
   * Returns the dead letters of an agent, or of all agents: messages that are not retried because every run for them
   * failed.
   */
  deadLetters(agentId?: string): Promise<readonly Delivery[]>;
  /**
   * Delivers dead letters of an agent again, as if they had just arrived. Default: all of them. Returns their number.
   */
  redeliver(agentId: string, messageIds?: readonly string[]): Promise<number>;
  /**
   * Deletes runs that ended before this time (epoch milliseconds), with all their data except sessions. Returns their
   * number.
   */
  collect(options: { readonly endedBefore: number }): Promise<number>;
  /**
   * Returns a view of this runtime for one tenant, or for one user of it. S6: in the view, the runs, sessions, forks,
   * memories, approvals and dead letters of others do not exist: an id of theirs is `not_found`. Runs that the view
   * starts belong to its tenant and user. Without `userId` the view sees the whole tenant. `close` of a view does
   * nothing. The runtime itself sees everything and is for trusted code.
   */
  forTenant(scope: TenantScope): Runtime;
  /**
   * Stops claiming runs, lets calls in flight settle, releases the runs and closes the store. Later calls on this
   * runtime or its handles, and calls that still wait, fail with `closed`.
   */
  close(): Promise<void>;
  /** Calls `close` at the end of the block that declares the runtime with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
