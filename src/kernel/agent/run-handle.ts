import type { ApprovalDecision, PendingApproval } from "../run/approval.ts";
import type { Delta } from "../messages/delta.ts";
import type { Event, EventData } from "../events/event.ts";
import type { TailOptions } from "../stores/event-log.ts";
import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { CancelSignal } from "../base/cancel-signal.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import type { UserPart } from "../messages/content.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { TopUp } from "../limits/ledger.ts";
import type { Priority } from "../limits/priority.ts";
import type { EditedResult } from "../run/run-changes.ts";
import type { RunResult } from "../run/run-result.ts";
import type { RecordedRequest } from "../run/sent-request.ts";
import type { RunSnapshot } from "../limits/account.ts";
import type { Query, Signal, SignalOptions, Update, UpdateOptions } from "../run/run-messages.ts";
import type { RunScore, ScoreOptions, StoredScore } from "../run/run-score.ts";
import type { RunSummary } from "../run/run-summary.ts";

/** Options of `RunHandle.topUp`. */
export interface TopUpOptions {
  /**
   * B8: whether the option `topUp` of the agent limits what such top-ups add to the run in all. One that exceeds it is
   * refused with `permission_denied`. A server sets it for callers without the scope `admin`. Default: `false`.
   */
  readonly limited?: boolean;
}

/** Options of `RunHandle.toolResult`. */
export interface ToolResultOptions {
  /** Whether the call failed. Default: `false`. */
  readonly isError?: boolean;
}

/** Options of `RunHandle.events`. */
export interface EventOptions extends TailOptions {
  /**
   * Whether the reader waits for new events until the run ends. With `false`, it reads the events that are stored, without
   * deltas, and ends. Default: `true`.
   */
  readonly follow?: boolean;
}

/** An input that was sent to a run in progress. */
export type ReceivedInput = EventData["run_steer"] & {
  /** The task that receives the input. */
  readonly taskId: TaskId;
  /** Seq of its event. `null` if the owner of the run has not taken it out of the mailbox yet. */
  readonly seq: number | null;
};

/** Options of `RunHandle.fork`. */
export interface ForkOptions {
  /**
   * Seq of the event up to which the fork shares this run. A commit is shared whole or not at all: if its events extend
   * beyond `at`, none of them is shared, and the last shared event is before `at`.
   */
  readonly at: number;
  /**
   * Whether the commit that contains `at` is shared although its events extend beyond `at`. A fork at the start of a model
   * call (`message_start`) needs it to keep tool results that were committed together with the start. Default: `false`.
   */
  readonly keepsCommit?: boolean;
  /**
   * A user message that follows the shared events: a text, or text, image and file parts. The agent reads it before its
   * next model call, after the results of tool calls that are open at `at`. If the root task has ended there, it starts
   * again with this message: after a failure as `resume` does, otherwise as the next message of the conversation. If
   * absent, the fork continues as this run did, and a fork at the end of a run has ended.
   */
  readonly input?: string | readonly UserPart[] | JsonObject;
  /**
   * Whether `input` takes the place of the input with which the run began: anything that the agent accepts. The fork then
   * begins like a new run, in a copy of the session before that input, with the changes of this run and of this call; it
   * shares no step. `at` must be before the first model call of the root. Default: `false`.
   */
  readonly replacesInput?: boolean;
  /**
   * Name of the model, `provider/id`, that replaces the main model of the changed task's agent in the calls after `at`, and, for the root, in
   * later invocations of the fork's session. Calls of other roles and of other tasks keep their models. If absent, the
   * fork uses the models of this run.
   */
  readonly model?: string;
  /**
   * Text that takes the place of all instructions of the changed task in the calls after `at`, and of its agent's
   * instructions in later turns of this fork. If absent, the fork has the instructions of this run.
   */
  readonly instructions?: string;
  /**
   * Names of those tools of the changed task that the model sees and may call after `at`. Tools of the architecture stay. If
   * absent, all of them.
   */
  readonly tools?: readonly string[];
  /**
   * Results that take the place of recorded ones. Only results of the last model call before `at` can be replaced, because
   * a later call has seen the others. The event `run_fork` lists them, and the metadata of each says who edited it.
   */
  readonly toolResults?: readonly EditedResult[];
  /** Limits of the fork. They tighten the budget of this run, of which a fork has spent nothing. Default: that budget. */
  readonly budget?: Partial<Omit<ExecutionBudget, "deadlineMs">>;
  /** The task that `model`, `instructions`, `tools`, `toolResults` and `input` change; it has not ended at `at`. Default: the root. */
  readonly taskId?: string;
  /** Id of the fork. Default: a new id. */
  readonly runId?: string;
}

/** An input that no step of its task has read. */
export interface QueuedInput extends Pick<ReceivedInput, "kind" | "input" | "taskId"> {
  /** Id of the input, with which it can be withdrawn. */
  readonly inputId: string;
}

/** Options of `RunHandle.steer` and `followUp`. */
export interface InputOptions {
  /** The task that receives the input. Default: the root. */
  readonly taskId?: string;
  /**
   * P1: names the input, so that it can be sent again when it is not known whether it has arrived. An input with an id that
   * the run has received before has no effect, also after a crash of this process or of the owner. Default: a new id.
   */
  readonly id?: string;
}

export const inputTable = optionTable({
  taskId: is.text(),
  id: is.text({ empty: false }),
} satisfies OptionKinds<InputOptions>);

/** Options of `RunHandle.withdrawInput`. */
export interface WithdrawOptions {
  /** Ends the wait for the answer, which then rejects with `cancelled`. The command stays sent. Default: the wait ends with the answer. */
  readonly signal?: CancelSignal;
}

export const withdrawTable = optionTable({ signal: is.any } satisfies OptionKinds<WithdrawOptions>);

/**
 * A submitted run. A handle works in any process that has opened the store. Every command is a mailbox message to the
 * run's owner and is durable when its promise resolves; the owner applies it later.
 *
 * @example
 * ```ts
 * import { Agent, openRuntime } from "reeve";
 * import { scriptedModel } from "reeve/testing";
 *
 * const agent = new Agent({ name: "clerk", model: scriptedModel(["Done."]) });
 * const runtime = await openRuntime({ store: "memory:" });
 *
 * const run = await runtime.submit(agent, "File the report");
 * for await (const event of run.events()) console.log(event.type);
 * const { status, output, costUsd } = await run.result();
 * await runtime.close();
 * ```
 */
export interface RunHandle<Result = RunResult<JsonValue>> {
  /** Id of the run. */
  readonly runId: RunId;
  /** Id of the session that the run belongs to. `undefined` of a workflow, which has no session. */
  readonly sessionId: Result extends { readonly sessionId: SessionId } ? SessionId : SessionId | undefined;
  /** Id of the agent of the root task. */
  readonly agentId: AgentId;
  /** Returns a handle of the same run whose commands carry this name. The events that they cause contain the name. */
  as(by: string): RunHandle<Result>;
  /**
   * Reads the run's events and deltas until the run ends. If an ended run has a pending `resume` or `topUp`, further
   * events appear only after the owner has applied that command. C3: leaving the loop does not affect the run.
   */
  events(options?: EventOptions): AsyncIterable<Event | Delta>;
  /**
   * Resolves with the result when the run has ended. For a custom `HostedAgent`, `output` is the value that its `run`
   * returned.
   */
  result(): Promise<Result>;
  /** Returns a handle of the same run whose `result` is converted, for example to the type of its output schema. */
  withResult<Converted>(convert: (result: Result) => Converted | Promise<Converted>): RunHandle<Converted>;
  /** K4: reads the questions that wait for a person's answer. Costs O(open questions of the run). */
  pendingApprovals(): Promise<readonly PendingApproval[]>;
  /**
   * Resolves with the pending questions when the run cannot continue without a person: every live task waits, and at
   * least one waits for an answer. Resolves with an empty list when the run has ended.
   */
  untilPersonIsNeeded(): Promise<readonly PendingApproval[]>;
  /**
   * Reads the run as `Runtime.list` returns it. Costs the same for every length of the run. Rejects with `not_found` if
   * the run was deleted.
   */
  summary(): Promise<RunSummary>;
  /**
   * Reads the current status, seats and ledger from the store, whichever worker executes the run. The status and what the
   * run waits for are the words that `Runtime.list` returns. Costs O(commits of the run).
   */
  snapshot(): Promise<RunSnapshot & Pick<RunSummary, "status" | "waitsFor">>;
  /**
   * J11: reads what one model call was sent: instructions, tools with their schemas, messages, settings and context window,
   * as they were recorded. `seq` is that of the `message_start` event of the call. What retention has erased, and what was
   * never recorded, is named as such. Rejects with `invalid_argument` for another event. Costs O(commits of the run).
   */
  modelRequest(seq: number): Promise<RecordedRequest>;
  /**
   * C1: cancels a task with its descendants. Default task: the root, which cancels the run. Default reason: `cancelled`.
   * Does nothing if the run or the task has ended. Rejects with `not_found` if the task does not exist.
   */
  cancel(reason?: string, taskId?: string): Promise<void>;
  /** Pauses the run: its tasks finish their calls in flight and start no other until `resume`. Does nothing if the run has ended. */
  pause(): Promise<void>;
  /**
   * Continues a paused run. Restarts a run that ended without completing, from its journal: recorded calls are not
   * repeated (J5). Throws `already_exists` if `sessions.resend` has sent the input of the run again.
   */
  resume(): Promise<void>;
  /**
   * Raises the budget of a task. Restarts a run that ended with `budget_exhausted`, and, if `deadlineMs` adds time, one that
   * ended with `deadline_exceeded` (J5). Time moves the deadlines of the task and of its descendants. Default task: the root. B8: limited
   * top-ups add to a run in all at most what the option `topUp` of its agent said when it was submitted, whichever processes
   * send them and whichever of them die.
   */
  topUp(add: Partial<TopUp>, taskId?: string, options?: TopUpOptions): Promise<void>;
  /** B8: what limited top-ups may still add to the run. All amounts are 0 if the agent has no option `topUp`. */
  topUpLeft(): Promise<TopUp>;
  /** H8: changes the priority of a task. */
  reprioritize(taskId: string, priority: Priority): Promise<void>;
  /**
   * Sends steering: input that the agent reads before its next turn. Resolves with the id of the input. It does not end a wait of the run. S5: steering
   * that the run has not read when it completes, or that arrives later, starts the next run of the agent in the
   * session. Default task: the root. Steering for a child that completes without reading it is reported by the event
   * `input_unread`. Rejects with `not_found` if the child does not exist or has ended, with `invalid_argument` if
   * an earlier build started it, and with `already_exists` if the run has received another input with the same `id`.
   */
  steer(input: JsonValue, target?: string | InputOptions): Promise<string>;
  /**
   * Sends a follow-up: input that the agent reads when it would otherwise end. Resolves with the id of the input. If the run has ended, the same applies
   * as for `steer`. Tasks are addressed as by `steer`.
   */
  followUp(input: JsonValue, target?: string | InputOptions): Promise<string>;
  /**
   * Withdraws an input that waits in a queue of the run. Resolves with `true` if the input was still there, and `false` if
   * it came too late: a task has read it, or the run has ended and passed it on. The owner of the run answers; without one
   * the call waits. If the caller dies meanwhile, calling again returns the same answer, also to another caller. Rejects
   * with `not_found` if the run has received no input with this id. Costs O(commits of the run).
   */
  withdrawInput(inputId: string, options?: WithdrawOptions): Promise<boolean>;
  /**
   * Reads the inputs that no task has read, in the order of arrival for each task and queue. Input that an earlier build
   * received has no id and is not listed. Costs O(commits of the run).
   */
  queuedInput(): Promise<readonly QueuedInput[]>;
  /**
   * Reads the steering and the follow-ups that were sent to the run, in the order of arrival, whether the agent has read
   * them or not. `steer` and `followUp` input that its owner takes out of the mailbox at this moment may be listed
   * twice; submitted input is listed once. Costs O(events of the run).
   */
  receivedInput(): Promise<readonly ReceivedInput[]>;
  /**
   * Resolves a `ctx.waitForSignal` of a task with a value. A signal that arrives early is kept. Default value: `null`.
   * Default task: the root. Rejects with `not_found` if the run or the task has ended, or the task does not exist.
   */
  signal(name: string, value?: JsonValue, target?: string | SignalOptions): Promise<void>;
  /** Like the other overload. Rejects with `invalid_argument` if the value does not match the schema of the signal. */
  signal<Given>(signal: Signal<Given, unknown>, value: NoInfer<Given>, target?: SignalOptions): Promise<void>;
  /**
   * Sends an update and returns its reply. The run accepts it when it calls `ctx.handleUpdate`; an update that arrives early
   * is kept. Rejects with `invalid_argument` if the value does not match the schema, with the error of the handler or of its
   * check, and with `not_found` if the run ends without a reply. An update with the same `id` returns the same reply.
   */
  update(name: string, value: JsonValue, options?: UpdateOptions): Promise<JsonValue>;
  /** Like the other overload, with the types of the update. */
  update<Given, Reply>(
    update: Update<Given, unknown, never, Reply>,
    value: NoInfer<Given>,
    options?: UpdateOptions,
  ): Promise<Reply>;
  /**
   * Returns the last committed value that the root task published under this name with `ctx.publish`, or `undefined` if
   * there is none. Does not wake the run. Costs O(events since the value was published).
   */
  read(name: string): Promise<JsonValue | undefined>;
  /** Like the other overload. Rejects with `invalid_argument` if the value does not match the schema of the query. */
  read<Value>(query: Query<never, Value>): Promise<Value | undefined>;
  /**
   * Answers an approval request. The id is in the event `approval_request`. Rejects with `not_found` if the run has
   * ended, or no request of the run has this id. A call of a client-side tool cannot be approved without a result; use
   * `toolResult`. The first answer counts, whichever processes answer at once: a later one rejects with `already_exists`,
   * whose details contain the first one (`by`, `decision`, `at`). Costs O(events of the run).
   *
   * B5: the approval of a question of the kind `top_up` adds its `input`, or the offered amount, to the budget of the task
   * that the question names. B8: such an approval is limited like a limited top-up, unless `limited` is `false`.
   */
  approve(approvalId: string, decision: ApprovalDecision, options?: TopUpOptions): Promise<void>;
  /**
   * Sends the result of a call of a client-side tool, for which the run waits. The call id is in the event
   * `approval_request` with the kind `client_tool`; its `approvalId` addresses one of several calls with the same id. With `isError` the model receives the value as an error. The first
   * result counts; a later one has no effect. Rejects with `not_found` if the run has ended, or no live task has a
   * call with this id. Costs O(events of the run).
   */
  toolResult(callId: string, value: JsonValue, options?: ToolResultOptions): Promise<void>;
  /**
   * Creates a run that shares with this run the commits whose events all have a `seq` of at most `at`. A commit that extends
   * beyond `at` is left out, so that the last shared event may be before `at`: it is the one before `run_fork`. The fork
   * has a separate session: a copy of this run's session at the last shared event. Later messages of this run are not
   * visible to the fork, and its messages are not visible here. Forking again with the same options and `runId` returns the same fork.
   *
   * The fork has spent nothing, and the model calls that it shares are not made again. Rejects with `invalid_argument`
   * for an invalid option, and with `model_not_found` for a model that this runtime does not know; nothing is stored
   * then.
   */
  fork(options: ForkOptions): Promise<RunHandle<Result>>;
  /**
   * Z1: scores the run, whether it has ended or not. A later score of the same name and author replaces the earlier one; both
   * stay in the audit log. Returns the score. It needs no worker. Rejects with `invalid_argument` for a value outside 0 to 1.
   */
  score(options: ScoreOptions): Promise<RunScore>;
  /** Z2: reads all scores of the run with their comments, the first one first, also those that were replaced. */
  scores(): Promise<readonly StoredScore[]>;
}

/** The result of `invoke` with `onApproval: "return"` for a run that cannot continue without a person. */
export interface WaitingResult<Result = RunResult<JsonValue>> {
  readonly status: "waiting";
  /** The questions that wait for an answer; at least one. Answer with `run.approve(approvalId, decision)`. */
  readonly pendingApprovals: readonly PendingApproval[];
  /** The run. It waits durably: any process may answer, and `run.result()` resolves when the run has ended. */
  readonly run: RunHandle<Result>;
  /** Id of the run. */
  readonly runId: RunId;
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the root agent. */
  readonly agentId: AgentId;
}
