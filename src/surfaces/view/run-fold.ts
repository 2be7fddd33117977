import {
  addUsage,
  addUsd,
  fromNanoUsd,
  noUsage,
  rootTaskId,
  toNanoUsd,
  totalTokens,
  type AgentId,
  type Event,
  type ExecutionBudget,
  type Failure,
  type ModelReference,
  type TaskId,
  type Usage,
  smallerBudget,
  unlimitedBudget,
} from "../../kernel/index.ts";
import { emptyView, newTask } from "./empty-view.ts";
import { argumentOf, excerpt } from "./excerpt.ts";
import { continuesTask, startsCallAgain } from "./continued-task.ts";
import { forksIn } from "./run-clock.ts";
import { isMessage } from "./message-events.ts";
import { newQuestion } from "./question-log.ts";
import { isOfProgram, isResult } from "./recorded-calls.ts";
import type { CancelView, MoneyLine, QuestionView, RunFactsView, RunView, TaskView } from "./run-view.ts";
import { noLoss, noSpend, sumOf, without, type Spend } from "./spend.ts";
import { limitOf } from "./status-words.ts";
import { moneyKey } from "./stored-view.ts";
import type { VersionedMap } from "./versioned-map.ts";

/**
 * Minimum duration of a wait that is shortened in the drawing. A shorter time without activity is drawn with its
 * real length.
 */
const shortestWaitMs = 60_000;
/**
 * Maximum number of waits that are shortened in the drawing, so that the data of a run that sleeps for years stay
 * small.
 */
const mostWaits = 50;

/** What an event left behind. */
export interface AfterEvent {
  /** H1: number of seats that are taken. */
  readonly seats: number;
  /** Whether the event ended a wait of the whole run. */
  readonly isWaitOver: boolean;
}

/**
 * Calculates the view of a run from its events. An event takes O(1), except that a charge is also added to all
 * tasks above the paying one.
 */
export class RunFold {
  readonly #tasks: VersionedMap<TaskId, TaskView>;
  readonly #money: VersionedMap<string, MoneyLine>;
  readonly #asked: VersionedMap<string, QuestionView>;
  #facts: RunFactsView;

  /** `from` is the view from which the calculation continues. If absent, it starts before the first event. */
  constructor(from?: RunView) {
    const { tasks, money, asked, ...facts } = from ?? emptyView;
    this.#tasks = tasks.copy();
    this.#money = money.copy();
    this.#asked = asked.copy();
    this.#facts = facts.status === "waiting" ? { ...facts, status: "running" } : facts;
  }

  /** Number of the last event, or -1. */
  get seq(): number {
    return this.#facts.seq;
  }

  /** Data about the last event that the drawings over time need. */
  get after(): AfterEvent {
    const { seats, seq, waits } = this.#facts;
    return { seats, isWaitOver: waits.at(-1)?.seq === seq };
  }

  /** Returns the view of the run after the events so far. Takes O(tasks / 64). */
  view(): RunView {
    const { status, live, active } = this.#facts;
    const isWaiting = status === "running" && live > 0 && active === 0;
    return {
      ...this.#facts,
      status: isWaiting ? "waiting" : status,
      tasks: this.#tasks.version(),
      money: this.#money.version(),
      asked: this.#asked.version(),
    };
  }

  /** Adds the next event. Events that the view already contains are ignored. */
  add(event: Event): void {
    const { seq, at } = event;
    if (seq <= this.#facts.seq) return;
    this.#endWait(event);
    if (event.type !== "run_recover") this.#require(event);
    this.#addRunEvent(event);
    const { results, messages } = this.#facts;
    this.#set({
      seq,
      at,
      results: results + Number(isResult(event)),
      messages: messages + Number(isMessage(event)),
    });
  }

  /**
   * Notes the wait that an event ends. The time before a crash, or before the start of a fork, is left out for its
   * own reason and is not a wait.
   */
  #endWait(event: Event): void {
    const { at: lastAt, live, active, status, endedAt, waits } = this.#facts;
    const { seq, at } = event;
    if (at - lastAt < shortestWaitMs || waits.length >= mostWaits || lastAt === 0) return;
    const isStop = event.type === "run_fork" || (event.type === "run_recover" && isCrash(event));
    const isIdle = (live > 0 && active === 0) || status === "paused" || endedAt !== null;
    if (isIdle && !isStop) this.#set({ waits: [...waits, { seq, at, lastAt }] });
  }

  #addRunEvent(event: Event): void {
    switch (event.type) {
      case "run_start":
        return this.#startRun(event);
      case "run_adopt":
        return this.#adopt(event);
      case "run_recover":
        return this.#recover(event);
      case "run_fork":
        return this.#fork(event);
      case "run_pause":
        return this.#set({ status: "paused", crashLoop: event.data.crashLoop ?? this.#facts.crashLoop });
      case "run_resume":
        return this.#set({ status: "running", endedAt: null, cancelled: null, crashLoop: null });
      case "run_cancel":
        return this.#set({ cancelled: { reason: event.data.reason, by: event.data.by } });
      case "compensation_start":
        return this.#set({ isUndone: this.#facts.isUndone || event.taskId === rootTaskId });
      case "run_end":
        return this.#set({ status: event.data.status, endedAt: event.at, crashLoop: null });
      default:
        this.#addTaskEvent(event);
    }
  }

  #addTaskEvent(event: Event): void {
    const { taskId } = event;
    switch (event.type) {
      case "task_start":
        return this.#change(taskId, { status: "running", ...event.data });
      case "task_cancel":
        return this.#change(taskId, { cancelled: { reason: event.data.reason, by: event.data.by } });
      case "task_suspend":
        return this.#change(taskId, { status: "waiting", waitsFor: event.data.waitsFor });
      case "task_wake":
      case "turn_start":
        return this.#wake(taskId);
      case "task_end":
        return this.#endTask(event);
      case "task_continue_as_new":
        return this.#forgetRecorded(taskId);
      case "task_reprioritize":
        return this.#change(event.data.taskId, { priority: event.data.to });
      case "budget_top_up":
        return this.#topUp(event);
      default:
        this.#addSeatEvent(event);
    }
  }

  #addSeatEvent(event: Event): void {
    switch (event.type) {
      case "spawn_start":
      case "spawn_wait":
        return this.#spawn(event);
      case "seat_yield":
        return this.#change(event.data.taskId, { status: "pausing", yieldsTo: event.data.yieldsTo });
      case "seat_keep":
        return this.#change(event.data.taskId, { status: "running", yieldsTo: null });
      case "seat_pause":
        this.#change(event.data.taskId, { status: "paused" });
        return this.#setSeat(event.data.taskId, false);
      case "seat_grant":
      case "seat_recall":
        this.#change(event.data.taskId, { status: "running", yieldsTo: null });
        return this.#setSeat(event.data.taskId, true);
      default:
        this.#addCallEvent(event);
    }
  }

  #addCallEvent(event: Event): void {
    const { taskId } = event;
    switch (event.type) {
      case "message_start": {
        const { model } = event.data;
        if (isOfProgram(event)) return;
        return this.#startCall(taskId, "model", model === undefined ? "model" : model.modelId);
      }
      case "message_end":
        return isOfProgram(event) ? undefined : this.#endModelCall(event);
      case "attempt_start":
        // What the program of an earlier attempt was doing has ended with it.
        return this.#change(taskId, { openCalls: 0 });
      case "metered_call":
        return this.#pay(event);
      case "tool_execution_start":
        return this.#startCall(taskId, "tool", event.data.toolName);
      case "tool_execution_end":
        this.#endCall(taskId);
        return isOfProgram(event) ? undefined : this.#record(taskId, 0);
      case "retry_start":
        return this.#retryCall(taskId);
      case "model_fallback":
        return this.#retryCall(taskId, event.data.to.modelId);
      case "retry_end":
        if (!event.data.success) this.#failCall(taskId);
        return;
      case "budget_lost":
        return this.#lose(event);
      case "usage_corrected":
        return this.#correct(event);
      case "approval_request":
        return this.#ask(event);
      case "approval_decision":
        return this.#answer(event);
      default:
    }
  }

  #startRun({ runId, at, data }: Event<"run_start">): void {
    const { agentId, sessionId, input, supervision } = data;
    const { maxAgents } = supervision.spawnBudget;
    this.#set({ runId, agentId, sessionId, input, startedAt: at, status: "running", maxSeats: maxAgents });
    this.#setSeat(rootTaskId, true);
    this.#change(rootTaskId, { priority: supervision.priority });
  }

  #adopt({ data: { supervision } }: Event<"run_adopt">): void {
    this.#set({ maxSeats: supervision.spawnBudget.maxAgents });
  }

  #recover(event: Event<"run_recover">): void {
    const { seq, at } = event;
    const { epoch, owner = null, lost } = event.data;
    const owners = { owner, lostOwner: lost?.workerId ?? null };
    const { at: lastAt, recorded, recordedUsd } = this.#facts;
    const recovery = {
      seq,
      at,
      lastAt,
      epoch,
      ...owners,
      isCrash: isCrash(event),
      replayed: recorded,
      savedUsd: recordedUsd,
      lost: 0,
    };
    this.#set({ recoveries: [...this.#facts.recoveries, recovery] });
  }

  /**
   * Processes the start of a fork. The events before it are copies of the original run's events. The fork does not
   * pay for their calls.
   */
  #fork({ seq, at, taskId: root, data }: Event<"run_fork">): void {
    const { origin, inherited, sessionId, model: changed, budget, changedTask = root } = data;
    if (startsCallAgain(data) && this.#tasks.get(changedTask)?.lastCall?.kind === "model")
      this.#endCall(changedTask);
    const { at: lastAt, forkedFrom } = this.#facts;
    const shared = { at: seq - 1, inherited, lastAt, earlier: forksIn(forkedFrom) };
    this.#set({ sessionId, forkedFrom: { runId: origin, startedAt: at, ...shared } });
    for (const { taskId } of this.#tasks) this.#change(taskId, { own: noSpend, total: noSpend });
    // A call in progress at the cut is made again with the changed model, without a start that names it.
    if (changed !== undefined) this.#change(changedTask, { model: changed.modelId });
    const limits = this.#tasks.get(root)?.budget;
    if (budget !== undefined && limits != null)
      this.#change(root, { budget: smallerBudget(limits, { ...unlimitedBudget, ...budget }) });
    for (const { agentId, model } of this.#money)
      this.#money.set(moneyKey({ agentId, model }), { agentId, model, calls: 0, usage: noUsage });
  }

  #spawn({ taskId: parentId, type, at, data }: Event<"spawn_start"> | Event<"spawn_wait">): void {
    const { childTaskId, agentId, priority } = data;
    if (!this.#add(childTaskId, agentId, parentId, at)) return;
    const isWaiting = type === "spawn_wait";
    this.#change(childTaskId, { priority, status: isWaiting ? "pending" : "running" });
    if (!isWaiting) this.#setSeat(childTaskId, true);
  }

  #wake(taskId: TaskId): void {
    const task = this.#tasks.get(taskId);
    if (task?.status === "waiting") this.#change(taskId, { status: "running", waitsFor: [] });
  }

  #endTask({ taskId, at, data: { status, output, failure } }: Event<"task_end">): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return;
    this.#setSeat(taskId, false);
    const wasLive = task.endedAt === null;
    if (wasLive) this.#countRecorded(task, -1);
    const result = status === "completed" && output != null ? excerpt(argumentOf(output)) : null;
    const cancelled = status === "cancelled" ? this.#cancelOf(taskId, failure) : null;
    const stoppedAt = failure === undefined ? null : limitOf(failure);
    const left = { waitsFor: [], openCalls: 0, yieldsTo: null };
    this.#change(taskId, { status, result, cancelled, stoppedAt, endedAt: at, ...left });
    const [{ live, questions }, dropped] = [this.#facts, wasLive ? task.questions : 0];
    this.#set({ live: live - Number(wasLive), questions: questions - dropped });
    if (taskId === rootTaskId) this.#set({ output: output ?? null, failure: failure ?? null });
  }

  /**
   * Returns who cancelled a task. When a run or a task is cancelled, its descendants are cancelled with the same
   * reason (rule C1). A parent may also cancel a task without an event.
   */
  #cancelOf(taskId: TaskId, failure: Failure | undefined): CancelView {
    const reason = failure?.message ?? "";
    const { cancelled } = this.#facts;
    const isCause = (cancel: CancelView | null): boolean =>
      cancel?.by != null && reason.startsWith(cancel.reason);
    if (cancelled !== null && (taskId === rootTaskId || isCause(cancelled))) return cancelled;
    for (let task = this.#tasks.get(taskId); task !== undefined;) {
      if (task.cancelled !== null && isCause(task.cancelled)) return task.cancelled;
      task = task.parentId === null ? undefined : this.#tasks.get(task.parentId);
    }
    return { reason, by: null };
  }

  #topUp({ data: { taskId, add } }: Event<"budget_top_up">): void {
    const budget = this.#tasks.get(taskId)?.budget;
    if (budget == null) return;
    const raised = { ...budget };
    for (const name of ["maxTokens", "maxCostUsd", "maxTurns", "deadlineMs"] as const) {
      const cap = budget[name];
      if (cap !== null) raised[name] = cap + (add[name] ?? 0);
    }
    this.#change(taskId, { budget: raised satisfies ExecutionBudget });
  }

  #endModelCall({ taskId, agentId, data: { usage, model } }: Event<"message_end">): void {
    this.#endCall(taskId);
    // The model that answered. A fork or a fallback may have replaced the one that the start names.
    if (model != null) this.#change(taskId, { model: model.modelId });
    if (usage !== undefined) this.#spend(taskId, agentId, model, usage);
  }

  /** Adds a paid call of a program. A lost call has a different event. */
  #pay({ taskId, agentId, data: { usage, model } }: Event<"metered_call">): void {
    this.#change(taskId, { model: model.modelId });
    if (usage !== null) this.#spend(taskId, agentId, model, usage);
  }

  #spend(taskId: TaskId, agentId: AgentId, model: ModelReference | null | undefined, usage: Usage): void {
    const { costUsd } = usage;
    this.#record(taskId, costUsd ?? 0);
    this.#charge(taskId, { calls: 1, tokens: totalTokens(usage), costUsd, lost: noLoss });
    this.#addMoney(agentId, model, usage);
  }

  #addMoney(agentId: AgentId, model: ModelReference | null | undefined, usage: Usage): void {
    const name = model === undefined || model === null ? "unknown" : `${model.provider}/${model.modelId}`;
    const key = moneyKey({ agentId, model: name });
    const line = this.#money.get(key) ?? { agentId, model: name, calls: 0, usage: noUsage };
    this.#money.set(key, { ...line, calls: line.calls + 1, usage: addUsage(line.usage, usage) });
  }

  /** Replaces the estimated charge of an unreported call by its real usage (rule B3). */
  #correct({ taskId, agentId, data: { usage, charged, model } }: Event<"usage_corrected">): void {
    const lost = { calls: 1, ...charged };
    const { costUsd } = usage;
    this.#charge(taskId, { calls: 1, tokens: totalTokens(usage), costUsd, lost: noLoss }, { ...lost, lost });
    this.#addMoney(agentId, model, usage);
  }

  /**
   * Processes an unreported call. After a recovery, calls that were lost with the previous owner are repeated, so
   * they stay in progress. Any other unreported call is no longer in progress.
   */
  #lose({ seq, taskId, data: { tokens, costUsd } }: Event<"budget_lost">): void {
    const { recoveries } = this.#facts;
    const last = recoveries.at(-1);
    if (last !== undefined && seq === last.seq + last.lost + 1)
      this.#set({ recoveries: [...recoveries.slice(0, -1), { ...last, lost: last.lost + 1 }] });
    else if (this.#tasks.get(taskId)?.lastCall?.kind === "model") this.#failCall(taskId);
    else this.#endCall(taskId);
    const lost = { calls: 1, tokens, costUsd };
    this.#charge(taskId, { ...lost, lost });
  }

  #ask(event: Event<"approval_request">): void {
    const { approvalId } = event.data;
    const isKnown = this.#asked.get(approvalId)?.decision === null;
    this.#asked.set(approvalId, newQuestion(event));
    if (!isKnown) this.#countQuestions(event.taskId, 1);
  }

  #answer({ at, data: { approvalId, decision } }: Event<"approval_decision">): void {
    const question = this.#asked.get(approvalId);
    if (question === undefined || question.decision !== null) return;
    this.#asked.set(approvalId, { ...question, decision, decidedAt: at });
    this.#countQuestions(question.taskId, -1);
  }

  /**
   * Updates the number of open questions. Questions of an ended task are not counted, because they wait for no
   * answer. The task remembers their number, because it asks them again if it continues.
   */
  #countQuestions(taskId: TaskId, by: number): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return;
    this.#tasks.set(taskId, { ...task, questions: task.questions + by });
    if (task.endedAt === null) this.#set({ questions: this.#facts.questions + by });
  }

  #startCall(taskId: TaskId, kind: "model" | "tool", name: string): void {
    this.#tasks.update(taskId, (task) => ({
      ...task,
      openCalls: task.openCalls + 1,
      lastCall: { kind, name },
      model: kind === "model" ? name : task.model,
    }));
  }

  #endCall(taskId: TaskId): void {
    this.#tasks.update(taskId, (task) => ({ ...task, openCalls: Math.max(0, task.openCalls - 1) }));
  }

  /**
   * Processes a failed attempt of the last model call. The call is no longer in progress, unless another attempt
   * follows.
   */
  #failCall(taskId: TaskId): void {
    const lastCall = this.#tasks.get(taskId)?.lastCall;
    if (lastCall?.kind !== "model" || lastCall.isFailed === true) return;
    this.#endCall(taskId);
    this.#change(taskId, { lastCall: { ...lastCall, isFailed: true } });
  }

  /** Processes the next attempt of the last model call. Its first attempt may have ended as lost. */
  #retryCall(taskId: TaskId, model?: string): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined || task.lastCall?.kind !== "model") return;
    const { openCalls, lastCall } = task;
    this.#change(taskId, {
      openCalls: openCalls + Number(lastCall.isFailed === true),
      lastCall: { kind: "model", name: model ?? lastCall.name },
      ...(model !== undefined && { model }),
    });
  }

  /** Counts a recorded call, which a replay reads from the journal. */
  #record(taskId: TaskId, costUsd: number): void {
    this.#tasks.update(taskId, (task) => ({
      ...task,
      recorded: task.recorded + 1,
      recordedUsd: addUsd(task.recordedUsd, costUsd),
    }));
    const { recorded, recordedUsd } = this.#facts;
    this.#set({ recorded: recorded + 1, recordedUsd: addUsd(recordedUsd, costUsd) });
  }

  /** Resets the number of recorded calls of a task that starts again with an empty journal. */
  #forgetRecorded(taskId: TaskId): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return;
    this.#countRecorded(task, -1);
    this.#change(taskId, { recorded: 0, recordedUsd: 0 });
  }

  /**
   * Updates the number of recorded calls of the run. Calls of an ended task are not counted, because its journal is
   * not replayed unless the task continues.
   */
  #countRecorded(task: TaskView, sign: 1 | -1): void {
    const { recorded, recordedUsd } = this.#facts;
    this.#set({
      recorded: recorded + sign * task.recorded,
      recordedUsd: fromNanoUsd(toNanoUsd(recordedUsd) + sign * toNanoUsd(task.recordedUsd)),
    });
  }

  /** Adds a charge to a task and to all tasks above it (rule B6). If `before` is given, the charge replaces it. */
  #charge(payer: TaskId, spend: Spend, before: Spend = noSpend): void {
    const changed = (sum: Spend): Spend => sumOf(before === noSpend ? sum : without(sum, before), spend);
    this.#tasks.update(payer, (task) => ({ ...task, own: changed(task.own) }));
    for (let taskId: TaskId | null = payer; taskId !== null;) {
      const task: TaskView | undefined = this.#tasks.get(taskId);
      if (task === undefined) return;
      this.#tasks.set(taskId, { ...task, total: changed(task.total) });
      taskId = task.parentId;
    }
  }

  #setSeat(taskId: TaskId, hasSeat: boolean): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined || task.hasSeat === hasSeat) return;
    this.#change(taskId, { hasSeat });
    this.#set({ seats: this.#facts.seats + (hasSeat ? 1 : -1) });
  }

  /**
   * Adds the task of an event if this is its first event. A task that works after its end was resumed or topped up;
   * its status is updated.
   */
  #require(event: Event): void {
    const { taskId, agentId, parentId, at } = event;
    if (this.#add(taskId, agentId, parentId, at) || !continuesTask(event)) return;
    for (let task = this.#tasks.get(taskId); task !== undefined && task.endedAt !== null;) {
      this.#continue(task);
      task = task.parentId === null ? undefined : this.#tasks.get(task.parentId);
    }
  }

  #continue(task: TaskView): void {
    const none = { endedAt: null, result: null, cancelled: null, stoppedAt: null };
    this.#change(task.taskId, { status: "running", ...none });
    this.#countRecorded(task, 1);
    const { live, questions } = this.#facts;
    this.#set({ live: live + 1, questions: questions + task.questions, endedAt: null, status: "running" });
    this.#setSeat(task.taskId, true);
  }

  #add(taskId: TaskId, agentId: string, parentId: TaskId | null, at: number): boolean {
    if (this.#tasks.get(taskId) !== undefined) return false;
    const parent = parentId === null ? undefined : this.#tasks.get(parentId);
    const depth = parent === undefined ? 0 : parent.depth + 1;
    this.#tasks.set(taskId, { ...newTask, taskId, agentId, parentId, depth, createdAt: at });
    if (parent !== undefined) this.#change(parent.taskId, { children: parent.children + 1 });
    const { live, active } = this.#facts;
    this.#set({ live: live + 1, active: active + 1 });
    return true;
  }

  #change(taskId: TaskId, change: Partial<TaskView>): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return;
    const changed = { ...task, ...change };
    this.#tasks.set(taskId, changed);
    const by = Number(isActive(changed)) - Number(isActive(task));
    if (by !== 0) this.#set({ active: this.#facts.active + by });
  }

  #set(change: Partial<RunFactsView>): void {
    this.#facts = { ...this.#facts, ...change };
  }
}

/** Whether the previous owner of the run crashed. If not, it released the run. */
function isCrash({ data: { recoveries } }: Event<"run_recover">): boolean {
  return recoveries !== undefined;
}

/** Whether a task is active: it has not ended, holds a seat and does not wait. */
function isActive({ status }: TaskView): boolean {
  return status === "running" || status === "pausing";
}
