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
 * An agent that a worker can host. The runtime calls `run` for a submitted input or for inbox messages, and again from
 * the start after a crash. `run` must therefore do all work through `ctx` and must base its decisions on nothing else:
 * completed steps then return their recorded values. Each call for a new input is a new task.
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
   * The agent that this one stands for: with its id and its code, and with further entries around its calls. A worker may host
   * both, and then executes this one. If absent, the agent stands for itself.
   */
  readonly standsFor?: HostedAgent<Context>;
  /** The type of the context of the agent's runs. For the compiler only; no agent has this property. */
  readonly contextType?: Context;
  /** What the runs of this agent do. Default: `invocation`. A run of kind `workflow` has no session. */
  readonly runKind?: "workflow" | "gateway";
  /**
   * What the compensations of a workflow may spend in addition to what is left of the budget of its run. Absent means
   * nothing.
   */
  readonly compensationBudget?: Partial<Omit<TopUp, "deadlineMs">>;
  /** J9: version of the agent's code. Change it when the order or the meaning of steps changes. */
  readonly version?: string;
  /**
   * J9: what becomes of a run that another version has started: it is continued (`resume`), left to a worker of its version
   * (`pin`), or fails (`refuse`). Default: `versionPolicy` of the runtime.
   */
  readonly versionPolicy?: "resume" | "pin" | "refuse";
  /** Models that `ctx.llm` calls, by role. A request without a role, or with a role that has no model, uses `main`. */
  readonly models?: Readonly<Record<string, Model>>;
  /** Timeouts of the agent's model calls. A timeout that is absent here is the runtime's. */
  readonly modelTimeouts?: Partial<ModelTimeouts>;
  /** How the agent's model calls are retried. `false`: they are not. A setting that is absent here is the runtime's. */
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
   * B7: caps on what the calls of agents of this name may spend in one UTC day or month, besides those of the runtime. They
   * count in runs whose root is this agent. If absent, only the caps of the runtime count.
   */
  readonly caps?: Pick<SpendingCaps, "perAgentPerDayUsd" | "perAgentPerMonthUsd">;
  /**
   * B5: what happens when a call of a task of this agent, or of a task below it, does not fit into the budget of the task:
   * the call fails (`end`), or a person is asked for a top-up while the caller is paused (`ask`). Default: `end`.
   */
  readonly onBudget?: OnBudget;
  /**
   * B8: what limited top-ups may add to a run whose root is this agent, in all. If absent, they add nothing. The run keeps
   * the value with which it was submitted.
   */
  readonly topUp?: Partial<TopUp>;
  /** What callers of a server with the scope `run` may change in a run of the agent. If absent, nothing. */
  readonly allowedChanges?: AllowedChanges;
  /** The agent's own instructions, if they are one text that a run may replace. */
  readonly ownInstructions?: string;
  /** JSON Schema of the input of a submission, for people who fill in a form. If absent, the input is a message, or has no known form. */
  readonly inputSchema?: JsonSchema | undefined;
  /** Signals that the runs of a workflow accept, for people who fill in a form, and for servers, which check the values. A run may wait for others too. */
  readonly signals?: readonly Signal<never, unknown>[];
  /** Updates that the runs of a workflow accept, for people who fill in a form. A run may wait for others too. */
  readonly updates?: readonly Pick<Update, "name" | "schema">[];
  /**
   * Budget of a run that compacts a session of this agent. Present if `run` handles runs of kind `compaction`, with
   * `ctx.compactSession`.
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
   * Whether the agent may refuse its input. The input of a run that is stopped before the agent reports session changes
   * then leaves no entry, because a later invocation would see what was never checked. Default: `false`.
   */
  readonly checksInput?: boolean;
  /**
   * Checks the input of a new run or child task and returns the value that is stored as its input. It is called once,
   * before the run or the task exists: if it throws `invalid_argument`, nothing is stored. If absent, every JSON value is
   * an input. `from` says whether a caller submits it or a parent task gives it. It accepts what it has returned.
   */
  readInput?(input: JsonValue, from: "caller" | "parent"): MaybePromise<JsonValue>;
  /** L17: returns the limits of a new run of this agent. It is called once, before the run exists. If absent, a run has no limits. */
  readonly flowOf?: FlowControl | undefined;
  /**
   * Converts an input to the user's message in the session. S2: the message commits with the submission and stays
   * pending until the invocation is closed. If the method is absent or returns `undefined`, the session does not store
   * the input.
   */
  messageOf?(input: JsonValue): UserMessage | undefined;
  /**
   * Returns the messages before the user's, if the input is a conversation. S2: they commit with the submission as the
   * first entries of the new session and are visible at once. If the method is absent or returns `undefined`, the input
   * is one message.
   */
  historyOf?(input: JsonValue): readonly ChatMessage[] | undefined;
  /**
   * Deletes what the application's own history store keeps of a run. The owner of a root with `HistoryRetention.RUN`
   * calls it after the commit that ends the run, whatever its status. If it fails or the process dies, the next owner
   * calls it again.
   */
  clearHistory?(runId: RunId): Promise<void>;
  /**
   * Asks the agent's extensions whether a session of the agent may be switched, forked or moved. Called by
   * `RuntimeSessions` in the process that changes the session, before the change. Returns the reason for which an
   * extension refuses, or `undefined`.
   */
  beforeNavigation?(navigation: SessionNavigation, port: ExtensionPort): Promise<string | undefined>;
  /** Runs one task. The returned value is the task's output; `undefined` becomes `null`. */
  run(ctx: RunContext, inbox: TaskInbox): Promise<JsonValue | void>;
}

/** Returns the model that an agent uses for a role: the model of that role, else the `main` model, else `undefined`. */
export function modelFor({ models }: Pick<HostedAgent, "models">, role: string): Model | undefined {
  return models?.[role] ?? models?.["main"];
}

/**
 * Makes the agents of runs that are not known when a worker starts, from what is stored with each run. `Runtime.register`
 * takes it in place of an agent.
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
  /** Name of the root agents whose runs the worker takes, with any key. An agent that is registered itself takes precedence. */
  readonly name: string;
  /**
   * Returns the root agent of a run, with its sub-agents. Its id must be the `agentId` of the run. `undefined` leaves the
   * run to other workers; this worker asks about it again only after another call of `register`. If it throws, the
   * error goes to `onError` and the worker asks again later; the same if it takes longer than 30 seconds. Called each time the worker loads a run of this name.
   */
  resolve(run: RunRecord): MaybePromise<HostedAgent<Context> | undefined>;
}
