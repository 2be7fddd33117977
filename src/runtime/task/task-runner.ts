import { findMismatch, type StepIdentity } from "../journal/step-identity.ts";
import {
  CancellationToken,
  Fault,
  RunMeta,
  Supervision,
  type HostedAgent,
  type AgentId,
  type CancellationError,
  type CostLabel,
  type EventDraft,
  type JsonValue,
  type Model,
  type RunFacts,
  type StepAddress,
  type StepOutcome,
  type StepRecord,
  type TaskId,
  type TaskReport,
} from "../../kernel/index.ts";
import { deadlineOf } from "../journal/task-clock.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import { pendingForever } from "../process/pending-forever.ts";
import { InFlightCalls, type InFlightCall } from "./in-flight-calls.ts";
import { ReplayCursor } from "../journal/replay-cursor.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState, TaskState } from "../journal/run-state.ts";
import { factsOf, type AsyncContext, type SlotYielder } from "../process/async-context.ts";
import { CancellationScope } from "./cancellation-scope.ts";
import { TaskResources } from "./task-resources.ts";
import { TaskSlot } from "./task-slot.ts";
import type { TaskHost } from "./task-host.ts";
import type { AwaitedName } from "./wait-registry.ts";

export interface TaskRunnerOptions {
  readonly taskId: TaskId;
  readonly agent: HostedAgent;
  readonly worker: WorkerContext;
  readonly log: RunLog;
  readonly state: RunState;
  readonly host: TaskHost;
}

/** A model as records name it, and as the ledger does. */
export interface NamedModel {
  readonly name: { readonly provider: string; readonly modelId: string };
  readonly label: CostLabel;
}

/** How a task's code ended. */
export type Ending = { readonly value: unknown } | { readonly error: unknown };

/**
 * One task at work in this process: its stop button, its seat as the code feels it, and the calls it has open.
 *
 * Active while it has a slot; idle while all it does is wait; parked, at its next step, while it has no seat (H7). Dropped, its
 * calls never settle, so that nothing of its code runs on.
 */
export class TaskRunner implements SlotYielder {
  readonly taskId: TaskId;
  readonly agent: HostedAgent;
  readonly worker: WorkerContext;
  readonly log: RunLog;
  readonly state: RunState;
  readonly host: TaskHost;
  readonly facts: RunFacts;
  /** Where its code stands. */
  readonly inside: AsyncContext;
  /** Its stop button, also for its code; whoever lets go of the task presses only what is below. */
  readonly token = new CancellationToken();
  /** Of the task's own code; those of races and tools hang below. */
  readonly cancelScope = new CancellationScope(this.token);
  readonly task: TaskState;
  readonly #recorded: ReplayCursor;
  readonly #calls = new InFlightCalls();
  readonly #resources = new TaskResources((error) => this.#noteUnclosed(error));
  /** Which records the faults came from that the code was given: those it ends on are voided by `resume` (J5). */
  #origins: WeakMap<object, readonly StepAddress[]> | undefined;
  /** Ends the run of its code, wherever that stands. */
  #fail: ((fault: Fault) => void) | undefined;
  #meta: RunMeta | undefined;
  #named: (NamedModel & { readonly model: Model }) | undefined;
  /** Its code came to an end by itself. */
  #ended = false;
  #stop: CancellationError | undefined;
  #waits: readonly AwaitedName[] = [];
  /** Of its code, how much waits for another run. */
  #outside = 0;
  /** How much of it sees a pause out. */
  #resting = 0;
  readonly #slot: TaskSlot;
  #parked: (() => void)[] = [];

  /** Nothing of it is answered any more; its own to say. */
  isDropped = false;
  /** Of a stop, while one is given. */
  endGrace: (() => void) | undefined;
  /** What its code wants said of it, however it ends. */
  report: TaskReport = {};

  constructor({ taskId, agent, worker, log, state, host }: TaskRunnerOptions) {
    this.taskId = taskId;
    this.agent = agent;
    this.worker = worker;
    this.log = log;
    this.state = state;
    this.host = host;
    this.task = state.task(taskId);
    const { record, cancelled } = this.task;
    this.facts = factsOf(record);
    this.#slot = new TaskSlot(worker.slots, host, taskId);
    this.inside = { facts: this.facts, task: this };
    this.#recorded = new ReplayCursor(this.task);
    if (cancelled !== null) this.token.cancel(cancelled.reason, cancelled.status);
  }

  /** What it has said so far of what it is to come to. */
  get output(): JsonValue | undefined {
    const { output } = this.report;
    return typeof output === "function" ? output() : output;
  }

  get agentId(): AgentId {
    return this.task.record.agentId;
  }

  /**
   * Made when it is first asked for. B5: a new one whenever the task's clock has stood still, for then the deadline has moved; none while
   * it stands.
   */
  get meta(): RunMeta {
    const deadline = this.task.clock.isStopped ? null : deadlineOf(this.task);
    if (this.#meta?.deadline !== deadline) this.#meta = this.#newMeta(deadline);
    return this.#meta;
  }

  /** What its code was told to stop by. */
  get stop(): CancellationError | undefined {
    return this.#stop;
  }

  /** All it does is wait. */
  get idle(): boolean {
    if (this.#waits.length === 0 && this.#parked.length === 0) return false;
    return this.#resting === 0 && this.#outside === 0 && !this.#slot.isComing && !this.atWork;
  }

  /** It has no slot and wants none before something comes: what it waits for, or what another run comes to. */
  get rests(): boolean {
    return this.idle || (this.#outside > 0 && !this.#slot.isHeld && !this.#slot.isComing);
  }

  /** It has a call open that is not itself waiting for a step of its body. */
  get atWork(): boolean {
    return this.#calls.isWorking;
  }

  /**
   * Resolves when its code may begin: with a slot, and never in the breath in which it is asked, whose record is one commit with the
   * start of the task; of a child, when whoever hired it has gone on. Never settles when dropped.
   */
  begin(): Promise<void> {
    return this.#slot.take() ?? (this.task.record.parentId === null ? now : now.then(() => undefined));
  }

  /** Runs the agent's code to its end. Never settles when dropped; rejects only when the code must not go on (J4). */
  run(code: () => Promise<unknown>): Promise<Ending> {
    return new Promise((resolve, reject) => {
      const end = (ending: Ending): void => {
        if (this.isDropped) return;
        this.#ended = true;
        this.#slot.give();
        resolve(
          this.#resources.isEmpty ? ending : this.whileAlive(this.#resources.close()).then(() => ending),
        );
      };
      // As it is: with a function of our own around it, what ended runs held outlives them until the next full collection.
      this.#fail = reject;
      try {
        code().then(
          (value) => end({ value }),
          (error: unknown) => end({ error }),
        );
      } catch (error) {
        end({ error });
      }
    });
  }

  /** J1, J4: what the step left behind, if it is recorded. If something else is, the code is stopped where it stands. */
  find(step: StepIdentity): StepOutcome | undefined {
    // What is recorded here and now is not come by again.
    const recorded = this.#recorded.remain ? this.task.steps.get(step.address) : undefined;
    if (recorded === undefined) return undefined;
    const differs = findMismatch(recorded, step, this.worker.hash);
    if (differs !== undefined) {
      if (!this.isDropped) this.#fail?.(differs);
      throw differs;
    }
    this.#recorded.visit(step.address, step.kind);
    return recorded.outcome;
  }

  /** C2: while recorded steps remain in a scope, nothing there is stopped. */
  hasRecorded(scope: string): boolean {
    return this.#recorded.remainIn(scope);
  }

  /** Whether an earlier owner had begun a step that comes after this one, and this one left no record. */
  wentPast(address: StepAddress): boolean {
    return this.#recorded.wentPast(address) && !this.task.steps.has(address);
  }

  record(
    step: StepIdentity,
    outcome: StepOutcome,
    told: readonly EventDraft[],
    at = this.worker.clock.now(),
  ): void {
    for (let index = 0; index < told.length; index++) this.emit(told[index] as EventDraft, at);
    const { address, kind, name, digest } = step;
    const record: StepRecord = { taskId: this.taskId, address, kind, name, digest, outcome };
    this.log.record(record, at, this.task);
    this.host.waits.recorded(record);
    if (this.task.steps.size === longJournal)
      this.emit({ type: "journal_warning", data: { steps: longJournal } });
  }

  emit(draft: EventDraft, at?: number): number {
    return this.log.emit(this.taskId, draft, at, this.task).seq;
  }

  /** One and the same for a model that is asked again: what is kept of each call refers to it. */
  nameOf(model: Model): NamedModel {
    if (this.#named?.model !== model) {
      const { provider, modelId } = model;
      const label = Object.freeze({ agentId: this.agentId, provider, modelId });
      this.#named = { model, name: Object.freeze({ provider, modelId }), label };
    }
    return this.#named;
  }

  /** The code is given a fault that these records hold. */
  noteOrigins(fault: unknown, addresses: readonly StepAddress[]): void {
    if (typeof fault === "object" && fault !== null) (this.#origins ??= new WeakMap()).set(fault, addresses);
  }

  /** Which records a fault came from, also when the code wrapped it in one of its own. */
  originsOf(error: unknown): readonly StepAddress[] {
    let at: unknown = error;
    for (let depth = 0; depth < 8 && typeof at === "object" && at !== null; depth++) {
      const known = this.#origins?.get(at);
      if (known !== undefined) return known;
      at = (at as { readonly cause?: unknown }).cause;
    }
    return [];
  }

  /** C2: throws once the task, or this strand of it, was told to stop or is past its deadline. */
  check(cancelScope: CancellationScope): void {
    const { error } = cancelScope.token;
    if (error !== undefined) throw error;
    if (this.task.record.budget.deadlineMs !== null) this.meta.check();
  }

  noteStop(stop: CancellationError): void {
    this.#stop ??= stop;
  }

  get isSeated(): boolean {
    return this.host.seats.status(this.taskId) === "seated";
  }

  /** C2, H7: resolves once the task has a seat; nothing to wait for if it has one. Throws once it is stopped. */
  seated(cancelScope: CancellationScope): Promise<void> | undefined {
    if (!this.isSeated) return this.#sit(cancelScope);
    this.check(cancelScope);
    return undefined;
  }

  /** Also with a slot, so that a call may begin. */
  ready(cancelScope: CancellationScope): Promise<void> | undefined {
    if (!this.#slot.isHeld || !this.isSeated) return this.#getReady(cancelScope);
    this.check(cancelScope);
    return undefined;
  }

  /** After a wait: whether it has kept its seat and was not stopped; it gets a slot again first. */
  async stillReady(cancelScope: CancellationScope): Promise<boolean> {
    await this.#slot.take();
    return this.isSeated && this.#slot.isHeld && !cancelScope.token.cancelled;
  }

  /** H2: from here on the task is in a call, and keeps its seat until it settles. */
  beginCall(): InFlightCall {
    return this.#calls.begin();
  }

  endCall(call: InFlightCall): void {
    if (!this.#calls.end(call) || this.isDropped) return;
    this.settleIfPausing();
    this.#noteRestSoon();
  }

  settleIfPausing(): void {
    if (!this.atWork && !this.isDropped) this.host.seats.settle(this.taskId);
  }

  unpark(): void {
    const parked = this.#parked;
    this.#parked = [];
    if (parked.length > 0) this.host.seats.wake(this.taskId, "seat");
    for (const go of parked) go();
  }

  /** While this is open the strand counts as waiting, not as working. A stop ends it. */
  async waitFor<Value>(
    cancelScope: CancellationScope,
    work: Promise<Value>,
    { name, due }: AwaitedName,
  ): Promise<Value> {
    const awaited = { name, due };
    this.#waits = [...this.#waits, awaited];
    cancelScope.addBlocked(1);
    this.#noteRestSoon();
    let by = name;
    try {
      const value = await this.whileAlive(unlessStopped(work, cancelScope.token));
      if (value === undefined && due !== undefined) by = "time";
      return value;
    } catch (error) {
      if (cancelScope.token.cancelled) by = "cancel";
      throw error;
    } finally {
      this.#waits = this.#waits.filter((each) => each !== awaited);
      cancelScope.addBlocked(-1);
      this.host.seats.wake(this.taskId, by);
      this.#noteRestSoon();
    }
  }

  /** A pause that this process must see the end of: the slot is free for others meanwhile, and a stop ends it. */
  async pauseFor<Value>(cancelScope: CancellationScope, work: Promise<Value>): Promise<Value> {
    this.#resting++;
    if (!this.atWork) this.#slot.give();
    try {
      return await this.whileAlive(unlessStopped(work, cancelScope.token));
    } finally {
      this.#resting--;
    }
  }

  /** Not at once: most of what is read of another run is there already. */
  async yieldSlotWhile<Value>(work: Promise<Value>): Promise<Value> {
    this.#outside++;
    this.#noteRestSoon();
    try {
      return await work;
    } finally {
      this.#outside--;
      if (!this.token.cancelled) await this.#comeBack();
    }
  }

  /** What is waited for after a stop is part of leaving, and has the time that leaving has. */
  yieldSlotUnlessCancelled<Value>(work: Promise<Value>): Promise<Value> {
    return this.yieldSlotWhile(
      this.token.cancelled ? work : this.whileAlive(unlessStopped(work, this.token)),
    );
  }

  /** Passes a value on, unless the task was dropped or the strand given up meanwhile: then never. */
  async whileAlive<Value>(work: Promise<Value>, cancelScope?: CancellationScope): Promise<Value> {
    const over = (): boolean => this.isDropped || (cancelScope?.isAbandoned ?? false);
    try {
      const value = await work;
      if (!over()) return value;
    } catch (error) {
      if (!over()) throw error;
    }
    return pendingForever();
  }

  onDrop(close: () => Promise<void>): void {
    this.#resources.add(close);
  }

  /** Calls that ignore a stop are given up, and its code is given the stop in their place. Whether there were any. */
  abandonCalls(stop: CancellationError): boolean {
    return this.#calls.abandonAll(stop);
  }

  /** Its code ignores a stop: it is given up where it stands, and the task ends by the stop. `false` if it has not begun. */
  abandon(stop: CancellationError): boolean {
    if (this.#fail === undefined) return false;
    if (this.#ended) {
      this.#resources.leave();
      return true;
    }
    this.cancelScope.abandon(stop.reason);
    try {
      this.report.abandoned?.(stop);
    } catch (error) {
      this.worker.onError(Fault.from(error));
    }
    this.#fail(stop);
    return true;
  }

  /** Nothing of it is answered any more. What its code has open is told to stop: sockets and processes do not outlive it. */
  drop(): void {
    if (this.isDropped) return;
    this.isDropped = true;
    this.endGrace?.();
    this.inside.task = undefined;
    this.#slot.giveUp();
    if (!this.#ended || this.#calls.count > 0)
      this.cancelScope.abandon(`task ${this.taskId} was let go of here`);
    this.token.dispose();
    if (!this.#resources.isEmpty) void this.#resources.close();
  }

  async #sit(cancelScope: CancellationScope): Promise<void> {
    while (!this.isSeated && !cancelScope.token.cancelled) await this.#park(cancelScope);
    this.check(cancelScope);
  }

  async #getReady(cancelScope: CancellationScope): Promise<void> {
    await this.seated(cancelScope);
    while (!this.#slot.isHeld) {
      const activated = this.#slot.take();
      if (activated !== undefined) await unlessStopped(activated, cancelScope.token);
      await this.seated(cancelScope);
    }
  }

  async #park(cancelScope: CancellationScope): Promise<void> {
    const parking = Promise.withResolvers<void>();
    this.#parked.push(parking.resolve);
    cancelScope.addBlocked(1);
    this.#noteRest();
    this.settleIfPausing();
    try {
      await this.whileAlive(unlessStopped(parking.promise, cancelScope.token));
    } catch {
      // Stopped: whoever parked looks again, and sees it.
    } finally {
      this.#parked = this.#parked.filter((each) => each !== parking.resolve);
      cancelScope.addBlocked(-1);
    }
  }

  /** From another run. What of its code still waits for one, or only waits, goes on without a slot. */
  async #comeBack(): Promise<void> {
    if (this.isDropped || this.#ended) return;
    this.host.listener.stayAwake();
    await this.#slot.take();
    this.#noteRestSoon();
  }

  #noteRest(): void {
    if (this.isDropped) return;
    if (this.#outside > 0) this.#slot.give();
    if (!this.rests) return;
    this.#slot.give();
    if (this.idle && this.#waits.length > 0) this.host.seats.suspend(this.taskId, this.#waits);
    this.host.listener.noteIdle();
  }

  /** Its code, or another branch of it, goes on in a moment; only if none does, the task rests. */
  #noteRestSoon(): void {
    if (this.#waits.length > 0 || this.#parked.length > 0 || this.#outside > 0)
      setImmediate(() => this.#noteRest());
  }

  #noteUnclosed(error: unknown): void {
    if (!this.isDropped)
      this.emit({ type: "hook_error", data: { hook: "resource", failure: Fault.from(error).toJSON() } });
  }

  #newMeta(deadline: number | null): RunMeta {
    const { clock, ids } = this.worker;
    return RunMeta.standalone({
      clock,
      ids,
      supervision: this.#meta?.supervision ?? Supervision.fromJSON(this.task.record.supervision),
      cancellation: this.token,
      deadline,
      traceId: this.facts.runId,
      tenantId: this.host.tenantId,
    });
  }
}

/** J8. */
const longJournal = 5_000;
const now = Promise.resolve();

function unlessStopped<Value>(work: Promise<Value>, token: CancellationToken): Promise<Value> {
  return new Promise((resolve, reject) => {
    const forget = token.onCancel(reject);
    work.then(resolve, reject).finally(forget);
  });
}
