import type { AgentResolver, HostedAgent } from "./hosted-agent.ts";
import type { CallSettings } from "../messages/call-settings.ts";
import type { ReportedUsage } from "../messages/model.ts";
import type { ExtensionError, ExtensionPort } from "./extension-context.ts";
import type { Channel, TenantScope } from "../run/run-meta.ts";
import type { ContextFactory } from "../run/run-facts.ts";
import type { Clock } from "../base/sources.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { HistoryRetention } from "../limits/history-retention.ts";
import type { Delivery } from "../stores/inbox.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { Priority } from "../limits/priority.ts";
import type { SpawnChildOptions } from "../run/spawn-options.ts";
import type { RunHandle } from "./run-handle.ts";
import type { RuntimeSessions } from "./session-api.ts";
import type { ApprovalPage, ApprovalQuery } from "../run/approval.ts";
import { readChanges, type RunChanges } from "../run/run-changes.ts";
import type { RunPromise } from "../run/run-messages.ts";
import type { RunChangeList, RunCountQuery, RunPage, RunQuery } from "../run/run-summary.ts";
import type { HostedObject, ObjectClient, ObjectStatePage, ObjectStateQuery } from "./object.ts";
import type { HostedWorkflow, WorkflowResult } from "./hosted-workflow.ts";
import type { SpawnBudget } from "../limits/budget.ts";
import type { UsageQuery, UsageRow } from "../stores/usage-totals.ts";
import type { MissedPolicy, OverlapPolicy, Schedule } from "../run/schedule.ts";

/** Options of `Runtime.submit`. */
export interface SubmitOptions<Context = unknown> {
  /** Id of the session, in the form that `parseSessionId` accepts. Default: the run gets a new session (S5). */
  readonly sessionId?: string;
  /**
   * Id of the user. Commands through the returned handle carry this name; `RunHandle.as` changes it. If code of another run
   * submits, such as the body of a tool, and `tenantId` is absent as well, the default is the user of that run.
   */
  readonly userId?: string;
  /** Id of the tenant. If code of a run submits and `userId` is absent, too, the default is the tenant of that run. */
  readonly tenantId?: string;
  /**
   * The channel that the input came from, such as `web`, `slack` or `telegram:4711`. Prompts of a workspace contain rules for
   * the platform of the channel. Child tasks, and runs that continue this run, have the same channel. Default: the terminal.
   */
  readonly channel?: Channel;
  /**
   * Data of the caller. Available as `facts.metadata` inside the run, and as `metadata` in lists of runs. `list` can select
   * runs by its top-level strings. It may have 64 KiB of JSON and 1,000 values.
   */
  readonly metadata?: JsonObject;
  /**
   * L9: time before which the run does not start, in epoch milliseconds. The deadline of the run counts from this time. Until
   * then the run is `pending` and waits for `time`; it can be cancelled. A time in the past starts the run at once. Default:
   * the run starts at once.
   */
  readonly startAt?: number;
  /**
   * Budget of the whole run, in addition to the agent's own budget: the lower limit applies (B6). Its `maxTurns` counts the
   * model calls of all tasks of the run. The `maxTurns` option of an agent counts only the turns of that agent's loop.
   */
  readonly budget?: Partial<ExecutionBudget>;
  /**
   * Whether the deadline of the run can pass while the run waits for a person. If `false`, the time in which the run waits
   * for a person does not count (B5). The time in which it is paused never counts. Default: `false`.
   */
  readonly timeoutWhileWaiting?: boolean;
  /** Spawn budget of the run. Overrides the agent's own. */
  readonly spawnBudget?: Partial<SpawnBudget>;
  /**
   * Settings for the model calls of the root task. They are stored with the run, so that another worker uses them too.
   * `toolChoice` applies to the first call of the loop, and `"none"` to every call. Sub-agents, guardrails and summaries do
   * not use them. If the input becomes steering for a run in progress, these settings have no effect.
   */
  readonly settings?: CallSettings;
  /**
   * Text that is added after the agent's instructions in this run, such as the system messages of a client. It is stored with
   * the run. Sub-agents do not see it. If the input becomes steering for a run in progress, the text has no effect. Default:
   * no text.
   */
  readonly addedInstructions?: string;
  /**
   * What this run changes of its agent: `instructions`, `model`, `tools`. The changes are stored with the run, so that
   * another worker uses them too. Sub-agents are not changed. If the input becomes steering for a run in progress, the
   * changes have no effect. Default: no changes.
   */
  readonly changes?: RunChanges;
  /**
   * A live value for tools, instructions, hooks and guardrails of all agents of the run, such as a database connection. It is
   * not stored. A worker that resumes the run calls the factory of `register` for it; without a factory the run fails with
   * `context_missing`. A repeated submission and steering do not change the value. Default: the value of the factory, if
   * there is one.
   */
  readonly context?: Context;
  /** Priority of the root task. Default: `Priority.NORMAL`. */
  readonly priority?: Priority;
  /** How long the run's history is kept. Default: `HistoryRetention.PERMANENT`. */
  readonly retention?: HistoryRetention;
  /** Whether readers receive text while it is written (E2). Default: `false`. */
  readonly streaming?: boolean;
  /**
   * S5: what happens to the input if the agent is already running in the session. `refuse` throws `agent_busy`. `steer` sends
   * the input as steering for the next turn. A run that waits or is paused takes the input as steering in both cases. A run
   * of another user or tenant never takes it. Default: `refuse`.
   */
  readonly whenBusy?: "refuse" | "steer";
  /**
   * Whether the run is a heartbeat, which is a run that a timer starts to look for news. If its answer consists only of
   * "nothing to report" (`reportsNothing`), neither the input nor the answer is stored in the session. The run, its log and
   * its result are kept. Default: `false`.
   */
  readonly heartbeat?: boolean;
  /**
   * Id of the run: `run_` followed by letters, digits, `_` or `-`. Submitting again with the same id has no further effect.
   * S6: the id belongs to the tenant. The stored id of a tenant's run, `RunHandle.runId`, ends with a mark of the tenant;
   * `find` of a view accepts the id with or without this mark.
   */
  readonly runId?: string;
}

/** Expected types of the options of `Runtime.submit`. */
export const submitKinds = {
  sessionId: is.any,
  userId: is.any,
  tenantId: is.any,
  channel: is.any,
  metadata: is.any,
  startAt: is.any,
  budget: is.any,
  timeoutWhileWaiting: is.any,
  spawnBudget: is.any,
  settings: is.any,
  addedInstructions: is.any,
  changes: is.checkedBy((changes: RunChanges, option, owner) =>
    readChanges(changes, `${option} of ${owner}`),
  ),
  context: is.any,
  priority: is.any,
  retention: is.any,
  streaming: is.boolean(),
  whenBusy: is.choice(["refuse", "steer"]),
  heartbeat: is.boolean(),
  runId: is.any,
} satisfies OptionKinds<SubmitOptions>;

/** Options of `Runtime.start`. An option that `submit` also has means the same here. */
export interface StartOptions<Context = unknown> extends Pick<
  SubmitOptions<Context>,
  | "runId"
  | "userId"
  | "tenantId"
  | "metadata"
  | "budget"
  | "timeoutWhileWaiting"
  | "spawnBudget"
  | "context"
  | "priority"
  | "retention"
> {
  /**
   * L9: time before which the run does not start, as a date or in epoch milliseconds. The deadline of the run counts from
   * this time. Default: the run starts at once.
   */
  readonly startAt?: number | Date;
  /** Milliseconds from now before which the run does not start. Use it instead of `startAt`. */
  readonly delayMs?: number;
}

/** Expected types of the options of `Runtime.start`. */
export const startKinds = {
  runId: submitKinds.runId,
  userId: submitKinds.userId,
  tenantId: submitKinds.tenantId,
  metadata: submitKinds.metadata,
  startAt: submitKinds.startAt,
  delayMs: is.number({ from: 0, finite: true }),
  budget: submitKinds.budget,
  timeoutWhileWaiting: submitKinds.timeoutWhileWaiting,
  spawnBudget: submitKinds.spawnBudget,
  context: submitKinds.context,
  priority: submitKinds.priority,
  retention: submitKinds.retention,
} satisfies OptionKinds<StartOptions>;

/** Options of `Runtime.start` with the name of a workflow. */
export interface NamedStartOptions extends Omit<StartOptions, "context"> {
  /**
   * J9: version of the workflow with which the run must be executed. A workflow with `versionPolicy: "pin"` executes only
   * runs of its own version. Default: the version of the worker that first executes the run.
   */
  readonly version?: string;
}

const { context: _context, ...storedStartKinds } = startKinds;

/** Expected types of the options of a start by a process that may not execute the run. */
export const clientStartKinds = storedStartKinds satisfies OptionKinds<Omit<StartOptions, "context">>;

/** Returns the error text for `context` in a process that may not execute the run. `undefined` for other options. */
export function notStored(option: string): string | undefined {
  return option === "context"
    ? "a context is not stored; use register(workflow, { context }) in the process that hosts the workflow"
    : undefined;
}

export const namedStartTable = optionTable(
  { ...clientStartKinds, version: is.text({ empty: false }) } satisfies OptionKinds<NamedStartOptions>,
  notStored,
);

/** Options of `Runtime.register`. */
export interface RegisterOptions<Context = unknown> {
  /**
   * Returns the context of a run that has no context in this process, for example after a restart. It applies to runs of the
   * agent, and to runs of its sub-agents without their own factory. If absent, this process cannot resume a run that was
   * submitted with a context.
   */
  readonly context?: ContextFactory<Context>;
}

/** The options of `submit` that a schedule stores and passes to each of its runs. */
type ScheduledRunOptions = Pick<
  SubmitOptions,
  | "sessionId"
  | "userId"
  | "tenantId"
  | "channel"
  | "metadata"
  | "budget"
  | "timeoutWhileWaiting"
  | "spawnBudget"
  | "settings"
  | "priority"
  | "retention"
  | "heartbeat"
>;

/**
 * When a schedule fires: `cron`, `everyMs` or `at`. Times are epoch milliseconds or ISO 8601 texts. A text without an offset
 * is a local time in `timeZone`.
 */
type ScheduleTimeOptions =
  | {
      /** A cron expression of five fields, or six with seconds first, such as `0 9 * * 1-5`. */
      readonly cron: string;
      /** IANA name of the time zone, such as `Europe/Berlin`. Default: `UTC`. */
      readonly timeZone?: string;
      /** Time before which the schedule does not fire. If absent, it fires from now on. */
      readonly startAt?: number | string;
      readonly everyMs?: never;
      readonly at?: never;
    }
  | {
      /** Interval between two fires, in milliseconds. At least 1,000. */
      readonly everyMs: number;
      /** Time of the first fire. Default: one interval from now. */
      readonly startAt?: number | string;
      /** Time zone of `startAt`, if that is a text without an offset. Default: `UTC`. */
      readonly timeZone?: string;
      readonly cron?: never;
      readonly at?: never;
    }
  | {
      /** Time of the only fire. */
      readonly at: number | string;
      /** Time zone of `at`, if that is a text without an offset. Default: `UTC`. */
      readonly timeZone?: string;
      readonly cron?: never;
      readonly everyMs?: never;
      readonly startAt?: never;
    };

/**
 * Options of `Runtime.schedules.create`. Options of a run, such as `sessionId` and `budget`, mean the same as in `submit`.
 * Without `sessionId`, each fire starts a new session.
 */
export type ScheduleOptions = ScheduledRunOptions &
  ScheduleTimeOptions & {
    /** Name of the schedule, in the form of an agent's name. It is unique among the schedules of the same tenant and user. */
    readonly name: string;
    /** The agent, registered in this process, or the id of an agent that another process may host. */
    readonly agent: HostedAgent | string;
    /** Input of the runs. */
    readonly input: JsonValue;
    /**
     * What happens to a fire while the run of an earlier fire has not ended. `skip`: the fire starts no run. `queue`: one
     * fire waits until that run has ended; further fires are skipped. `cancel`: that run is cancelled, and the fire starts
     * its run after the end. Default: `skip`.
     */
    readonly overlap?: OverlapPolicy;
    /**
     * What happens to fires that are more than a minute late, because no process that hosts the agent was open. `skip`: these
     * fires start no run. `once`: only the latest fire starts a run. `all`: each fire starts a run, the oldest first, one
     * after another. Default: `once`.
     */
    readonly missed?: MissedPolicy;
    /** Whether to replace an existing schedule that has this name and other options. Default: `false`. */
    readonly replace?: boolean;
  };

/**
 * Options of `Runtime.schedules.edit`. An absent option keeps its value. Each of `cron`, `everyMs` and `at` replaces all
 * earlier times. `null` removes an option of the runs, so that the default applies.
 */
export type ScheduleEdit = {
  readonly [Key in keyof ScheduledRunOptions as Key extends "tenantId" | "userId" ? never : Key]?:
    | ScheduledRunOptions[Key]
    | null;
} & {
  readonly agent?: HostedAgent | string;
  readonly input?: JsonValue;
  readonly overlap?: OverlapPolicy;
  readonly missed?: MissedPolicy;
  /** Time zone, as in `ScheduleOptions`. Given without `cron`, it changes the time zone of the existing cron expression. */
  readonly timeZone?: string;
  readonly cron?: string;
  readonly everyMs?: number;
  readonly at?: number | string;
  readonly startAt?: number | string;
};

/** A run of a schedule that a person has started with `runNow`. */
export interface ScheduleFire {
  readonly schedule: Schedule;
  /** Id of the run. It exists as soon as a process that hosts the agent has started it. */
  readonly runId: NonNullable<Schedule["lastRunId"]>;
}

/** The tenant and the user whose schedule is meant. A view of a tenant or user needs neither field. */
export interface ScheduleOwner {
  /** Id of the tenant. `null` or absent for a schedule without a tenant. */
  readonly tenantId?: string | null;
  /** Id of the user. `null` or absent for a schedule without a user. */
  readonly userId?: string | null;
}

/** Selects schedules. A schedule must match all given fields. */
export interface ScheduleQuery {
  /** Id of the tenant. `null` selects schedules without a tenant. */
  readonly tenantId?: string | null;
  /** Id of the user. `null` selects schedules without a user. */
  readonly userId?: string | null;
  /** Id of the agent. */
  readonly agentId?: string;
}

/**
 * The schedules of a store. Every open runtime on the store that hosts the agent of a schedule fires it.
 *
 * - T1 Each fire starts at most one run, in any number of processes, also if processes die: the id of the run
 *   follows from schedule and fire time. A fire starts no run only if the policy `overlap` or `missed` says so.
 * - T2 Decisions about fires are stored before their effects, so that all processes follow the same decision.
 * - T3 A fire time never repeats. A clock that is set back delays the next fire.
 * - T4 A schedule causes no work between two fires: a process has one timer, for the earliest fire of all
 *   schedules.
 * - T5 `edit` changes later fires only. The schedule keeps its id, its pause and its last run, and `create` with
 *   the original options still returns it. New times count from now on and never repeat a fire.
 * - T6 `runNow` starts one run, in any number of processes, also if processes die, and also while the schedule is
 *   paused or has no more fires. It does not change the next fire, and `overlap` does not apply to it.
 * - S6 A view of a tenant or user behaves as if the schedules of others did not exist.
 */
export interface RuntimeSchedules {
  /**
   * Creates a schedule. If a schedule of this name with the same options exists, returns that one, so that every start of a
   * program may call it. Throws `already_exists` if the options differ and `replace` is not set, and `invalid_argument` if
   * the schedule would never fire.
   */
  create(options: ScheduleOptions): Promise<Schedule>;
  /** Returns a schedule, or `undefined` if there is none. */
  get(name: string, owner?: ScheduleOwner): Promise<Schedule | undefined>;
  /** Returns the schedules of this store, ordered by tenant, user and name. */
  list(query?: ScheduleQuery): Promise<readonly Schedule[]>;
  /** Removes a schedule and keeps its runs. Returns whether the schedule existed. */
  remove(name: string, owner?: ScheduleOwner): Promise<boolean>;
  /** Stops a schedule until `resume` is called. A run in progress continues. Throws `not_found` for an unknown schedule. */
  pause(name: string, owner?: ScheduleOwner): Promise<Schedule>;
  /** Continues a paused schedule. Fires during the pause do not count as missed. Throws `not_found` if it is unknown. */
  resume(name: string, owner?: ScheduleOwner): Promise<Schedule>;
  /**
   * T5: changes a schedule. Throws `not_found`, `invalid_argument` as `create` does, and `agent_busy` while a run of the
   * schedule is being started.
   */
  edit(name: string, changes: ScheduleEdit, owner?: ScheduleOwner): Promise<Schedule>;
  /** T6: starts a run of a schedule at once, or returns the run that another call is starting. Throws `not_found`. */
  runNow(name: string, owner?: ScheduleOwner): Promise<ScheduleFire>;
}

/** The tenant and the user whose inbox is meant. Default in a view: its tenant and its user. */
export interface InboxOwner {
  /** Id of the tenant. Default: no tenant. */
  readonly tenantId?: string | null;
  /** Id of the user. Default: no user. */
  readonly userId?: string | null;
}

/** Options of `RuntimeInbox.hide`. */
export interface HideOptions {
  /** Names the item, such as the id of a run. */
  readonly id: string;
  /** The state of the item that the person has seen. If the item now has another state, it counts as new and is shown. */
  readonly change: string;
  /** Time at which the item is shown again, in epoch milliseconds. Default: `null`, which hides the item until it changes. */
  readonly until?: number | null;
}

/** An item that a person has hidden from their inbox. */
export interface HiddenItem extends Required<HideOptions> {
  /** Time at which the person hid the item, in epoch milliseconds. */
  readonly at: number;
}

/**
 * The items that people have hidden from their inboxes. Hiding an item does not answer it: a question stays open, and other
 * people still see it. A person can hide at most 1,000 items, for at most 90 days each.
 */
export interface RuntimeInbox {
  /** Returns the items that the person has hidden, except those whose time (`until`) has passed. */
  hidden(owner?: InboxOwner): Promise<readonly HiddenItem[]>;
  /** Hides one or more items until they change or until a time. */
  hide(items: HideOptions | readonly HideOptions[], owner?: InboxOwner): Promise<void>;
  /** Shows an item again. Returns whether it was hidden. */
  restore(id: string, owner?: InboxOwner): Promise<boolean>;
}

/** The tenant that a key of an object belongs to, and the user who calls it. */
export type ObjectOwner = Pick<SubmitOptions, "tenantId" | "userId">;

/** Hosts agents and starts runs. `openRuntime` creates one. */
export interface Runtime {
  /** The clock that deadlines use. */
  readonly clock: Clock;
  /**
   * B7: what the runs of this view may spend per UTC day, according to the option `caps` of this process. The cap is that of
   * the tenant or the user in their view, and otherwise that of all runs. `null` without such a cap.
   */
  readonly dayCapUsd: number | null;
  /** The conversations of this store: lists, trees, navigation, forks, search and settings. */
  readonly sessions: RuntimeSessions;
  /** The schedules of this store: runs that start at given times. */
  readonly schedules: RuntimeSchedules;
  /** The items that people have hidden from their inboxes. */
  readonly inbox: RuntimeInbox;
  /**
   * Registers an agent and its sub-agents, or a resolver that creates agents from the records of their runs. A runtime
   * executes only runs of registered or resolved agents. Inbox messages reach only registered agents.
   */
  register<Context>(
    agent: HostedAgent<Context> | AgentResolver<Context>,
    options?: RegisterOptions<NoInfer<Context>>,
  ): void;
  /**
   * Starts a run. The run is durable when the promise resolves. S5: if the input became steering for an unfinished run of the
   * session, returns that run. Throws `agent_busy` if the session is busy and cannot take the input; the error names the run
   * and what it waits for.
   */
  submit<Context>(
    agent: HostedAgent<Context>,
    input: JsonValue,
    options?: SubmitOptions<NoInfer<Context>>,
  ): Promise<RunHandle>;
  /**
   * Starts a run of a workflow. The run is durable when the promise resolves. Throws `invalid_argument` and creates no run if
   * the input does not match the schema of the workflow. Starting again with the same `runId` and an equal input returns the
   * same run; another input throws `already_exists`.
   */
  start<Input, Output, Context>(
    workflow: HostedWorkflow<Input, Output, Context>,
    input: NoInfer<Input>,
    options?: StartOptions<NoInfer<Context>>,
  ): Promise<RunHandle<WorkflowResult<Output>>>;
  /**
   * Starts a run of a workflow by its name. If the workflow is registered in this process, the call works like the other
   * overload. Otherwise the run waits for a worker that hosts the workflow (L18): it is `pending` and waits for `worker`.
   * That worker checks the input and applies budgets and limits of the workflow before it executes any code. If the input
   * does not match, the run ends as `failed` with `invalid_argument` and cannot be resumed.
   */
  start(
    workflow: string,
    input: JsonValue,
    options?: NamedStartOptions,
  ): Promise<RunHandle<WorkflowResult<JsonValue>>>;
  /**
   * Starts a child of a session: a run of kind `child` that knows what the model knew in the session. Its request repeats
   * that of the session's last closed invocation of the agent, with the same model, system prompt, tools and settings, and
   * adds `prompt`. A provider that caches prompts therefore bills only `prompt` in full.
   *
   * The child does not write to the session and does not make it busy, and its content is erased when it ends. It belongs to
   * the user and the tenant of that invocation. Like a task of `RunContext.child` it has no extensions and no compaction.
   * Throws `not_found` if the session has no closed invocation of the agent, and `invalid_argument` if `tools` names a tool
   * that does not exist.
   */
  spawnChild<Context>(
    agent: HostedAgent<Context>,
    options: SpawnChildOptions<NoInfer<Context>>,
  ): Promise<RunHandle>;
  /**
   * Returns a promise that a workflow created with `ctx.promise()`, so that the caller can resolve or reject it. Throws
   * `invalid_argument` for a text that is not a promise id.
   */
  promise(id: string): RunPromise;
  /**
   * L19: returns one key of an object, to call its handlers: `await runtime.object(counter, "a").add(1)`. Calls of a key run
   * one at a time, in the order in which they arrive. Keys belong to a tenant: the view of a tenant has its own keys (S6).
   */
  object<State, Handlers, Context>(
    object: HostedObject<State, Handlers, Context>,
    key: string,
    owner?: ObjectOwner,
  ): ObjectClient<State, Handlers>;
  /**
   * Returns the last committed states of an object by its name, without its code. The view of a tenant returns only states of
   * that tenant (S6). The view of one user throws `permission_denied`, because states belong to the whole tenant.
   */
  objectStates(name: string, query?: ObjectStateQuery): Promise<ObjectStatePage>;
  /** Returns a run of this store, whichever worker executes it, or `undefined` if there is none. */
  find(runId: string): Promise<RunHandle | undefined>;
  /**
   * Returns the run that a submission with this run id started, or the run that took its input as steering (S5). `undefined`
   * if there was no such submission, or the run is deleted. The cost does not grow with the log of the run.
   */
  findSubmitted(runId: string): Promise<RunHandle | undefined>;
  /** Returns runs of this store, newest first or by cost, whichever workers execute them. */
  list(query?: RunQuery): Promise<RunPage>;
  /** K6: returns the number of runs of this store that match, up to `limit`. Default limit: 10,000. */
  count(query?: RunCountQuery): Promise<number>;
  /**
   * K5: returns the runs of this store that have changed since an earlier call, whichever workers execute them. `after` is
   * the `next` of that call. Without `after`, returns no runs but only the current position in `next`.
   */
  changes(after?: string): Promise<RunChangeList>;
  /**
   * Returns what the runs of this store have spent, by day, agent, model or user, including runs that were deleted later. The
   * usage of a run is added when the run is suspended, is paused or ends. What a run in progress has spent since then is not
   * included.
   */
  usage(query: UsageQuery): Promise<readonly UsageRow[]>;
  /**
   * B3: replaces the charge of an unreported call by its usage, for example as a provider's bill or log shows it. `call` is the
   * `reservationId` of the event `budget_lost`. Resolves when the correction is stored. A worker that hosts the agent then
   * applies it, also to an ended run: it emits `usage_corrected`, and results and totals per day follow. The first correction
   * of a call counts; another one throws `already_exists`. A view (`forTenant`) refuses it. Without `costUsd`, the price list gives the cost. Throws
   * `not_found` for a call that is not lost.
   *
   * ```ts
   * for await (const event of run.events({ types: ["budget_lost"], follow: false }))
   *   if (event.type === "budget_lost")
   *     await runtime.correctUsage(run.runId, event.data.reservationId, { inputTokens: 812, outputTokens: 95 });
   * ```
   */
  correctUsage(run: string, call: string, usage: ReportedUsage): Promise<void>;
  /**
   * K4: returns everything of this store that waits for a person, longest wait first: approvals of tool calls, questions of
   * code and of MCP servers, and calls of client-side tools. Answer with `RunHandle.approve` or `toolResult`. Costs O(open
   * questions).
   */
  approvals(query?: ApprovalQuery): Promise<ApprovalPage>;
  /**
   * B5: declares that a person who answers questions can be reached through this process, until the returned function is
   * called. Servers (`createServer`) and channels call it. A reader of `run.events()` or `run.untilPersonIsNeeded()` has the
   * same effect for its run. If no person can be reached, a request of the gateway that would wait for a top-up is refused at
   * once, and its question stays open.
   */
  attend(): () => void;
  /**
   * Returns the last 1,000 errors of extensions that happened in this process, oldest first. Errors inside a run are also
   * `extension_error` events of its log.
   */
  extensionErrors(): readonly ExtensionError[];
  /**
   * Returns the functions of this runtime that extensions of an agent use in a session outside a run. `Agent.runCommand` uses
   * it.
   */
  extensionPort(sessionId: string): ExtensionPort;
  /**
   * Returns the dead letters of an agent, or of all agents. Dead letters are messages that are not retried because every run
   * for them failed.
   */
  deadLetters(agentId?: string): Promise<readonly Delivery[]>;
  /**
   * Delivers dead letters of an agent again, as if they had just arrived. Default: all dead letters of the agent. Returns
   * their number.
   */
  redeliver(agentId: string, messageIds?: readonly string[]): Promise<number>;
  /**
   * Deletes runs that ended before this time (epoch milliseconds), with all their data except sessions. `only` restricts the
   * deletion to these runs. Runs with an owner or unread mail are kept. Returns the number of deleted runs.
   */
  collect(options: { readonly endedBefore: number; readonly only?: readonly string[] }): Promise<number>;
  /**
   * Returns a view of this runtime for one tenant, or for one user of the tenant. S6: the view behaves as if the runs,
   * sessions, forks, memories, approvals and dead letters of others did not exist: their ids are `not_found`. Runs that the
   * view starts belong to its tenant and user. Without `userId` the view sees the whole tenant. `close` of a view does
   * nothing. The runtime itself sees everything and is for trusted code.
   */
  forTenant(scope: TenantScope): Runtime;
  /**
   * Stops claiming runs, lets calls in flight settle, releases the runs and closes the store. Later calls on this runtime or
   * its handles, and calls that still wait, fail with `closed`.
   */
  close(): Promise<void>;
  /** Calls `close` at the end of the block that declares the runtime with `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
