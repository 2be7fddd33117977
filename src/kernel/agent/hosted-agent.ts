import type { AgentId, RunId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";
import type { JsonSchema } from "../base/schema.ts";
import type { RetryChanges } from "../errors/retry.ts";
import type { SessionNavigation } from "../events/extension-event.ts";
import type { FlowControl } from "../limits/flow-control.ts";
import type { TopUp } from "../limits/ledger.ts";
import type { SpawnBudget, SpendingCaps } from "../limits/budget.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { ModelTimeouts } from "../messages/call-settings.ts";
import type { ChatMessage, UserMessage } from "../messages/chat-message.ts";
import type { Model } from "../messages/model.ts";
import type { AllowedChanges } from "../run/run-changes.ts";
import type { Signal, Update } from "../run/run-messages.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { OnBudget } from "../run/run-result.ts";
import type { InboxMode, TaskInbox } from "../stores/inbox.ts";
import type { CallPath } from "./call-path.ts";
import type { ExtensionPort } from "./extension-context.ts";
import type { RunContext } from "./run-context.ts";
import type { Tool } from "./tool.ts";

/**
 * An agent that a worker can host. The runtime calls `run` for a submitted input or for inbox messages, and again
 * from the start after a crash. `run` must therefore do all its work through `ctx`, whose completed steps return
 * their recorded values, and must base its decisions on nothing else. Each new input is a new task.
 *
 * @example
 * ```ts
 * import { formatAgentId, openRuntime, type HostedAgent } from "reeve";
 *
 * const greeter: HostedAgent = {
 *   id: formatAgentId({ name: "greeter" }),
 *   async run(ctx) {
 *     const day = new Date(await ctx.now()).toISOString().slice(0, 10); // recorded: a replay sees the same time
 *     return `Hello, it is ${day}.`;
 *   },
 * };
 *
 * const runtime = await openRuntime({ store: "memory:" });
 * const run = await runtime.submit(greeter, null);
 * const { output } = await run.result();
 * await runtime.close();
 * ```
 */
export interface HostedAgent<Context = unknown> {
  /** Address of the agent. Messages to this id reach the agent's inbox. */
  readonly id: AgentId;
  /**
   * The agent that this one replaces on a worker. This agent has the same id and the same code, and further checks
   * around its calls. A worker that hosts both executes this one. If absent, the agent replaces no other.
   */
  readonly standsFor?: HostedAgent<Context>;
  /** The type of the context of the agent's runs. For the compiler only; no agent has this property. */
  readonly contextType?: Context;
  /** What the runs of this agent do. Default: `invocation`. A run of kind `workflow` has no session. */
  readonly runKind?: "workflow" | "gateway";
  /**
   * What the compensations of a workflow may spend in addition to the remaining budget of its run. Default:
   * nothing.
   */
  readonly compensationBudget?: Partial<Omit<TopUp, "deadlineMs">>;
  /** J9: version of the agent's code. Change it when the order or the meaning of steps changes. */
  readonly version?: string;
  /**
   * J9: what a worker does with a run that another version of the agent has started. `resume`: it continues the
   * run. `pin`: it leaves the run to a worker of that version. `refuse`: the run fails. Default: `versionPolicy` of
   * the runtime.
   */
  readonly versionPolicy?: "resume" | "pin" | "refuse";
  /** Models that `ctx.llm` calls, by role. A request without a role, or with a role that has no model, uses `main`. */
  readonly models?: Readonly<Record<string, Model>>;
  /** Timeouts of the agent's model calls. For a timeout that is absent here, that of the runtime applies. */
  readonly modelTimeouts?: Partial<ModelTimeouts>;
  /**
   * How the agent's model calls are retried. `false` means no retries. For a setting that is absent here, that of
   * the runtime applies.
   */
  readonly retry?: RetryChanges;
  /** Tools that `ctx.tool` may call. */
  readonly tools?: readonly Tool[];
  /** Agents that this agent may spawn. They are registered together with it. */
  readonly subAgents?: readonly HostedAgent[];
  /**
   * Budget of each task of this agent, including all descendants of the task (B6). If absent, the task has no limit of
   * its own.
   */
  readonly budget?: Partial<ExecutionBudget>;
  /**
   * B7: caps on what the calls of agents of this name may spend in one UTC day or month, in addition to the caps of
   * the runtime. They apply in runs whose root is this agent. If absent, only the caps of the runtime apply.
   */
  readonly caps?: Pick<SpendingCaps, "perAgentPerDayUsd" | "perAgentPerMonthUsd">;
  /**
   * B5: what happens when a call of a task of this agent, or of a task below it, does not fit into the budget of
   * the task. `end`: the call fails. `ask`: the calling task is paused, and a person is asked for a top-up.
   * Default: `end`.
   */
  readonly onBudget?: OnBudget;
  /**
   * B8: the total amount that limited top-ups may add to a run whose root is this agent. Absent means nothing. The
   * value at the submission of the run applies to the whole run.
   */
  readonly topUp?: Partial<TopUp>;
  /** What callers of a server with the scope `run` may change in a run of the agent. If absent, nothing. */
  readonly allowedChanges?: AllowedChanges;
  /** The agent's own instructions, if they are one text that a run may replace. */
  readonly ownInstructions?: string;
  /**
   * JSON Schema of the input of a submission. Forms show its fields to people. If absent, the input is a message,
   * or its form is unknown.
   */
  readonly inputSchema?: JsonSchema | undefined;
  /**
   * Signals that the runs of a workflow accept. Forms show them to people, and servers check the values. A run may
   * wait for other signals too.
   */
  readonly signals?: readonly Signal<never, unknown>[];
  /** Updates that the runs of a workflow accept. Forms show them to people. A run may wait for other updates too. */
  readonly updates?: readonly Pick<Update, "name" | "schema">[];
  /**
   * Budget of a run that compacts a session of this agent. Present if the agent's `run` handles runs of kind
   * `compaction`, with `ctx.compactSession`.
   */
  readonly compactionBudget?: Partial<ExecutionBudget>;
  /** Spawn budget of runs whose root is this agent. Options of the submission take precedence. */
  readonly spawnBudget?: Partial<SpawnBudget>;
  /**
   * How inbox messages start runs. `each` starts one run per message, in the name of its sender; runs for different
   * senders run concurrently. `together` starts one run at a time with all waiting messages of one tenant. Default:
   * `each`.
   */
  readonly inbox?: InboxMode;
  /**
   * Layers around the agent's calls. F1: read again at each call, so a configuration change takes effect at the next
   * call.
   */
  readonly callPath?: CallPath;
  /**
   * Whether the agent may refuse its input, for example with a guardrail. If such a run is stopped before the agent
   * reports session changes, its input leaves no entry in the session: a later invocation would see an input that
   * was never checked. Default: `false`.
   */
  readonly checksInput?: boolean;
  /**
   * Checks the input of a new run or child task and returns the value that is stored as its input. It is called
   * once, before the run or the task exists; if it throws `invalid_argument`, nothing is stored. It must accept a
   * value that it has returned before. `from` says whether a caller or a parent task gives the input. If absent,
   * every JSON value is an input.
   */
  readInput?(input: JsonValue, from: "caller" | "parent"): MaybePromise<JsonValue>;
  /** L17: returns the limits of a new run of this agent. It is called once, before the run exists. If absent, a run has no limits. */
  readonly flowOf?: FlowControl | undefined;
  /**
   * Converts an input to the user's message in the session. S2: the commit of the submission stores the message,
   * and it stays pending until the invocation has ended. If the method is absent or returns `undefined`, the
   * session does not store the input.
   */
  messageOf?(input: JsonValue): UserMessage | undefined;
  /**
   * Returns the messages that precede the user's message, if the input is a whole conversation. S2: the commit of
   * the submission stores them as the first entries of the new session, and they are visible at once. If the method
   * is absent or returns `undefined`, the input is one message.
   */
  historyOf?(input: JsonValue): readonly ChatMessage[] | undefined;
  /**
   * Deletes what the application's own history store keeps of a run. For a run with `HistoryRetention.RUN`, the
   * worker that owns the run calls it for the root agent after the commit that ends the run, whatever its status.
   * If the call fails or the process dies, the next owner calls it again.
   */
  clearHistory?(runId: RunId): Promise<void>;
  /**
   * Asks the agent's extensions whether a person may switch, fork or move a session of the agent. `RuntimeSessions`
   * calls it before the change, in the process that makes the change. Returns the reason for which an extension
   * refuses, or `undefined`.
   */
  beforeNavigation?(navigation: SessionNavigation, port: ExtensionPort): Promise<string | undefined>;
  /** Runs one task. The returned value is the task's output; `undefined` becomes `null`. */
  run(ctx: RunContext, inbox: TaskInbox): Promise<JsonValue | void>;
}

/**
 * Returns the model that an agent uses for a role. It is the model of that role, or the `main` model if the role
 * has none, or `undefined` if the agent has no model.
 */
export function modelFor({ models }: Pick<HostedAgent, "models">, role: string): Model | undefined {
  return models?.[role] ?? models?.["main"];
}

/**
 * Creates root agents from the records of their runs, for agents that are not known when a worker starts.
 * `Runtime.register` accepts a resolver in place of an agent.
 *
 * @example
 * ```ts
 * import { Agent, openRuntime } from "reeve";
 * import { scriptedModel } from "reeve/testing";
 *
 * const runtime = await openRuntime({ store: "memory:" });
 * runtime.register({
 *   name: "clerk",
 *   resolve: ({ metadata }) =>
 *     typeof metadata["language"] === "string"
 *       ? new Agent({ name: "clerk", model: scriptedModel(["Hi"]), instructions: `Answer in ${metadata["language"]}.` })
 *       : undefined, // another worker drives this run
 * });
 * await runtime.close();
 * ```
 */
export interface AgentResolver<Context = unknown> {
  /**
   * Name of the root agents that this resolver creates: the worker executes the runs of this name, with any key. An
   * agent that is registered itself takes precedence.
   */
  readonly name: string;
  /**
   * Returns the root agent of a run, with its sub-agents. Its id must be the `agentId` of the run. The worker calls
   * it each time that it loads a run of this name.
   *
   * `undefined` leaves the run to other workers, and this worker asks about it again only after another call of
   * `register`. If the resolver throws, the error goes to `onError`, and the worker asks again later. The same
   * happens if it takes longer than 30 seconds.
   */
  resolve(run: RunRecord): MaybePromise<HostedAgent<Context> | undefined>;
}
