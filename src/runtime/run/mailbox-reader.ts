import {
  addUsage,
  fromNanoUsd,
  outcomeStatus,
  rootTaskId as root,
  type ApprovalDecision,
  type InputQueue,
  type JsonValue,
  type PlacedMail,
  type Priority,
  type ReceivedUpdate,
  type Resolution,
  type Store,
  type TaskId,
  type TopUp,
} from "../../kernel/index.ts";
import { queuedInputs } from "../journal/queued-inputs.ts";
import { parentEnded, planResume } from "../journal/resume-plan.ts";
import {
  cancelReason,
  chargeFor,
  endMail,
  isStartedBy,
  resumeChange,
  type RunCaller,
  type RunEnd,
} from "../journal/run-calls.ts";
import type { RunLog } from "../journal/run-log.ts";
import { spendOf } from "../journal/run-spend.ts";
import type { RunState } from "../journal/run-state.ts";
import {
  approvalWait,
  callerWait,
  promiseOf,
  isTopUpQuestion,
  queueWait,
  runOf,
  signalOf,
  submittedAs,
  taskOfApproval,
  updateOf,
} from "../journal/wait-names.ts";
import type { IdleListener } from "../task/task-host.ts";
import type { TaskSupervisor } from "./task-supervisor.ts";
import { reportUnread } from "./unread-input.ts";

/** The parts of a run's owner that the reader of its mailbox uses. */
export interface MailboxOwner extends IdleListener {
  /**
   * Whether the owner still reads the mailbox. `false` once the run is being released: messages that arrive then
   * are for the next owner (L3).
   */
  readonly readsMailbox: boolean;
}

export interface MailboxReaderOptions {
  readonly store: Store;
  readonly state: RunState;
  readonly log: RunLog;
  readonly supervisor: TaskSupervisor;
  readonly owner: MailboxOwner;
}

/**
 * Reads the mailbox of one run and applies its messages in the order of arrival. The commit with the effects of a
 * message also consumes it.
 */
export class MailboxReader {
  readonly #store: Store;
  readonly #state: RunState;
  readonly #log: RunLog;
  readonly #supervisor: TaskSupervisor;
  readonly #owner: MailboxOwner;
  #reading: Promise<void> | undefined;
  #readAgain = false;

  constructor({ store, state, log, supervisor, owner }: MailboxReaderOptions) {
    this.#store = store;
    this.#state = state;
    this.#log = log;
    this.#supervisor = supervisor;
    this.#owner = owner;
  }

  /** Resolves when all messages that are in the mailbox now are applied. */
  async read(): Promise<void> {
    if (!this.#owner.readsMailbox) return;
    if (this.#reading === undefined) this.#reading = this.#readAll();
    else this.#readAgain = true;
    await this.#reading;
  }

  /** Applies the messages, and then all messages that have arrived in the meantime. */
  async #readAll(): Promise<void> {
    try {
      for (;;) {
        const messages = await this.#store.mailbox.read(this.#log.lease.runId);
        if (!this.#owner.readsMailbox) return;
        if (messages.length > 0) await this.#applyAll(messages);
        this.#owner.noteIdle();
        if (!this.#readAgain || !this.#owner.readsMailbox) return;
        this.#readAgain = false;
      }
    } finally {
      this.#reading = undefined;
    }
  }

  async #applyAll(messages: readonly PlacedMail[]): Promise<void> {
    for (const message of messages) {
      if (message.place <= this.#state.mailThrough) continue;
      const { type } = message.body;
      // J5: a void names a record of an earlier commit, so the fault on which a task ended must be durable before it is voided.
      if (type === "resume" || type === "top_up" || type === "cancel") await this.#log.flush();
      if (type === "withdraw_input") await this.#settleQueues();
      if (!this.#owner.readsMailbox) return;
      this.#log.add({ mailThrough: message.place });
      this.#owner.stayAwake();
      if (!this.#answersCaller(message) && !this.#comesTooLate(message.body)) this.#apply(message);
    }
    // A message may leave an ended run as it is. The run is then released again.
    this.#supervisor.finishIfDone();
  }

  /**
   * Flushes the log before an event that removes an input from its queue. A replay applies the events of a commit
   * first, and its arrivals and steps after them. Such an event must therefore not be in the same commit as the
   * arrival of the input, or as a branch that returned the input to the queue.
   */
  async #settleQueues(): Promise<void> {
    do await this.#log.flush();
    while (!this.#log.isDurable && this.#state.gaveBackIn === this.#state.nextCommit);
  }

  /**
   * Whether a message has no effect any more. A run that has ended cannot be cancelled or paused, and a completed
   * run or a compaction cannot be resumed. Input is accepted until the run is released (S5), and the usage of an
   * unreported call at any time. A run that did not complete keeps its input, which can be withdrawn.
   */
  #comesTooLate(body: PlacedMail["body"]): boolean {
    const { type } = body;
    if (!this.#state.ended || type === "steer" || type === "follow_up" || type === "usage") return false;
    if (type === "withdraw_input") return false;
    const isCompleted = this.#state.task(root).outcome?.status === "completed";
    // A compaction that runs again would not have the session for itself (S5).
    // A call of an object that runs again would not have its key for itself (L19).
    const isFinal =
      isCompleted || this.#supervisor.kind === "compaction" || this.#supervisor.flow?.object !== undefined;
    if (type === "cancel" && body.reopens === true) return isFinal || !this.#isStoppedWork();
    return isFinal || type === "cancel" || type === "pause";
  }

  /** Whether the run of a workflow has stopped at its budget, so that its work is neither complete nor undone. */
  #isStoppedWork(): boolean {
    const isStopped = outcomeStatus(this.#state.task(root).outcome) === "budget_exhausted";
    return isStopped && this.#supervisor.mayCompensate(root);
  }

  /** Sends the outcome of this run to a task that asks for it after the end. */
  #answersCaller({ body }: PlacedMail): boolean {
    if (body.type !== "resolve" || body.wait !== callerWait || !this.#state.ended) return false;
    const caller = body.value as unknown as RunCaller;
    const mail = endMail(this.#state, this.#log.lease.runId, caller, this.#log.now());
    if (mail !== undefined) this.#log.add({ mail: [mail] });
    return true;
  }

  #apply({ id, body, from }: PlacedMail): void {
    switch (body.type) {
      case "resolve": {
        this.#chargeRun(body);
        if (this.#resumesRun(body)) break;
        this.#noteMessage(body, from);
        this.#resolve(body.taskId, body.wait, body.value);
        break;
      }
      case "approval": {
        const { approvalId, decision } = body;
        const taskId = taskOfApproval(approvalId) as TaskId;
        if (isTopUpQuestion(approvalId)) this.#answerTopUp(taskId, approvalId, { ...decision, by: from });
        else this.#resolve(taskId, approvalWait(approvalId), { ...decision, by: from });
        break;
      }
      case "cancel":
        this.#cancel(body, from);
        break;
      case "top_up":
        this.#topUp(body, from);
        break;
      case "usage":
        this.#correctUsage(body, from);
        break;
      case "resume":
        this.#log.emit(root, { type: "run_resume", data: { by: from } });
        this.#supervisor.reopen(planResume(this.#state));
        this.#supervisor.resume();
        break;
      case "pause":
        // The event itself pauses the run: each task finishes its calls in flight and stops at its next step.
        this.#log.emit(root, { type: "run_pause", data: { by: from } });
        break;
      case "reprioritize":
        this.#reprioritize(body.taskId, body.priority, from);
        break;
      case "message":
        this.#resolve(root, body.type, body.message as unknown as JsonValue);
        break;
      case "steer":
      case "follow_up":
        this.#queueInput(body, from, id);
        break;
      case "withdraw_input":
        this.#withdrawInput(body.inputId, from);
        break;
    }
  }

  /** Emits the event of a signal or an update that arrived. */
  #noteMessage({ taskId, wait, value }: Extract<PlacedMail["body"], { type: "resolve" }>, by: string): void {
    if (!this.#state.tasks.has(taskId)) return;
    const signal = signalOf(wait) ?? (promiseOf(wait) === undefined ? undefined : wait);
    if (signal !== undefined) this.#log.emit(taskId, { type: "task_signal", data: { name: signal, by } });
    const update = updateOf(wait);
    if (update === undefined) return;
    const { id } = value as unknown as ReceivedUpdate;
    this.#log.emit(taskId, { type: "update_start", data: { id, name: update, by } });
  }

  /**
   * B6: charges the amount that a started run has spent. If the run has ended, it emits no event, because an event
   * would make the run unfinished again.
   */
  #chargeRun({ taskId, wait, value }: Extract<PlacedMail["body"], { type: "resolve" }>): void {
    const runId = runOf(wait);
    if (runId === undefined) return;
    const command = chargeFor(this.#state, taskId, runId, value as unknown as RunEnd);
    if (command === undefined) return;
    if (this.#state.ended) this.#log.applyLedger(command);
    else this.#supervisor.ledger.apply(taskId, command);
  }

  /**
   * When a task ends, it sends a cancel to a run that it has started. If the task is resumed before that run has
   * ended, this method resumes the run as well, and the task waits for its next end.
   */
  #resumesRun({ taskId, wait, value }: Extract<PlacedMail["body"], { type: "resolve" }>): boolean {
    const runId = runOf(wait);
    const task = this.#state.tasks.get(taskId);
    if (runId === undefined || task === undefined || task.outcome !== null || task.cancelled !== null)
      return false;
    const end = value as unknown as RunEnd;
    if (cancelReason(end) !== parentEnded || end.isFinal === true) return false;
    this.#log.add(resumeChange(task, runId, this.#log.now()));
    return true;
  }

  /**
   * B5: raises caps and moves deadlines. Resumes an ended run if one of the tasks to resume had exhausted its
   * budget, or was stopped at its deadline and now gets time. If a bill exceeded its bound (B1), added time alone
   * is not enough to resume.
   */
  #topUp({ taskId, add }: Omit<Extract<PlacedMail["body"], { type: "top_up" }>, "type">, by: string): void {
    this.#log.emit(root, { type: "budget_top_up", data: { taskId, add, by } });
    const { deadlineMs = 0, ...spend } = add;
    if (deadlineMs === 0 || Object.keys(spend).length > 0)
      this.#supervisor.ledger.apply(taskId, { type: "topUp", taskId, add: spend });
    if (deadlineMs > 0) for (const id of this.#state.tasks.keys()) this.#supervisor.waits.rearm(id);
    this.#supervisor.topUps.raised(taskId, by);
    const plan = planResume(this.#state);
    const mayContinue = ({ taskId: id }: { readonly taskId: TaskId }): boolean => {
      const status = outcomeStatus(this.#state.task(id).outcome);
      return status === "budget_exhausted" || (deadlineMs > 0 && status === "deadline_exceeded");
    };
    if (plan.some(mayContinue)) this.#supervisor.reopen(plan);
  }

  /**
   * B5: adds the amount that a person approves, or lets the call fail. An answer to a question that is not open has
   * no effect.
   */
  #answerTopUp(
    taskId: TaskId,
    approvalId: string,
    decision: ApprovalDecision & { readonly by: string },
  ): void {
    const { topUps } = this.#supervisor;
    const account = topUps.accountOf(taskId, approvalId);
    if (account === undefined) return;
    if (decision.decision !== "approved") topUps.answer(taskId, decision);
    else this.#topUp({ taskId: account, add: decision.input as Partial<TopUp> }, decision.by);
  }

  /**
   * B3: replaces the charge of an unreported call. Does nothing for a call that was reported, or was corrected
   * before.
   */
  #correctUsage({ call, usage }: Extract<PlacedMail["body"], { type: "usage" }>, by: string): void {
    const state = this.#state;
    const lost = state.ledger.lostCalls[call];
    if (lost === undefined) return;
    const { taskId, charged, priced, label } = lost;
    const { inputTokens, outputTokens, cacheReadTokens, costUsd } = usage;
    this.#supervisor.ledger.apply(taskId, {
      type: "correct",
      id: call,
      tokens: inputTokens + outputTokens,
      costUsd,
      outputTokens,
      cachedTokens: cacheReadTokens,
    });
    const data = {
      reservationId: call,
      usage,
      model: label === undefined ? null : { provider: label.provider, modelId: label.modelId },
      charged: { tokens: charged.tokens, costUsd: priced ? fromNanoUsd(charged.nanoUsd) : null },
      total: spendOf({ usage: addUsage(state.usage, usage), ledger: state.ledger }),
      status: state.ended ? outcomeStatus(state.task(root).outcome) : null,
      by,
    };
    this.#log.emit(state.ownerOf(taskId), { type: "usage_corrected", data });
  }

  #cancel({ taskId, reason, caller }: Extract<PlacedMail["body"], { type: "cancel" }>, by: string): void {
    if (!this.#state.tasks.has(taskId)) return;
    if (caller !== undefined && !isStartedBy(this.#state, caller)) return;
    const type = taskId === root ? "run_cancel" : "task_cancel";
    // The code of a run that was stopped or paused is executed again, because it may have work to undo.
    const isStopped = taskId === root && this.#state.ended;
    const isPaused = taskId === root && this.#state.paused && this.#supervisor.mayCompensate(root);
    if (isStopped || isPaused) this.#log.emit(root, { type: "run_resume", data: { by } });
    this.#log.emit(taskId, { type, data: { reason, by } });
    if (isStopped) this.#supervisor.reopenRoot();
    this.#supervisor.cancel(taskId, reason);
    if (isPaused) this.#supervisor.resume();
  }

  #queueInput(
    { type: kind, input, taskId = root, metadata }: Extract<PlacedMail["body"], { type: InputQueue }>,
    by: string,
    inputId: string,
  ): void {
    const runId = submittedAs(inputId);
    const own = metadata === undefined ? {} : { metadata };
    const data = { kind, input, by, inputId, ...(runId && { submittedAs: runId }), ...own };
    const task = this.#state.tasks.get(taskId);
    if (task === undefined) return;
    this.#log.emit(taskId, { type: "run_steer", data });
    this.#resolve(taskId, queueWait(kind), input, { inputId, ...(runId && { runId }), ...own });
    const { outcome } = task;
    if (taskId !== root && outcome !== null)
      reportUnread({ log: this.#log, state: this.#state }, taskId, outcome);
  }

  /**
   * Withdraws an input. If a step has already read it, does nothing: the caller then sees that the command is
   * consumed without an event.
   */
  #withdrawInput(inputId: string, by: string): void {
    const queued = queuedInputs(this.#state).find((each) => each.inputId === inputId);
    if (queued === undefined) return;
    const { taskId, kind } = queued;
    this.#log.emit(taskId, { type: "input_withdraw", data: { kind, inputId, by } });
  }

  #resolve(
    taskId: TaskId,
    wait: string,
    value: JsonValue,
    submission: Pick<Resolution, "runId" | "metadata" | "inputId"> = {},
  ): void {
    if (!this.#state.tasks.has(taskId) || this.#isSettled(taskId, wait)) return;
    this.#log.add({ resolves: [{ taskId, wait, value, ...submission }] });
    this.#supervisor.waits.serve(taskId, wait);
  }

  /**
   * Whether the wait is for a promise that is already settled. Several mails may settle a promise that a resume has
   * reopened.
   */
  #isSettled(taskId: TaskId, wait: string): boolean {
    return promiseOf(wait) !== undefined && this.#state.resolutions.first(taskId, wait) !== undefined;
  }

  #reprioritize(taskId: TaskId, to: Priority, by: string): void {
    const from = this.#state.headcount.tasks[taskId]?.priority;
    if (from === undefined) return;
    this.#log.emit(root, { type: "task_reprioritize", data: { taskId, from, to, by } });
    this.#supervisor.ledger.apply(taskId, { type: "reprioritize", taskId, priority: to });
    this.#supervisor.seats.apply({ type: "reprioritize", taskId, priority: to });
  }
}
