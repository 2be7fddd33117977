import {
  CancellationError,
  capsOfRun,
  Fault,
  rootTaskId as root,
  turnKey,
  type AgentId,
  type CancellationStatus,
  type CrashLoop,
  type EventDraft,
  type Exhaustion,
  type JsonValue,
  type Lease,
  type RunFlow,
  type RunKind,
  type RunRecord,
  type SpawnOutcome,
  type StepAddress,
  type TaskId,
  type TaskOutcome,
} from "../../kernel/index.ts";
import { recordRunEnd, recordTaskEnd, type EndingRun } from "./record-end.ts";
import { withoutSettled } from "./unread-input.ts";
import type { NewTaskOptions } from "../journal/task-record.ts";
import { DeliveryCounts } from "./delivery-counts.ts";
import { type WorkerContext, hostedAgent } from "../process/worker-context.ts";
import { RunCapShare } from "./run-cap-share.ts";
import type { JudgedLosses } from "./crash-recovery.ts";
import { lostReservationEvent, openCalls, RunLedger } from "./run-ledger.ts";
import { branchAbandoned, parentEnded, planResume, type ResumedTask } from "../journal/resume-plan.ts";
import { cancelMail, resumeChange, runsToCancel } from "../journal/run-calls.ts";
import { isInside, type Abandonment } from "../journal/branch-values.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { LiveContext } from "../process/live-contexts.ts";
import { insideTask } from "../process/async-context.ts";
import { restartDelayMs } from "../process/run-retry.ts";
import type { RunState } from "../journal/run-state.ts";
import type { StartedState, TaskState } from "../journal/task-state.ts";
import { isShieldedStep } from "../journal/wait-names.ts";
import { hasPausing, RunHeadcount, type SeatMoves } from "./run-headcount.ts";
import { RunningTasks } from "./running-tasks.ts";
import { StopTimer } from "./stop-timer.ts";
import { TaskAdmission } from "./task-admission.ts";
import { TopUpQuestions } from "./top-up-questions.ts";
import { cancelledOutcome, nextRunsAtEnd } from "../journal/task-end.ts";
import { failedOutcome, runAgentCode, type CodeOutcome } from "../context/run-agent.ts";
import { mailReceived } from "../context/task-inbox.ts";
import { TaskRunner } from "../task/task-runner.ts";
import type { IdleListener, TaskHost } from "../task/task-host.ts";
import type { WaitRegistry } from "../task/wait-registry.ts";

/**
 * Returns the time before which the task does not start. It depends on its start time (L9) and on the delay after a
 * crash of its code.
 */
function startTime({ record, crashes, crashedAt }: TaskState, { runRetry }: WorkerContext): number {
  const restartAt = crashes === 0 ? 0 : crashedAt + (restartDelayMs(crashes, runRetry) ?? 0);
  return Math.max(restartAt, record.startAt ?? 0);
}

/** Receives notifications about the tasks of a run. */
export interface SupervisorListener extends IdleListener {
  /** Called when every task has ended and `run_end` is emitted. */
  finish(): void;
  /** The run cannot continue in this process. */
  fail(fault: Fault): void;
}

export interface TaskSupervisorOptions {
  readonly worker: WorkerContext;
  readonly lease: Lease;
  readonly record: RunRecord;
  readonly state: RunState;
  readonly log: RunLog;
  readonly waits: WaitRegistry;
  readonly listener: SupervisorListener;
  readonly live: LiveContext | undefined;
}

interface EndOptions {
  readonly events?: readonly EventDraft[];
  readonly endedOn?: readonly StepAddress[];
}

/**
 * Starts, cancels, restarts and ends the tasks of one run.
 *
 * States of a task here, and the methods that move it:
 * - unstarted: the task has no runner, because it has no seat, waits for its restart delay, or was just created.
 *   `#start` moves it to running if it holds a seat, and to ended if it is cancelled and has nothing to replay.
 * - running: a `TaskRunner` executes its code. `#handleOutcome` moves it to ended, or back to unstarted after a crash
 *   (`#restart`) or `continueAsNew` (J8).
 * - ended: `#end` has committed its outcome and freed its seat (H4). `reopen` moves it back to unstarted (J5).
 *
 * `close` drops every runner; after that no task changes its state.
 */
export class TaskSupervisor implements TaskHost, SeatMoves {
  readonly tenantId: string | null;
  readonly kind: RunKind;
  readonly flow: RunFlow | undefined;
  readonly turn: string;
  readonly ledger: RunLedger;
  readonly capShare: RunCapShare | undefined;
  readonly waits: WaitRegistry;
  readonly live: LiveContext | undefined;
  readonly seats: RunHeadcount;
  readonly topUps: TopUpQuestions;
  readonly running: RunningTasks;
  readonly deliveries: DeliveryCounts;
  readonly listener: SupervisorListener;
  /**
   * L18, L21: whether this worker must not execute the code of the run. It then only ends tasks that are cancelled.
   */
  executesNothing = false;
  readonly #worker: WorkerContext;
  readonly #lease: Lease;
  readonly #state: RunState;
  readonly #log: RunLog;
  readonly #ending: EndingRun;
  readonly #stopTimer: StopTimer;
  readonly #admission: TaskAdmission;
  /** Pending results of `whenEnded`. Created with the first call. */
  #ends: Map<TaskId, PromiseWithResolvers<TaskOutcome>> | undefined;
  #isClosed = false;

  constructor({ worker, lease, record, state, log, waits, listener, live }: TaskSupervisorOptions) {
    this.tenantId = record.tenantId;
    this.kind = record.kind;
    this.flow = record.flow;
    this.turn = turnKey(record);
    this.waits = waits;
    this.live = live;
    this.listener = listener;
    this.#worker = worker;
    this.#lease = lease;
    this.#state = state;
    this.#log = log;
    this.ledger = new RunLedger(log, state);
    const { unknownPrice } = worker;
    const caps = capsOfRun(worker.caps, worker.agents.get(record.agentId)?.caps);
    this.capShare = caps && new RunCapShare({ log, state, caps, unknownPrice, record });
    this.seats = new RunHeadcount(log, state, this, listener);
    this.topUps = new TopUpQuestions({ hash: worker.hash, log, state, seats: this.seats });
    this.running = new RunningTasks(state, this.seats);
    this.#admission = new TaskAdmission({ worker, state, log, seats: this.seats, ledger: this.ledger });
    this.deliveries = new DeliveryCounts(worker.store.inbox);
    const { tenantId, kind, ledger, deliveries } = this;
    this.#ending = { worker, log, state, tenantId, kind, ledger, deliveries };
    this.#stopTimer = new StopTimer(worker, waits, this);
  }

  spawn(parentId: TaskId, agentId: AgentId, input: JsonValue, options: NewTaskOptions): SpawnOutcome {
    const outcome = this.#admission.spawn(parentId, agentId, input, options);
    if (outcome.kind === "refused") return outcome;
    const { taskId } = outcome.handle;
    // Its seat starts the child. The deadline of a child that waits for a seat is watched from now on as well.
    if (!this.seats.hasSeat(taskId)) this.#start(taskId);
    return outcome;
  }

  /** Resolves with the outcome of the task. Never settles if this process releases the run first. */
  whenEnded(taskId: TaskId): Promise<TaskOutcome> {
    const { outcome } = this.#state.task(taskId);
    if (outcome !== null) return Promise.resolve(outcome);
    this.#ends ??= new Map();
    const end = this.#ends.get(taskId) ?? Promise.withResolvers<TaskOutcome>();
    this.#ends.set(taskId, end);
    return end.promise;
  }

  cancel(taskId: TaskId, reason: string, status: CancellationStatus = "cancelled"): void {
    this.#cancelAll([taskId], reason, status);
  }

  cancelAbandoned(parentId: TaskId, abandoned: Abandonment): boolean {
    const children = this.#state.childrenIn(parentId, abandoned);
    this.#cancelAll(children, branchAbandoned, "cancelled");
    const isLost = ({ startedBy }: StartedState): boolean => isInside(startedBy, abandoned);
    const hasRuns = this.#cancelRuns(this.#state.task(parentId), branchAbandoned, isLost);
    return children.length > 0 || hasRuns;
  }

  /**
   * C1: cancels tasks, and also live tasks below tasks that have already ended. Costs O(tasks of the run), for any
   * number of given tasks.
   */
  #cancelAll(taskIds: readonly TaskId[], reason: string, status: CancellationStatus): void {
    if (taskIds.length === 0) return;
    const reached = new Set(taskIds);
    for (const { record, spawnedBy } of this.#state.tasks.values()) {
      if (record.parentId === null || !reached.has(record.parentId)) continue;
      // C2: a cancel reaches neither the code that is shielded nor what it has spawned.
      if (spawnedBy === undefined || !isShieldedStep(spawnedBy)) reached.add(record.taskId);
    }
    for (const id of reached) this.#cancelOne(id, reason, status);
  }

  askForTopUp(taskId: TaskId, exhaustion: Exhaustion): void {
    this.topUps.ask(taskId, exhaustion);
    this.running.get(taskId)?.activity.settleIfPausing();
  }

  unshield(taskId: TaskId): void {
    const runner = this.running.get(taskId);
    if (runner !== undefined) this.#stopTimer.giveGrace(runner);
  }

  /** Whether the task may have compensations to run, so that its code is executed although it is cancelled. */
  mayCompensate(taskId: TaskId): boolean {
    const { record, steps } = this.#state.task(taskId);
    return steps.size > 0 && this.#worker.agents.get(record.agentId)?.runKind === "workflow";
  }

  /** C1: cancels the runs that a task has started and that have not ended. Returns whether there are such runs. */
  #cancelRuns(
    task: TaskState,
    reason: string,
    isMeant: (run: StartedState) => boolean = () => true,
  ): boolean {
    const runs = runsToCancel(this.#state, task).filter(isMeant);
    if (runs.length === 0) return false;
    const at = this.#worker.clock.now();
    this.#log.add({ mail: runs.map((run) => cancelMail(task, run, reason, at)) }, at);
    return true;
  }

  /** Loads the delivery counts that the run needs before a task starts or ends. Returns `undefined` if there is nothing to load. */
  load(): Promise<void> | undefined {
    return this.deliveries.load(this.#state.tasks.values());
  }

  /**
   * B3, H2: charges the calls that the last owner left in flight, and pauses the tasks that waited only for those
   * calls. `losses` is what is known about the lost owners in a row. Absent if the last owner released the run.
   */
  recover(losses?: JudgedLosses): void {
    const { ledger, headcount } = this.#state;
    const isLeft = openCalls(ledger).length > 0 || ledger.waiting.length > 0 || hasPausing(headcount);
    if (!isLeft && losses === undefined) return;
    const { epoch, workerId: owner } = this.#lease;
    const lost = losses?.lost;
    const data = losses && { recoveries: losses.ended.length, ...(lost !== undefined && { lost }) };
    this.#log.emit(root, { type: "run_recover", data: { epoch, owner, ...data } });
    // L7: from here on the code of the run is executed, until a commit says that it waits.
    if (losses !== undefined) this.#log.noteStanding();
    for (const reservation of openCalls(ledger))
      this.#log.emit(reservation.taskId, lostReservationEvent(reservation));
    this.ledger.apply(root, { type: "crash" });
    this.seats.apply({ type: "crash" });
  }

  /** L7: pauses the run, because the processes that executed it ended again and again. No task ends. */
  pause(crashLoop: CrashLoop): void {
    this.#log.emit(root, { type: "run_pause", data: { by: this.#lease.workerId, crashLoop } });
    this.#log.noteStanding();
  }

  /** Starts every live task that holds a seat and is not running yet. Ends the run if no task is live. */
  startAll(): void {
    for (const taskId of this.#state.tasks.keys()) this.#start(taskId);
    this.finishIfDone();
  }

  /** Continues the tasks of a run that a person had paused. */
  resume(): void {
    for (const runner of this.running.all()) {
      this.waits.rearm(runner.taskId);
      runner.activity.unpark();
    }
    this.startAll();
  }

  /** J5: reopens ended tasks. The same commit makes the records of the faults on which they ended void. */
  reopen(plan: readonly ResumedTask[]): void {
    const reopened = plan.filter((task) => this.#admission.reopen(task));
    const now = this.#worker.clock.now();
    for (const { taskId, runs } of reopened)
      for (const runId of runs) this.#log.add(resumeChange(this.#state.task(taskId), runId, now), now);
    for (const { taskId } of reopened) this.#start(taskId);
  }

  /**
   * Reopens only the root of an ended run, so that its compensations can run. The caller cancels the root, which
   * starts it.
   */
  reopenRoot(): void {
    const own = planResume(this.#state).find(({ taskId }) => taskId === root);
    if (own !== undefined) this.#admission.reopen(own);
  }

  /** Ends every live task with this fault, because the run cannot continue. */
  failAll(fault: Fault): void {
    const outcome = failedOutcome(fault);
    for (const { record } of [...this.#state.tasks.values()].toReversed()) this.#end(record.taskId, outcome);
  }

  /** Drops every runner. Durable records are kept. */
  close(): void {
    this.#isClosed = true;
    this.running.dropAll();
  }

  /** If every task has ended, emits `run_end` with what belongs to the same commit, and reports the end to the listener. */
  finishIfDone(at?: number): void {
    if (this.#isClosed || this.#state.liveTasks > 0) return;
    if (!this.#state.ended) recordRunEnd(this.#ending, at);
    this.listener.finish();
  }

  #start(taskId: TaskId): void {
    try {
      this.#startIfSeated(this.#state.task(taskId));
    } catch (error) {
      this.listener.fail(Fault.from(error));
    }
  }

  #startIfSeated(task: TaskState): void {
    const { record, cancelled } = task;
    const { taskId } = record;
    if (this.#isClosed || task.outcome !== null || this.running.get(taskId) !== undefined) return;
    if (this.executesNothing) {
      if (cancelled === null) return;
      const { reason, status } = cancelled;
      return this.#end(taskId, cancelledOutcome(new CancellationError(reason, { status })));
    }
    const isSeated = this.seats.status(taskId) === "seated";
    if (cancelled !== null && !this.mayCompensate(taskId) && (!isSeated || task.steps.size === 0)) {
      const { reason, status } = cancelled;
      this.#end(taskId, cancelledOutcome(new CancellationError(reason, { status })));
      return;
    }
    this.#stopTimer.watchDeadline(task);
    if (!isSeated) return;
    const worker = this.#worker;
    // L17: the limits of the run do not admit it yet. It is released, and starts with another lease.
    if (this.#lease.isQueued === true && cancelled === null) {
      this.running.delay(taskId);
      return;
    }
    const startAt = startTime(task, worker);
    if (startAt > worker.clock.now() && cancelled === null) {
      this.running.delay(taskId);
      this.waits.at(startAt, () => {
        this.running.endDelay(taskId);
        this.listener.stayAwake();
        this.#start(taskId);
      });
      return;
    }
    const agent = hostedAgent(worker, record.agentId);
    this.#emitStart(task, worker.clock.now());
    const log = this.#log;
    const runner = new TaskRunner({ taskId, agent, worker, log, state: this.#state, host: this });
    this.running.add(runner);
    if (cancelled !== null) this.#stopTimer.giveGrace(runner);
    insideTask(runner.inside, () => this.#execute(runner));
  }

  /**
   * Executes the code of a task. Called inside the async context of the task, which the agent's code and its
   * observers inherit.
   */
  #execute(runner: TaskRunner): void {
    const code = runner.begin().then(() => runAgentCode(runner));
    const handled = code.then((outcome) => this.#handleOutcome(runner, outcome));
    handled.catch((error: unknown) => this.listener.fail(Fault.from(error)));
  }

  /** Emits `task_start` once per task. The owner that starts the code emits it, so that its observers see the event. */
  #emitStart(task: TaskState, at: number): void {
    if (task.isStarted) return;
    const { taskId, supervision, budget, messages } = task.record;
    const data = { priority: supervision.priority, budget };
    this.#log.emit(taskId, { type: "task_start", data }, at, task);
    for (const message of messages) this.#log.emit(taskId, mailReceived(message), at, task);
  }

  #handleOutcome(runner: TaskRunner, outcome: CodeOutcome): void {
    const { taskId } = runner;
    if (runner.isDropped) return;
    if (outcome.kind === "ended") this.#end(taskId, outcome.outcome, outcome);
    else if (outcome.kind === "continues") this.#continueAsNew(runner, outcome.input, outcome.events);
    else this.#restart(runner, outcome.fault, outcome.events);
  }

  /** Restarts a task whose code crashed. Ends the task if it has crashed too often. */
  #restart(runner: TaskRunner, fault: Fault, events: readonly EventDraft[]): void {
    const { taskId, task } = runner;
    const crashes = task.crashes + 1;
    const delayMs = restartDelayMs(crashes, this.#worker.runRetry);
    if (delayMs === null) {
      this.#end(taskId, failedOutcome(fault, runner.output), { events });
      return;
    }
    this.#log.add({ tasks: [{ type: "crash", taskId, crashes }] });
    const data = { attempt: crashes, delayMs, failure: fault.toJSON() };
    this.#log.emit(taskId, { type: "task_retry", data });
    this.#drop(runner);
    this.#start(taskId);
    this.listener.noteIdle();
  }

  /**
   * J8: restarts the task with an empty journal, and with its seat and its account. The reservations of its
   * children are closed.
   */
  #continueAsNew(runner: TaskRunner, input: JsonValue, events: readonly EventDraft[]): void {
    const { taskId } = runner;
    for (const draft of events) this.#log.emit(taskId, draft);
    for (const { record } of this.#state.unreachableBelow(taskId).toReversed())
      if (this.#state.ledger.accounts[record.taskId]?.closed === false)
        this.ledger.apply(taskId, { type: "close", taskId: record.taskId });
    this.#log.add({ tasks: [{ type: "continue", taskId, input }] });
    const { journal } = this.#state.task(taskId);
    this.#log.emit(taskId, { type: "task_continue_as_new", data: { journal } });
    this.#drop(runner);
    this.#start(taskId);
  }

  /** Drops the code of a task that ends or starts again. */
  #drop(runner: TaskRunner): void {
    const { taskId } = runner;
    this.ledger.loseAll(taskId);
    this.running.drop(runner);
    this.#stopTimer.forget(taskId);
  }

  #cancelOne(taskId: TaskId, reason: string, status: CancellationStatus): void {
    const task = this.#state.tasks.get(taskId);
    if (task === undefined || task.outcome !== null || task.cancelled !== null) return;
    this.#log.add({ tasks: [{ type: "cancel", taskId, reason, status }] });
    // A task that undoes its work needs its seat for that.
    this.topUps.answer(taskId, { decision: "denied", reason, by: "runtime" });
    this.#cancelRuns(task, parentEnded, ({ startedBy }) => !isShieldedStep(startedBy));
    const runner = this.running.get(taskId);
    if (runner === undefined) this.#start(taskId);
    else {
      this.#stopTimer.giveGrace(runner);
      runner.token.cancel(reason, status);
    }
  }

  endUnstarted(runner: TaskRunner, stop: CancellationError): void {
    if (this.mayCompensate(runner.taskId)) this.#stopTimer.giveGrace(runner);
    else this.#end(runner.taskId, cancelledOutcome(stop));
  }

  /** H4: ends a task. The commit that ends it also frees its seat, so that a crash cannot leave the seat taken. */
  #end(taskId: TaskId, outcome: TaskOutcome, { events = [], endedOn = [] }: EndOptions = {}): void {
    const task = this.#state.task(taskId);
    if (this.#isClosed || task.outcome !== null) return;
    const at = this.#worker.clock.now();
    this.#emitStart(task, at);
    const runner = this.running.get(taskId);
    const report = runner?.report ?? {};
    const next = nextRunsAtEnd(outcome, report);
    for (const draft of taskId === root ? withoutSettled(this.#state, events, next) : events)
      this.#log.emit(taskId, draft, at, task);
    this.#cancelAll(this.#state.liveChildren(taskId, "cancel"), parentEnded, "cancelled");
    this.#cancelRuns(task, parentEnded);
    const agent = runner?.agent ?? this.#worker.agents.get(task.record.agentId);
    recordTaskEnd(this.#ending, task, { outcome, endedOn, next, report, agent, at });
    if (runner === undefined) this.#stopTimer.forget(taskId);
    else this.#drop(runner);
    this.#ends?.get(taskId)?.resolve(outcome);
    this.#ends?.delete(taskId);
    // The root keeps its seat and its account until the run ends. A task that may be resumed keeps its account.
    if (taskId !== root) {
      if (["completed", "paused"].includes(outcome.status))
        this.ledger.apply(taskId, { type: "close", taskId });
      this.seats.apply({ type: "release", taskId });
    }
    this.finishIfDone(at);
  }

  onYield(taskId: TaskId): void {
    const runner = this.running.get(taskId);
    if (runner === undefined) this.seats.settle(taskId);
    else runner.activity.settleIfPausing();
  }

  onSeat(taskId: TaskId): void {
    this.waits.rearm(taskId);
    this.listener.stayAwake();
    this.running.get(taskId)?.activity.unpark();
    this.#start(taskId);
  }

  /**
   * H5: called when a task is preempted. A task with `onPause: "return-partial"` ends; a task that waits for a
   * larger budget does not.
   */
  onPause(taskId: TaskId): void {
    if (this.#state.headcount.tasks[taskId]?.heldFor !== undefined) return;
    if (this.#state.task(taskId).record.onPause !== "return-partial") return;
    const output = this.running.get(taskId)?.output ?? null;
    this.#end(taskId, { status: "paused", output, failure: null });
  }
}
