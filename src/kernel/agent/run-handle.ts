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
   * B8: whether the agent's option `topUp` limits this top-up. The limit is for the sum of all limited top-ups of
   * the run; a top-up that exceeds it throws `permission_denied`. A server sets this option for callers without the
   * scope `admin`. Default: `false`.
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
   * Whether the reader waits for new events until the run ends. With `false` it reads the stored events, without
   * deltas, and then ends. Default: `true`.
   */
  readonly follow?: boolean;
}

/** An input that was sent to a run in progress. */
export type ReceivedInput = EventData["run_steer"] & {
  /** The task that receives the input. */
  readonly taskId: TaskId;
  /**
   * Sequence number (`seq`) of the input's event. `null` while the owner of the run has not taken the input out of
   * the mailbox.
   */
  readonly seq: number | null;
};

/** Options of `RunHandle.fork`. */
export interface ForkOptions {
  /**
   * Sequence number (`seq`) of the event up to which the fork shares this run. Commits are shared as a whole: if a
   * commit has events after `at`, none of its events is shared, and the last shared event is before `at`.
   */
  readonly at: number;
  /**
   * Whether the fork also shares the commit that contains `at` if this commit has events after `at`. A fork at the
   * start of a model call (`message_start`) needs it to keep tool results that were committed together with the
   * start. Default: `false`.
   */
  readonly keepsCommit?: boolean;
  /**
   * A user message that follows the shared events: a text, or text, image and file parts. The agent reads it before
   * its next model call, after the results of tool calls that are open at `at`. If the root task has ended at `at`,
   * it starts again with this message: after a failure as `resume` does, otherwise as the next message of the
   * conversation. If `input` is absent, the fork continues as this run did, and a fork at the end of a run has
   * ended.
   */
  readonly input?: string | readonly UserPart[] | JsonObject;
  /**
   * Whether `input` replaces the input with which the run began. It may then be anything that the agent accepts.
   * The fork begins like a new run, in a copy of the session before that input, with the changes of this run and of
   * this call; it shares no step. `at` must be before the first model call of the root. Default: `false`.
   */
  readonly replacesInput?: boolean;
  /**
   * Name of the model, `provider/id`, that replaces the main model of the changed task's agent in the calls after
   * `at`. If the changed task is the root, later invocations of the fork's session use this model too. Calls of
   * other roles and other tasks keep their models. If absent, the fork uses the models of this run.
   */
  readonly model?: string;
  /**
   * Text that replaces all instructions of the changed task in the calls after `at`, and the instructions of its
   * agent in later turns of this fork. If absent, the fork has the instructions of this run.
   */
  readonly instructions?: string;
  /**
   * Names of the tools of the changed task that the model sees and may call after `at`. Tools of the architecture
   * always stay. If absent, all tools stay.
   */
  readonly tools?: readonly string[];
  /**
   * Results that replace recorded tool results. Only results of the last model call before `at` can be replaced,
   * because later model calls have already used the earlier results. The event `run_fork` lists them, and the
   * metadata of each result says who edited it.
   */
  readonly toolResults?: readonly EditedResult[];
  /**
   * Limits of the fork, which can only lower the budget of this run. A fork starts with nothing spent. Default: the
   * budget of this run.
   */
  readonly budget?: Partial<Omit<ExecutionBudget, "deadlineMs">>;
  /**
   * The task that `model`, `instructions`, `tools`, `toolResults` and `input` change. It must not have ended at
   * `at`. Default: the root.
   */
  readonly taskId?: string;
  /** Id of the fork. Default: a new id. */
  readonly runId?: string;
}

/** An input that waits: no step of its task has read it yet. */
export interface QueuedInput extends Pick<ReceivedInput, "kind" | "input" | "taskId"> {
  /** Id of the input. It is needed to withdraw the input. */
  readonly inputId: string;
}

/** Options of `RunHandle.steer` and `followUp`. */
export interface InputOptions {
  /** The task that receives the input. Default: the root. */
  readonly taskId?: string;
  /**
   * P1: id of the input. If the sender does not know whether an input has arrived, it can send it again with the
   * same id: the run ignores an input whose id it has received before, also after a crash of this process or of the
   * owner. Default: a new id.
   */
  readonly id?: string;
}

export const inputTable = optionTable({
  taskId: is.text(),
  id: is.text({ empty: false }),
} satisfies OptionKinds<InputOptions>);

/** Options of `RunHandle.withdrawInput`. */
export interface WithdrawOptions {
  /**
   * Ends the wait for the answer, which then rejects with `cancelled`. The command itself is not withdrawn.
   * Default: the wait ends only with the answer.
   */
  readonly signal?: CancelSignal;
}

export const withdrawTable = optionTable({ signal: is.any } satisfies OptionKinds<WithdrawOptions>);

/**
 * A submitted run. A handle works in any process that has opened the store. Each command becomes a durable mailbox
 * message before its promise resolves; the worker that owns the run applies it later.
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
  /** Id of the session that the run belongs to. `undefined` for a workflow, because workflows have no session. */
  readonly sessionId: Result extends { readonly sessionId: SessionId } ? SessionId : SessionId | undefined;
  /** Id of the agent of the root task. */
  readonly agentId: AgentId;
  /**
   * Returns a handle of the same run whose commands carry this name. The events that these commands cause contain
   * the name.
   */
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
  /**
   * Returns a handle of the same run that converts the result of `result`, for example to the type of its output
   * schema.
   */
  withResult<Converted>(convert: (result: Result) => Converted | Promise<Converted>): RunHandle<Converted>;
  /**
   * K4: reads the questions that wait for a person's answer. Cost: proportional to the number of open questions of
   * the run.
   */
  pendingApprovals(): Promise<readonly PendingApproval[]>;
  /**
   * Resolves with the pending questions when the run cannot continue without a person: every live task waits, and at
   * least one waits for an answer. Resolves with an empty list when the run has ended.
   */
  untilPersonIsNeeded(): Promise<readonly PendingApproval[]>;
  /**
   * Reads the run as `Runtime.list` returns it. The cost does not grow with the length of the run. Rejects with
   * `not_found` if the run was deleted.
   */
  summary(): Promise<RunSummary>;
  /**
   * Reads the current status, seats and ledger from the store, whichever worker executes the run. The status and
   * `waitsFor` have the values that `Runtime.list` returns. Cost: proportional to the number of commits of the run.
   */
  snapshot(): Promise<RunSnapshot & Pick<RunSummary, "status" | "waitsFor">>;
  /**
   * J11: reads the request of one model call: instructions, tools with their schemas, messages, settings and
   * context window, as they were recorded. `seq` is the sequence number of the call's event `message_start`. The
   * result marks contents that retention has erased or that were never recorded. Rejects with `invalid_argument`
   * for another event. Costs O(commits of the run).
   */
  modelRequest(seq: number): Promise<RecordedRequest>;
  /**
   * C1: cancels a task with its descendants. Default task: the root, which cancels the run. Default reason: `cancelled`.
   * Does nothing if the run or the task has ended. Rejects with `not_found` if the task does not exist.
   */
  cancel(reason?: string, taskId?: string): Promise<void>;
  /**
   * Pauses the run: its tasks finish their calls in flight and start no other calls until `resume`. Does nothing if
   * the run has ended.
   */
  pause(): Promise<void>;
  /**
   * Continues a paused run. Restarts a run that ended without completing, from its journal: recorded calls are not
   * repeated (J5). Throws `already_exists` if `sessions.resend` has sent the input of the run again.
   */
  resume(): Promise<void>;
  /**
   * Raises the budget of a task. Default task: the root. Restarts a run that ended with `budget_exhausted` (J5). If
   * `deadlineMs` adds time, it also restarts a run that ended with `deadline_exceeded`; the added time moves the
   * deadlines of the task and of its descendants.
   *
   * B8: the sum of all limited top-ups of a run is at most what the option `topUp` of its agent allowed at the
   * submission, also if several processes send them or some of these processes die.
   */
  topUp(add: Partial<TopUp>, taskId?: string, options?: TopUpOptions): Promise<void>;
  /**
   * B8: returns what limited top-ups may still add to the run. All amounts are 0 if the agent has no option
   * `topUp`.
   */
  topUpLeft(): Promise<TopUp>;
  /** H8: changes the priority of a task. */
  reprioritize(taskId: string, priority: Priority): Promise<void>;
  /**
   * Sends steering: input that the agent reads before its next turn. Resolves with the id of the input. Default
   * task: the root. Steering does not end a wait of the run.
   *
   * S5: steering that the run has not read when it completes, or that arrives later, starts the next run of the
   * agent in the session. If a child task completes without reading its steering, the event `input_unread` reports
   * it.
   *
   * Rejects with `not_found` if the child task does not exist or has ended, with `invalid_argument` if an earlier
   * build of the agent started the child task, and with `already_exists` if the run has received another input with
   * the same `id`.
   */
  steer(input: JsonValue, target?: string | InputOptions): Promise<string>;
  /**
   * Sends a follow-up: input that the agent reads when it would otherwise end. Resolves with the id of the input.
   * The target task, and what happens after the end of the run, are as for `steer`.
   */
  followUp(input: JsonValue, target?: string | InputOptions): Promise<string>;
  /**
   * Withdraws an input that waits in a queue of the run. Resolves with `true` if the input was still waiting.
   * Resolves with `false` if it was too late: a task has read the input, or the run has ended and passed it to the
   * next run. The owner of the run answers; while the run has no owner, the call waits. If the caller dies, a
   * second call returns the same answer, also to another caller. Rejects with `not_found` if the run has received
   * no input with this id. Costs O(commits of the run).
   */
  withdrawInput(inputId: string, options?: WithdrawOptions): Promise<boolean>;
  /**
   * Reads the inputs that no task has read yet, in the order of arrival for each task and queue. Inputs that an
   * earlier build received have no id and are not listed. Costs O(commits of the run).
   */
  queuedInput(): Promise<readonly QueuedInput[]>;
  /**
   * Reads the steering and the follow-ups that were sent to the run, in the order of arrival, whether the agent has read
   * them or not. `steer` and `followUp` input that its owner takes out of the mailbox at this moment may be listed
   * twice; submitted input is listed once. Costs O(events of the run).
   */
  receivedInput(): Promise<readonly ReceivedInput[]>;
  /**
   * Sends a signal: resolves a `ctx.waitForSignal` of a task with a value. If the task does not wait for it yet,
   * the signal is kept. Default value: `null`. Default task: the root. Rejects with `not_found` if the run or the
   * task has ended, or the task does not exist.
   */
  signal(name: string, value?: JsonValue, target?: string | SignalOptions): Promise<void>;
  /**
   * Sends a signal like the other overload. Rejects with `invalid_argument` if the value does not match the schema
   * of the signal.
   */
  signal<Given>(signal: Signal<Given, unknown>, value: NoInfer<Given>, target?: SignalOptions): Promise<void>;
  /**
   * Sends an update and returns its reply. The run handles it once its code has called `ctx.handleUpdate`; an
   * earlier update is kept until then. Rejects with `invalid_argument` if the value does not match the schema, with
   * the error that the handler or its check throws, and with `not_found` if the run ends without a reply. An update
   * with the same `id` returns the same reply.
   */
  update(name: string, value: JsonValue, options?: UpdateOptions): Promise<JsonValue>;
  /** Sends an update like the other overload, with the types of the update. */
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
  /**
   * Reads a published value like the other overload. Rejects with `invalid_argument` if the value does not match
   * the schema of the query.
   */
  read<Value>(query: Query<never, Value>): Promise<Value | undefined>;
  /**
   * Answers an approval request. The event `approval_request` contains its id. The first answer counts, also if
   * several processes answer at once: a later answer rejects with `already_exists`, whose details contain the first
   * one (`by`, `decision`, `at`). Rejects with `not_found` if the run has ended, or no request of the run has this
   * id. A call of a client-side tool cannot be approved without a result; use `toolResult`. Costs O(events of the
   * run).
   *
   * B5: a question of the kind `top_up` asks for more budget for a task. Its approval adds `input`, or the offered
   * amount if `input` is absent, to the budget of that task. B8: such an approval is limited like a limited top-up,
   * unless `limited` is `false`.
   */
  approve(approvalId: string, decision: ApprovalDecision, options?: TopUpOptions): Promise<void>;
  /**
   * Sends the result of a call of a client-side tool, for which the run waits. The event `approval_request` with
   * the kind `client_tool` contains the call id. If several calls have the same id, pass the `approvalId` of the
   * event instead. With `isError` the model receives the value as an error. The first result counts; a later one
   * has no effect. Rejects with `not_found` if the run has ended, or no live task has a call with this id. Costs
   * O(events of the run).
   */
  toolResult(callId: string, value: JsonValue, options?: ToolResultOptions): Promise<void>;
  /**
   * Creates a run that shares with this run the commits whose events all have a `seq` of at most `at`. A commit
   * that extends beyond `at` is not shared, so that the last shared event, which the event `run_fork` follows, may
   * be before `at`. The fork has a separate session: a copy of this run's session at the last shared event. The
   * fork does not see later messages of this run, and this run does not see those of the fork. Forking again with
   * the same options and `runId` returns the same fork.
   *
   * The fork has spent nothing, and the model calls that it shares are not made again. Rejects with
   * `invalid_argument` for an invalid option, and with `model_not_found` for a model that this runtime does not
   * know; in both cases nothing is stored.
   */
  fork(options: ForkOptions): Promise<RunHandle<Result>>;
  /**
   * Z1: scores the run, whether it has ended or not, and returns the score. A later score of the same name and
   * author replaces the earlier one; both stay in the audit log. No worker is needed. Rejects with
   * `invalid_argument` for a value outside 0 to 1.
   */
  score(options: ScoreOptions): Promise<RunScore>;
  /**
   * Z2: reads all scores of the run with their comments, oldest first, including scores that later ones have
   * replaced.
   */
  scores(): Promise<readonly StoredScore[]>;
}

/** The result of `invoke` with `onApproval: "return"` for a run that cannot continue without a person. */
export interface WaitingResult<Result = RunResult<JsonValue>> {
  readonly status: "waiting";
  /** The questions that wait for an answer. There is at least one. Answer with `run.approve(approvalId, decision)`. */
  readonly pendingApprovals: readonly PendingApproval[];
  /** The run, which waits durably. Any process may answer, and `run.result()` resolves when the run has ended. */
  readonly run: RunHandle<Result>;
  /** Id of the run. */
  readonly runId: RunId;
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the root agent. */
  readonly agentId: AgentId;
}
