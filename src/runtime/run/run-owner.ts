import {
  Fault,
  rootTaskId as root,
  type AgentId,
  type EventDraft,
  type FaultCode,
  type JsonValue,
  type Lease,
  type DriveResult,
  type PlacedMail,
  type Priority,
  type Rest,
  type RunId,
  type RunRecord,
  type TaskId,
} from "../../kernel/index.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import { planResume } from "../journal/resume-plan.ts";
import { RunObservers, type ObservedLog } from "./run-observers.ts";
import { RunLog, type LogWriter } from "../journal/run-log.ts";
import { RunState } from "../journal/run-state.ts";
import { TaskSupervisor, type SupervisorListener } from "./task-supervisor.ts";
import { submittedAs } from "../journal/wait-names.ts";
import { taskOfApproval } from "../journal/wait-names.ts";
import { approvalWait, queueWait, signalOf } from "../journal/wait-names.ts";
import { WaitRegistry } from "../task/wait-registry.ts";

/** By which a store says that it is the commit, not the store: an entry without its parent, what is no JSON. */
const refusals: ReadonlySet<FaultCode> = new Set<FaultCode>(["not_json", "not_found", "invalid_argument"]);

function missing({ runId }: Lease): Fault {
  return new Fault("not_found", `there is no run ${runId} in this store`);
}

/** One run while this process has it: reads its mail, lets its tree work, and lets go when all there is to do is wait. */
export class RunOwner implements SupervisorListener, LogWriter, ObservedLog {
  readonly #worker: WorkerContext;
  readonly #lease: Lease;
  readonly #record: RunRecord;
  readonly #state: RunState;
  readonly #observers: RunObservers;
  readonly #log: RunLog;
  readonly #waits: WaitRegistry;
  readonly #supervisor: TaskSupervisor;
  readonly #left = Promise.withResolvers<DriveResult>();
  #restTimer: (() => void) | undefined;
  /** As this worker counts it: then it takes no room. */
  #isIdle = false;
  #reading: Promise<void> | undefined;
  #readAgain = false;
  /** Its tasks were started, as far as they could be. */
  #isStarted = false;
  /** Its last commit is under way: what is said to it now is for whoever has it next (L3). */
  #isReleasing = false;
  #over = false;
  #refusal: Fault | undefined;

  private constructor(worker: WorkerContext, lease: Lease, record: RunRecord, state: RunState) {
    this.#worker = worker;
    this.#lease = lease;
    this.#record = record;
    this.#state = state;
    const { store, clock, idleFlusher: idleWrites } = worker;
    const waits = new WaitRegistry(clock, state);
    const observers = new RunObservers(worker, state, this);
    const log = new RunLog({ store, lease, state, clock, idleWrites, observers, writer: this });
    this.#waits = waits;
    this.#observers = observers;
    this.#log = log;
    const { tenantId } = record;
    this.#supervisor = new TaskSupervisor({ worker, lease, tenantId, state, log, waits, listener: this });
  }

  /** Whether what an observer tells was taken into the run's log. */
  tellObserved(taskId: TaskId, draft: EventDraft): boolean {
    if (this.#over || this.#state.ended) return false;
    this.#log.emit(taskId, draft);
    return true;
  }

  broken(fault: Fault): void {
    if (refusals.has(fault.code)) this.#refusal = fault;
    this.fail(fault);
  }

  /** Costs O(commits of the run). At once, where nothing has to be waited for. */
  static load(worker: WorkerContext, lease: Lease): RunOwner | Promise<RunOwner> {
    const history = worker.store.journal.readNow?.(lease.runId);
    if (history === undefined) return RunOwner.#read(worker, lease);
    const state = new RunState(worker.unknownPrice);
    for (const commit of history.commits) state.fold(commit);
    return new RunOwner(worker, lease, history.run, state);
  }

  static async #read(worker: WorkerContext, lease: Lease): Promise<RunOwner> {
    const { journal } = worker.store;
    const record = await journal.find(lease.runId);
    if (record === undefined) throw missing(lease);
    const state = new RunState(worker.unknownPrice);
    if (journal.readPages === undefined) {
      for await (const commit of journal.read(lease.runId)) state.fold(commit);
    } else {
      for await (const page of journal.readPages(lease.runId)) for (const commit of page) state.fold(commit);
    }
    return new RunOwner(worker, lease, record, state);
  }

  /**
   * Works on the run until it rests. Rejects when the run was lost or its store fails; with `version_mismatch` when it is for a worker
   * of another version (J9). `refusal`: what the store refused of it the last time; it fails by that.
   */
  drive(refusal?: Fault): Promise<DriveResult> {
    this.#start(refusal).catch((error: unknown) => this.fail(Fault.from(error)));
    return this.#left.promise;
  }

  async #start(refusal: Fault | undefined): Promise<void> {
    const mismatch = this.#findVersionMismatch();
    if (mismatch !== undefined && this.#worker.versionPolicy === "pin") throw mismatch;
    const loading = this.#supervisor.load();
    if (loading !== undefined) await loading;
    if (!this.#state.ended) this.#supervisor.recover();
    const reading = this.#readMail();
    if (reading !== undefined) await reading;
    if (this.#over) return;
    if (mismatch !== undefined && this.#worker.versionPolicy === "refuse") this.#supervisor.failAll(mismatch);
    if (refusal !== undefined) this.#supervisor.failAll(refusal);
    this.#supervisor.startAll();
    this.#isStarted = true;
    this.noteIdle();
  }

  /** Whether it may be gone on with or not. */
  get hasEnded(): boolean {
    return this.#state.ended;
  }

  /** What the store will not take of it, however often it is tried: the run is to end by it. */
  get refusal(): Fault | undefined {
    return this.#refusal;
  }

  /** Whoever observes its agents here has dealt with all that was told so far. At once, if nobody does. */
  observed(): Promise<void> | undefined {
    const { runId } = this.#lease;
    const writing = this.#log.written();
    if (writing === undefined) return this.#observers.settled(runId);
    return writing.then(() => this.#observers.settled(runId));
  }

  /** There may be mail, or another owner. */
  poke(): void {
    this.#look().catch((error: unknown) => this.fail(Fault.from(error)));
  }

  /** Lets everything go; what is durable stays. Calls that are open get `graceMs` to settle; those that do not are repeated. */
  async release(graceMs = 0): Promise<void> {
    if (this.#over) return;
    this.#supervisor.seats.drain();
    const { clock } = this.#worker;
    const end = clock.now() + graceMs;
    while (!this.#over && this.#supervisor.hasCalls && !this.#supervisor.isResting && clock.now() < end)
      await this.#sleep(Math.min(end, clock.now() + 10));
    await this.#release({ kind: "ready" });
  }

  #sleep(untilMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#worker.clock.schedule(untilMs, resolve);
    });
  }

  /** J9: of the root and of every task that has not ended. */
  #findVersionMismatch(): Fault | undefined {
    const { agentId, agentVersion } = this.#record;
    const ofRoot = this.#versionMismatch(agentId, agentVersion);
    if (ofRoot !== undefined) return ofRoot;
    for (const { record, outcome } of this.#state.tasks.values()) {
      if (record.parentId === null || outcome !== null) continue;
      const found = this.#versionMismatch(record.agentId, record.agentVersion ?? null);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #versionMismatch(agentId: AgentId, started: string | null): Fault | undefined {
    const here = this.#worker.agents.get(agentId)?.version ?? null;
    if (here === started) return undefined;
    return new Fault(
      "version_mismatch",
      `${this.#record.runId} was started by version ${started ?? "none"} of ${agentId}; here it has version ${here ?? "none"}`,
      { details: { agentId, started, here } },
    );
  }

  /** If all there is to do is wait, the run takes no room; and is let go after a while, unless it waits for another. */
  noteIdle(): void {
    if (!this.#isStarted || this.#over || this.#restTimer !== undefined || !this.#supervisor.isResting)
      return;
    this.#countIdle(true);
    if (!this.#supervisor.isIdle) return;
    const { clock, suspendAfterMs } = this.#worker;
    this.#restTimer = clock.schedule(clock.now() + suspendAfterMs, () => {
      this.#restTimer = undefined;
      if (this.#supervisor.isIdle) void this.#suspend();
    });
  }

  stayAwake(): void {
    this.#restTimer?.();
    this.#restTimer = undefined;
    this.#countIdle(false);
  }

  #countIdle(isIdle: boolean): void {
    if (this.#isIdle === isIdle) return;
    this.#isIdle = isIdle;
    this.#worker.noteIdle(isIdle ? 1 : -1);
  }

  /** A paused run wakes by mail alone. */
  async #suspend(): Promise<void> {
    const wakeAt = this.#state.paused ? null : this.#waits.nextTime;
    await this.#release({ kind: "suspended", wakeAt }, () => this.#supervisor.isIdle);
  }

  /** What can be gone on with waits for an order; what cannot has ended for good. */
  finish(): void {
    if (this.#isReleasing) return;
    const completed = this.#state.task(root).outcome?.status === "completed";
    const rest: Rest = completed ? { kind: "ended" } : { kind: "suspended", wakeAt: null };
    const released = this.#log.flushAndRelease(rest);
    if (released === undefined) void this.#release(rest, () => this.#state.ended);
    else {
      this.#isReleasing = true;
      void this.#leaveOnce(released, rest);
    }
  }

  /** That it is released is durable with its last commit; if that cannot be, the run is given up. */
  async #leaveOnce(released: Promise<void>, rest: Rest): Promise<void> {
    try {
      await released;
    } catch (error) {
      this.fail(Fault.from(error));
    }
    if (!this.#over) this.#finishWith(rest, true);
  }

  /** A run that is in a call may not write for long: its loss is not to wait for that. */
  async #look(): Promise<void> {
    await this.#readMail();
    if (!this.#over && !this.#isReleasing && this.#supervisor.hasCalls)
      await this.#worker.store.leases.check(this.#lease);
  }

  /** Resolves when all mail there is by now was dealt with. Nothing to wait for where there is none. */
  #readMail(): Promise<void> | undefined {
    if (this.#isReleasing) return undefined;
    if (this.#reading === undefined && this.#hasNoMail()) {
      this.noteIdle();
      return undefined;
    }
    this.#readAgain = true;
    return (this.#reading ??= this.#handleNewMail());
  }

  /** As far as it can be told at once. */
  #hasNoMail(): boolean {
    return this.#worker.store.mailbox.readNow?.(this.#lease.runId)?.length === 0;
  }

  async #handleNewMail(): Promise<void> {
    try {
      while (this.#readAgain && !this.#over) {
        this.#readAgain = false;
        const mail = await this.#worker.store.mailbox.read(this.#lease.runId);
        if (this.#isReleasing) return;
        if (mail.length > 0) await this.#handleMail(mail);
        this.noteIdle();
      }
    } finally {
      this.#reading = undefined;
    }
  }

  async #handleMail(mail: readonly PlacedMail[]): Promise<void> {
    for (const each of mail) {
      if (this.#over || this.#isReleasing || each.place <= this.#state.mailThrough) continue;
      // What a task ended on is durable before it is taken back: a void is of an earlier commit.
      if (each.body.type === "resume" || each.body.type === "top_up") await this.#log.flush();
      if (this.#isReleasing) return;
      this.#log.add({ mailThrough: each.place });
      this.stayAwake();
      this.#applyMail(each);
    }
    // An order to a run that has ended does not keep it here.
    this.#supervisor.finishIfDone();
  }

  #applyMail({ id, body, from }: PlacedMail): void {
    if (this.#state.ended && this.#comesTooLate(body.type)) return;
    switch (body.type) {
      case "resolve": {
        const signal = signalOf(body.wait);
        if (signal !== undefined && this.#state.tasks.has(body.taskId))
          this.#log.emit(body.taskId, { type: "task_signal", data: { name: signal, by: from } });
        this.#resolve(body.taskId, body.wait, body.value);
        break;
      }
      case "approval": {
        const { approvalId, decision } = body;
        const taskId = taskOfApproval(approvalId) as TaskId;
        this.#resolve(taskId, approvalWait(approvalId), { ...decision, by: from });
        break;
      }
      case "cancel":
        this.#log.emit(root, { type: "run_cancel", data: { reason: body.reason, by: from } });
        this.#supervisor.cancel(body.taskId, body.reason);
        break;
      case "top_up":
        this.#topUp(body, from);
        break;
      case "resume":
        this.#log.emit(root, { type: "run_resume", data: { by: from } });
        this.#supervisor.reopen(planResume(this.#state));
        this.#supervisor.resume();
        break;
      case "pause":
        this.#log.emit(root, { type: "run_pause", data: { by: from } });
        this.#supervisor.pause();
        break;
      case "reprioritize":
        this.#reprioritize(body.taskId, body.priority, from);
        break;
      case "message":
        this.#resolve(root, body.type, body.message as unknown as JsonValue);
        break;
      case "steer":
      case "follow_up":
        this.#log.emit(root, { type: "run_steer", data: { kind: body.type, input: body.input, by: from } });
        this.#resolve(root, queueWait(body.type), body.input, submittedAs(id));
        break;
    }
  }

  /** Of a run that has ended, nothing can be stopped; of one that completed, nothing can be gone on with. What is said to it is heard (S5). */
  #comesTooLate(order: PlacedMail["body"]["type"]): boolean {
    if (order === "steer" || order === "follow_up") return false;
    const isCompleted = this.#state.task(root).outcome?.status === "completed";
    return isCompleted || order === "cancel" || order === "pause";
  }

  #topUp({ taskId, add }: Extract<PlacedMail["body"], { type: "top_up" }>, by: string): void {
    this.#log.emit(root, { type: "budget_top_up", data: { taskId, add, by } });
    this.#supervisor.ledger.apply(taskId, { type: "topUp", taskId, add });
    const plan = planResume(this.#state);
    const ranOut = ({ taskId: each }: { readonly taskId: TaskId }): boolean =>
      this.#state.task(each).outcome?.failure?.code === "budget_exhausted";
    if (plan.some(ranOut)) this.#supervisor.reopen(plan);
  }

  #resolve(taskId: TaskId, wait: string, value: JsonValue, runId?: RunId): void {
    if (!this.#state.tasks.has(taskId)) return;
    this.#log.add({ resolves: [{ taskId, wait, value, ...(runId && { runId }) }] });
    this.#waits.serve(taskId, wait);
  }

  #reprioritize(taskId: TaskId, to: Priority, by: string): void {
    const from = this.#state.headcount.tasks[taskId]?.priority;
    if (from === undefined) return;
    this.#log.emit(root, { type: "task_reprioritize", data: { taskId, from, to, by } });
    this.#supervisor.ledger.apply(taskId, { type: "reprioritize", taskId, priority: to });
    this.#supervisor.seats.apply({ type: "reprioritize", taskId, priority: to });
  }

  /** The run cannot be written to: nothing of it may run on here. */
  fail(fault: Fault): void {
    if (this.#over) return;
    this.#close();
    // Whoever drives may not be listening yet.
    this.#left.promise.catch(() => undefined);
    this.#left.reject(fault);
  }

  /** Unless it has something to do again by the time all is durable; if that cannot be, the run is given up. */
  async #release(rest: Rest, stillSo = (): boolean => true): Promise<void> {
    try {
      const flushed = this.#log.flush();
      if (flushed !== undefined) await flushed;
    } catch (error) {
      this.fail(Fault.from(error));
    }
    if (this.#over || !stillSo()) return;
    this.#finishWith(rest, false);
  }

  #finishWith(rest: Rest, isReleased: boolean): void {
    this.#close();
    this.#left.resolve({ rest, isReleased });
  }

  #close(): void {
    this.#over = true;
    this.stayAwake();
    this.#waits.forget();
    this.#log.close();
    this.#supervisor.close();
    this.#state.dispose();
  }
}
