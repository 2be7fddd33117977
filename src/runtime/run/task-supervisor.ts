import {
  CancellationError,
  Fault,
  formatTaskId,
  rootTaskId as root,
  type AgentId,
  type CancellationStatus,
  type Decision,
  type EventDraft,
  type HeadcountCommand,
  type JsonValue,
  type Lease,
  type LedgerCommand,
  type Priority,
  type ReserveCommand,
  type SeatStatus,
  type SpawnOptions,
  type SpawnOutcome,
  type StepAddress,
  type StepRecord,
  type TaskId,
  type TaskOutcome,
} from "../../kernel/index.ts";
import { carryOver } from "./unread-input.ts";
import { childrenOf, childTaskRecord, ownBudget, openAccountCommand } from "../journal/task-record.ts";
import { sessionChangesAtEnd, historyToErase } from "../journal/history-retention.ts";
import { DeliveryCounts } from "./delivery-counts.ts";
import { hostedAgent, type WorkerContext } from "../process/worker-context.ts";
import { RunLedger } from "./run-ledger.ts";
import { lostCallEvents } from "../journal/lost-calls.ts";
import { parentEnded, type ResumedTask } from "../journal/resume-plan.ts";
import type { RunLog } from "../journal/run-log.ts";
import { insideTask } from "../process/async-context.ts";
import { restartDelayMs } from "../process/run-retry.ts";
import type { RunState, TaskState } from "../journal/run-state.ts";
import { Seats, type SeatMoves } from "./seats.ts";
import { StopTimer } from "./stop-timer.ts";
import { answersOf, cancelledOutcome, endEvents, runEnd } from "../journal/task-end.ts";
import { failedOutcome, runAgentCode, type CodeOutcome } from "../context/run-agent.ts";
import { mailReceived } from "../context/task-inbox.ts";
import { TaskRunner } from "../task/task-runner.ts";
import type { TaskHost } from "../task/task-host.ts";
import type { IdleListener } from "../task/idle-listener.ts";
import { asksPerson, resolutionsTaken } from "../journal/wait-names.ts";
import type { AwaitedName, Due, Wait, WaitRegistry } from "../task/wait-registry.ts";

export interface TaskSupervisorOptions {
  readonly worker: WorkerContext;
  readonly lease: Lease;
  readonly tenantId: string | null;
  readonly state: RunState;
  readonly log: RunLog;
  readonly waits: WaitRegistry;
  readonly rest: IdleListener;
}

interface EndOptions {
  readonly told?: readonly EventDraft[];
  readonly endedOn?: readonly StepAddress[];
}

const none: readonly never[] = [];

/** The tasks of one run at work: who starts, who stops whom (C1), whom a seat goes to (H), what an end leaves behind. */
export class TaskSupervisor implements TaskHost, SeatMoves {
  readonly tenantId: string | null;
  readonly rest: IdleListener;
  readonly #worker: WorkerContext;
  readonly #lease: Lease;
  readonly #state: RunState;
  readonly #log: RunLog;
  readonly #waits: WaitRegistry;
  readonly #purse: RunLedger;
  readonly #stopClock: StopTimer;
  readonly #seats: Seats;
  readonly deliveries: DeliveryCounts;
  readonly #runners = new Map<TaskId, TaskRunner>();
  /** Of those that somebody waits for. */
  #ends: Map<TaskId, PromiseWithResolvers<TaskOutcome>> | undefined;
  #closed = false;
  /** Nothing new is started: the owner is about to let go. */
  #draining = false;

  constructor({ worker, lease, tenantId, state, log, waits, rest }: TaskSupervisorOptions) {
    this.tenantId = tenantId;
    this.#worker = worker;
    this.#lease = lease;
    this.#state = state;
    this.#log = log;
    this.#waits = waits;
    this.rest = rest;
    this.#purse = new RunLedger(log, state);
    this.#stopClock = new StopTimer(worker, waits, this);
    this.deliveries = new DeliveryCounts(worker.store.inbox);
    this.#seats = new Seats(log, state, this);
  }

  /** All there is to do is wait. `rests`: also if some of it waits for other runs. */
  only(waits: "idle" | "rests"): boolean {
    let lives = false;
    for (const { record, outcome } of this.#state.tasks.values()) {
      if (outcome !== null) continue;
      if (this.#runners.get(record.taskId)?.[waits] === false) return false;
      lives = true;
    }
    return lives;
  }

  get atWork(): boolean {
    for (const runner of this.#runners.values()) if (runner.atWork) return true;
    return false;
  }

  seatOf(taskId: TaskId): SeatStatus {
    if (this.#state.paused || this.#draining) return "paused";
    return this.#state.headcount.tasks[taskId]?.status ?? "paused";
  }

  priorityOf(taskId: TaskId): Priority {
    return this.#seats.find(taskId)?.priority ?? this.#state.task(taskId).record.supervision.priority;
  }

  settle(taskId: TaskId): void {
    if (this.#state.headcount.tasks[taskId]?.status === "pausing") this.#seats.settle(taskId);
  }

  suspend(taskId: TaskId, waitsFor: readonly AwaitedName[]): void {
    this.#seats.suspend(taskId, waitsFor);
  }

  wake(taskId: TaskId, by: string): void {
    this.rest.stayAwake();
    this.#seats.wake(taskId, by);
  }

  spawn(parentId: TaskId, agentId: AgentId, input: JsonValue, options: SpawnOptions): SpawnOutcome {
    const agent = hostedAgent(this.#worker, agentId);
    const taskId = formatTaskId(this.#state.nextTask);
    const now = this.#worker.clock.now();
    const task = childTaskRecord(this.#state.task(parentId), { ...options, taskId, agent, input, now });
    const { priority } = task.supervision;
    const waits = options.onFull === "wait" ? ({ waits: "pending" } as const) : undefined;
    const outcome = this.#seats.acquire({ type: "acquire", taskId, parentId, priority, ...waits });
    if (outcome.kind === "refused") {
      const { reason, holders } = outcome;
      this.#log.emit(parentId, { type: "spawn_refuse", data: { agentId, priority, reason, holders } });
      return { kind: "refused", reason, holders };
    }
    const data = { childTaskId: taskId, agentId, priority };
    this.#log.emit(
      parentId,
      outcome.kind === "pending"
        ? { type: "spawn_wait", data: { ...data, victim: outcome.victim } }
        : { type: "spawn_start", data },
    );
    this.#log.add({ tasks: [{ type: "create", task }] });
    this.#log.applyLedger(
      openAccountCommand(this.#worker, { taskId, parentId, budget: ownBudget(agent, options), priority }),
    );
    this.#seats.follow(outcome, taskId);
    return { kind: "spawned", handle: { taskId, agentId } };
  }

  whenEnded(taskId: TaskId): Promise<TaskOutcome> {
    const { outcome } = this.#state.task(taskId);
    if (outcome !== null) return Promise.resolve(outcome);
    this.#ends ??= new Map();
    const end = this.#ends.get(taskId) ?? Promise.withResolvers<TaskOutcome>();
    this.#ends.set(taskId, end);
    return end.promise;
  }

  /** C1: also what ended tasks below it left behind. */
  cancel(taskId: TaskId, reason: string, status: CancellationStatus = "cancelled"): void {
    const reached = new Set<TaskId>([taskId]);
    for (const { record } of this.#state.tasks.values()) {
      if (record.parentId !== null && reached.has(record.parentId)) reached.add(record.taskId);
    }
    for (const each of reached) this.#cancelOne(each, reason, status);
  }

  wait(taskId: TaskId, name: string, due?: Due, clock?: TaskId): Wait {
    return this.#waits.wait(taskId, name, due, clock);
  }

  recorded(step: StepRecord): void {
    if (step.kind === "llm" || step.kind === "tool") return;
    const taken = resolutionsTaken(step);
    if (taken !== undefined) this.#waits.taken(step.taskId, taken.wait);
    if (asksPerson(step.address)) this.#waits.rearm(step.taskId);
  }

  reserve(taskId: TaskId, command: ReserveCommand): Decision | undefined {
    return this.#purse.reserve(taskId, command);
  }

  decided(reservationId: string): Promise<Decision> {
    return this.#purse.decided(reservationId);
  }

  book(taskId: TaskId, command: LedgerCommand): void {
    this.#purse.book(taskId, command);
  }

  lose(taskId: TaskId, reservationId: string): void {
    this.#purse.lose(taskId, reservationId);
  }

  seat(command: HeadcountCommand): void {
    this.#seats.step(command);
  }

  /** What it needs to know from outside before anything of it starts or ends. */
  load(): Promise<void> | undefined {
    return this.deliveries.load(this.#state.tasks.values());
  }

  /** B3, H2: what the last owner had open is lost, and whoever was pausing has no call open any more. */
  recover(): void {
    const lost = lostCallEvents(this.#state, this.#lease.epoch);
    if (lost.length === 0) return;
    for (const { taskId, draft } of lost) this.#log.emit(taskId, draft);
    this.#purse.book(root, { type: "crash" });
    this.seat({ type: "crash" });
  }

  startAll(): void {
    for (const taskId of this.#state.tasks.keys()) this.#start(taskId);
    this.finishIfDone();
  }

  /** A person paused the run; what is in a call finishes it. */
  pause(): void {
    for (const runner of this.#runners.values()) runner.settleIfPausing();
  }

  /** It may go on. */
  goOn(): void {
    for (const [taskId, runner] of this.#runners) {
      this.#waits.rearm(taskId);
      runner.unpark();
    }
    this.startAll();
  }

  /** J5: takes back the faults tasks ended on, in one commit with their being open again. */
  reopen(plan: readonly ResumedTask[]): void {
    const reopened = plan.filter(({ taskId, voids }) => this.#reopenOne(taskId, voids));
    for (const { taskId } of reopened) this.#start(taskId);
  }

  /** Ends what has not ended: the run cannot be gone on with. */
  failAll(fault: Fault): void {
    const outcome = failedOutcome(fault);
    for (const { record } of [...this.#state.tasks.values()].toReversed()) this.#end(record.taskId, outcome);
  }

  drain(): void {
    this.#draining = true;
  }

  close(): void {
    this.#closed = true;
    if (this.#runners.size === 0) return;
    for (const runner of this.#runners.values()) runner.drop();
    this.#runners.clear();
  }

  finishIfDone(at?: number): void {
    const state = this.#state;
    if (this.#closed || state.live > 0) return;
    if (!state.ended) {
      carryOver({ worker: this.#worker, log: this.#log, state, tenantId: this.tenantId });
      const forgotten = historyToErase(state);
      if (forgotten !== undefined) this.#log.add(forgotten, at);
      this.#log.emit(root, runEnd(state), at);
    }
    this.rest.finish();
  }

  #start(taskId: TaskId): void {
    try {
      this.#startIfSeated(this.#state.task(taskId));
    } catch (error) {
      this.rest.fail(Fault.from(error));
    }
  }

  #startIfSeated(task: TaskState): void {
    const { record, cancelled } = task;
    const { taskId } = record;
    if (this.#closed || task.outcome !== null || this.#runners.has(taskId)) return;
    const seated = this.seatOf(taskId) === "seated";
    if (cancelled !== null && (!seated || task.steps.size === 0)) {
      const { reason, status } = cancelled;
      this.#end(taskId, cancelledOutcome(new CancellationError(reason, { status })));
      return;
    }
    if (!seated) return;
    const worker = this.#worker;
    const startAt = task.crashedAt + (restartDelayMs(task.crashes, worker.runRetry) ?? 0);
    if (task.crashes > 0 && startAt > worker.clock.now() && cancelled === null) {
      this.#waits.at(startAt, () => {
        this.rest.stayAwake();
        this.#start(taskId);
      });
      return;
    }
    const agent = hostedAgent(worker, record.agentId);
    this.#begin(task, worker.clock.now());
    const runner = new TaskRunner({ taskId, agent, worker, log: this.#log, state: this.#state, tree: this });
    this.#runners.set(taskId, runner);
    this.#stopClock.watchDeadline(task);
    if (cancelled !== null) this.#stopClock.giveGrace(runner);
    insideTask(runner.inside, () => this.#follow(runner));
  }

  /** Inside the run, for whoever asks: its code, and those who are shown what it came to. */
  #follow(runner: TaskRunner): void {
    const begun = runner.begin().then(() => runAgentCode(runner));
    const met = begun.then((fate) => this.#meet(runner, fate));
    met.catch((error: unknown) => this.rest.fail(Fault.from(error)));
  }

  /** Once, by whoever owns the run then, so that its observers are told. */
  #begin(task: TaskState, at: number): void {
    if (task.begun) return;
    const { taskId, supervision, budget, messages } = task.record;
    const data = { priority: supervision.priority, budget };
    this.#log.emit(taskId, { type: "task_start", data }, at, task);
    for (const message of messages) this.#log.emit(taskId, mailReceived(message), at, task);
  }

  /** Its code has come to this. */
  #meet(runner: TaskRunner, fate: CodeOutcome): void {
    const { taskId } = runner;
    if (runner.isDropped) return;
    if (fate.kind === "ended") this.#end(taskId, fate.outcome, fate);
    else if (fate.kind === "continues") this.#continueAsNew(runner, fate.input, fate.told);
    else this.#restart(runner, fate.fault, fate.told);
  }

  /** Until it has crashed too often. */
  #restart(runner: TaskRunner, fault: Fault, told: readonly EventDraft[]): void {
    const { taskId, task } = runner;
    const crashes = task.crashes + 1;
    const delayMs = restartDelayMs(crashes, this.#worker.runRetry);
    if (delayMs === null) {
      this.#end(taskId, failedOutcome(fault, runner.output), { told });
      return;
    }
    this.#log.add({ tasks: [{ type: "crash", taskId, crashes }] });
    const data = { attempt: crashes, delayMs, failure: fault.toJSON() };
    this.#log.emit(taskId, { type: "task_retry", data });
    this.#leave(runner);
    this.#start(taskId);
    this.rest.noteIdle();
  }

  /** J8: the same task, seat and purse, on an empty journal. */
  #continueAsNew(runner: TaskRunner, input: JsonValue, told: readonly EventDraft[]): void {
    const { taskId } = runner;
    for (const draft of told) this.#log.emit(taskId, draft);
    this.#log.add({ tasks: [{ type: "continue", taskId, input }] });
    const { journal } = this.#state.task(taskId);
    this.#log.emit(taskId, { type: "task_continue_as_new", data: { journal } });
    this.#leave(runner);
    this.#start(taskId);
  }

  /** Its code does not go on from where it is. */
  #leave(runner: TaskRunner): void {
    const { taskId } = runner;
    this.#purse.loseAll(taskId);
    runner.drop();
    this.#runners.delete(taskId);
    this.#waits.forgetTask(taskId);
  }

  #cancelOne(taskId: TaskId, reason: string, status: CancellationStatus): void {
    const task = this.#state.tasks.get(taskId);
    if (task === undefined || task.outcome !== null || task.cancelled !== null) return;
    this.#log.add({ tasks: [{ type: "cancel", taskId, reason, status }] });
    const runner = this.#runners.get(taskId);
    if (runner === undefined) this.#start(taskId);
    else {
      this.#stopClock.giveGrace(runner);
      runner.token.cancel(reason, status);
    }
  }

  endUnbegun({ taskId }: TaskRunner, stop: CancellationError): void {
    this.#end(taskId, cancelledOutcome(stop));
  }

  /** H4: frees the seat in the commit that ends the task, whoever crashed. */
  #end(taskId: TaskId, outcome: TaskOutcome, { told = [], endedOn = [] }: EndOptions = {}): void {
    const task = this.#state.task(taskId);
    if (this.#closed || task.outcome !== null) return;
    const at = this.#worker.clock.now();
    this.#begin(task, at);
    for (const draft of told) this.#log.emit(taskId, draft, at, task);
    for (const child of childrenOf(this.#state, taskId, "cancel")) this.cancel(child, parentEnded);
    const change = { type: "end", taskId, outcome, ...(endedOn.length === 0 ? {} : { endedOn }) } as const;
    const runner = this.#runners.get(taskId);
    const sessions = sessionChangesAtEnd(task, outcome, runner?.report ?? {}, this.#state);
    this.#log.add(sessions.length === 0 ? { tasks: [change] } : { tasks: [change], sessions }, at);
    const answers = answersOf(task, outcome, this.#lease.runId, at);
    for (const each of answers?.inbox ?? none)
      if (each.type === "nack")
        for (const draft of this.deliveries.handBack(each.messageIds)) this.#log.emit(taskId, draft);
    this.#purse.loseAll(taskId);
    for (const draft of endEvents(task, outcome)) this.#log.emit(taskId, draft, at, task);
    if (answers !== undefined) this.#log.add(answers, at);
    if (runner !== undefined) this.#leave(runner);
    this.#ends?.get(taskId)?.resolve(outcome);
    this.#ends?.delete(taskId);
    // The root keeps its seat and its purse for as long as there is a run; what may be resumed keeps its purse.
    if (taskId !== root) {
      if (["completed", "paused"].includes(outcome.status)) this.#log.applyLedger({ type: "close", taskId });
      this.seat({ type: "release", taskId });
    }
    this.finishIfDone(at);
  }

  #reopenOne(taskId: TaskId, voids: ResumedTask["voids"]): boolean {
    const { record, given } = this.#state.task(taskId);
    const { agentId, parentId, budget, supervision } = record;
    const { priority } = supervision;
    if (parentId !== null) {
      const outcome = this.#seats.acquire({ type: "acquire", taskId, parentId, priority, waits: "paused" });
      if (outcome.kind === "refused" || outcome.kind === "ignored") return false;
      this.#seats.follow(outcome);
      if (this.#state.ledger.accounts[taskId] === undefined)
        this.#log.applyLedger(openAccountCommand(this.#worker, { taskId, parentId, budget, priority }));
    }
    this.#log.add({
      voids: voids.map((address) => ({ taskId, address })),
      tasks: [{ type: "reopen", taskId }],
    });
    // What it had handed back is its own again, unless another run has it by now.
    const messageIds = given.map(({ id }) => id);
    if (messageIds.length > 0) this.#log.add({ inbox: [{ type: "take", agentId, messageIds }] });
    return true;
  }

  onYield(taskId: TaskId): void {
    const runner = this.#runners.get(taskId);
    if (runner === undefined) this.#seats.settle(taskId);
    else runner.settleIfPausing();
  }

  onSeat(taskId: TaskId): void {
    this.#waits.rearm(taskId);
    this.rest.stayAwake();
    this.#runners.get(taskId)?.unpark();
    this.#start(taskId);
  }

  /** H5: with `return-partial` a paused task is over. */
  onPause(taskId: TaskId): void {
    if (this.#state.task(taskId).record.onPause !== "return-partial") return;
    const output = this.#runners.get(taskId)?.output ?? null;
    this.#end(taskId, { status: "paused", output, failure: null });
  }
}
