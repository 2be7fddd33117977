import {
  CancellationError,
  type CancellationToken,
  type CancelListener,
  type EventLoop,
  type TaskId,
} from "../../kernel/index.ts";
import type { SlotYielder } from "../process/async-context.ts";
import { pendingForever } from "../process/pending-forever.ts";
import type { TaskSlots } from "../process/task-slots.ts";
import type { CancellationScope } from "./cancellation-scope.ts";
import { InFlightCalls, type InFlightCall } from "./in-flight-calls.ts";
import type { TaskHost } from "./task-host.ts";
import { programWait } from "../journal/wait-names.ts";
import type { AwaitedName } from "./wait-registry.ts";

export interface TaskActivityOptions {
  readonly taskId: TaskId;
  readonly host: TaskHost;
  readonly slots: TaskSlots;
  /** Cancellation of the whole task. */
  readonly token: CancellationToken;
  readonly eventLoop: EventLoop;
}

/** A program that runs in an attempt of the task. */
export interface OpenProgram {
  readonly name: string;
  /** How long the run stays in memory while the program only waits, in milliseconds. */
  readonly idleMs: number;
  /** Called before the run is released while the program only waits. The program is then about to end. */
  park(): void;
}

/**
 * Tracks whether the code of one task works or waits. Its seat, its slot and whether it is idle depend on this.
 *
 * A task has several lines of code at a time: its own, one per branch, one per tool body. States of a line:
 * - working: the line executes or has a call in flight (`beginCall`, `endCall`). The task holds a slot.
 * - waiting (`waitFor`): the line awaits a name that the log shows, such as a child or a signal. The run may leave
 *   memory, except if only this process can end the wait (`staysHere`).
 * - delayed (`pauseFor`): the line awaits something that only this process can provide, such as a delay or a read
 *   of the store. The run stays in memory.
 * - resting (`restWhile`): the line is an attempt that only waits for requests of a program. Each request is a
 *   call, which takes the slot and gives it back when it ends. The run stays in memory, and the task keeps its
 *   seat.
 * - yielding (`yieldSlotWhile`): the line awaits another run. The run stays in memory.
 * - parked (`whenSeated`, `whenReady`): the line must not start a call, because the task has no seat (H7). `unpark`
 *   moves it back to working.
 *
 * The slot is given back once no line works. The task is idle if each line waits or is parked and the run may leave
 * memory, and resting if it is idle or only awaits other runs. `end` gives the slot back for good. After `drop`, no
 * awaited promise settles.
 */
export class TaskActivity implements SlotYielder {
  readonly #taskId: TaskId;
  readonly #host: TaskHost;
  readonly #token: CancellationToken;
  readonly #slot: TaskSlot;
  readonly #eventLoop: EventLoop;
  readonly #calls = new InFlightCalls();
  #waits: readonly AwaitedName[] = [];
  /** Number of delayed lines. */
  #delays = 0;
  /** Number of lines that rest. They also count as delayed lines. */
  #rests = 0;
  /** Number of yielding lines. */
  #yields = 0;
  /** Resolves the parked lines. */
  #parked: (() => void)[] = [];
  #isEnded = false;
  /** The programs whose attempts are open. Created with the first one. */
  #programs: Set<OpenProgram> | undefined;
  /** Whether `drop` was called, so that no call of the task settles any more. */
  isDropped = false;

  constructor({ taskId, host, slots, token, eventLoop }: TaskActivityOptions) {
    this.#eventLoop = eventLoop;
    this.#taskId = taskId;
    this.#host = host;
    this.#token = token;
    this.#slot = new TaskSlot(slots, host, taskId);
  }

  /** Whether every line of the task waits or is parked. */
  get onlyWaits(): boolean {
    if (this.#waits.length === 0 && this.#parked.length === 0) return false;
    return this.#delays === 0 && this.#yields === 0 && !this.#slot.isRequested && !this.isCalling;
  }

  /** Whether every line of the task waits or is parked, and the run may leave memory in this time. */
  get isIdle(): boolean {
    return this.onlyWaits && this.#waits.every(({ staysHere = false }) => !staysHere);
  }

  /**
   * Whether the task holds no slot and requests none until something arrives for which it waits, from this run or
   * from another.
   */
  get isResting(): boolean {
    return this.isIdle || (this.#yields > 0 && !this.#slot.isHeld && !this.#slot.isRequested);
  }

  /**
   * Whether the task rests, or only waits for a delay. It then does not count against the concurrency of the
   * worker.
   */
  get isOffSlot(): boolean {
    if (this.isResting) return true;
    return (this.#delays > 0 || this.onlyWaits) && !this.#slot.isHeld && !this.#slot.isRequested;
  }

  /** Whether a line of the task must not start its next call. */
  get isParked(): boolean {
    return this.#parked.length > 0;
  }

  /** Whether a call is in flight whose body does not itself wait. */
  get isCalling(): boolean {
    return this.#calls.isWorking;
  }

  /** How long the run stays in memory although the task only waits, in milliseconds, as its programs request. */
  get idleMs(): number {
    let most = 0;
    for (const { idleMs } of this.#programs ?? noPrograms) most = Math.max(most, idleMs);
    return most;
  }

  /** Records that a program runs in an attempt of the task. Call the returned function at the end of the attempt. */
  addProgram(program: OpenProgram): () => void {
    const programs = (this.#programs ??= new Set());
    programs.add(program);
    return () => programs.delete(program);
  }

  /** Ends the programs of the task, because the run is released while the task only waits. */
  parkPrograms(): void {
    for (const program of this.#programs ?? noPrograms) program.park();
  }

  get hasCalls(): boolean {
    return this.#calls.count > 0;
  }

  get isSeated(): boolean {
    return this.#host.seats.status(this.#taskId) === "seated";
  }

  /** Returns `undefined` if the task holds a slot now. Otherwise resolves once it does, and never after `drop`. */
  takeSlot(): Promise<void> | undefined {
    return this.#slot.take();
  }

  /** Whether the seat of the task allows a call of this scope to start. */
  hasSeat(cancelScope: CancellationScope): boolean {
    return this.isSeated || this.#isSeatedLive(cancelScope);
  }

  /** C2, H7: returns `undefined` if the task has a seat, otherwise resolves once it has one. Throws if the scope is cancelled. */
  whenSeated(cancelScope: CancellationScope): Promise<void> | undefined {
    if (!this.isSeated && !this.#isSeatedLive(cancelScope)) return this.#awaitSeat(cancelScope);
    cancelScope.check();
    return undefined;
  }

  /** Waits for a seat like `whenSeated`. The task then also holds a slot, so that a call may start synchronously. */
  whenReady(cancelScope: CancellationScope): Promise<void> | undefined {
    if (!this.#slot.isHeld || (!this.isSeated && !this.#isSeatedLive(cancelScope)))
      return this.#awaitReady(cancelScope);
    cancelScope.check();
    return undefined;
  }

  /**
   * Takes a slot again after a wait. Returns whether the task has kept its seat and was not cancelled during the
   * wait.
   */
  async isStillReady(cancelScope: CancellationScope): Promise<boolean> {
    await this.#slot.take();
    const isSeated = this.isSeated || this.#isSeatedLive(cancelScope);
    return isSeated && this.#slot.isHeld && !cancelScope.token.cancelled;
  }

  /**
   * G4: whether an open attempt may make calls without a seat. Like every open call, it continues while the engine
   * ends the execution. It also continues while its task waits for a larger budget: calls that fit into the budget
   * are made, and the task gives up its seat at the end of the attempt.
   */
  #isSeatedLive({ isLive }: CancellationScope): boolean {
    if (!isLive) return false;
    return this.#host.seats.hasSeat(this.#taskId) || this.#host.seats.isHeldSeated(this.#taskId);
  }

  /**
   * B5: resolves when a task that waits for a larger budget has a seat again, or when `over` resolves. Throws if
   * the scope is cancelled.
   */
  async whenRecalled(cancelScope: CancellationScope, over?: Promise<void>): Promise<void> {
    const wait = { isOver: false };
    const ends = over?.then(() => (wait.isOver = true));
    const isRecalled = (): boolean =>
      cancelScope.isLive ? this.#host.seats.hasSeat(this.#taskId) : this.isSeated;
    while (!wait.isOver && !isRecalled() && !cancelScope.token.cancelled) await this.#park(cancelScope, ends);
    cancelScope.check();
  }

  /** H2: starts a call. The task keeps its seat until the call settles. */
  beginCall(cancelScope: CancellationScope): InFlightCall {
    // A program may make a call while it waits for a person. The run is not idle then.
    if (this.#programs !== undefined && this.#programs.size > 0) this.#host.listener.stayAwake();
    return this.#calls.begin(cancelScope);
  }

  endCall(call: InFlightCall): void {
    if (!this.#calls.end(call) || this.isDropped) return;
    this.#host.listener.noteCallEnd();
    this.settleIfPausing();
    this.#noteRestSoon();
  }

  /** Ends calls that ignore a cancel: their steps fail with `stop`. Returns whether there were any. */
  abandonCalls(stop: CancellationError): boolean {
    return this.#calls.abandonAll(stop);
  }

  /**
   * H2: gives up the seat of a pausing task that has no call in flight. The attempt of a program does not count as
   * such a call, except while the task waits for a larger budget (B5): calls that fit into the budget are made
   * until the attempt ends.
   */
  settleIfPausing(): void {
    const isHeld = this.#programs !== undefined && this.#host.seats.isHeldSeated(this.#taskId);
    const keepsSeat = isHeld ? this.isCalling : this.#calls.keepsSeat;
    if (!keepsSeat && !this.isDropped) this.#host.seats.settle(this.#taskId);
  }

  /** The task has a seat again. */
  unpark(): void {
    const parked = this.#parked;
    this.#parked = [];
    if (parked.length > 0) this.#host.seats.wake(this.#taskId, "seat");
    for (const resume of parked) resume();
  }

  /**
   * Awaits `work` under a name that the log shows. A cancel of the scope ends the wait. B5: if a value arrives
   * after the task's deadline, the code receives the error of the deadline instead. A parent and its child often
   * have the same deadline: without this rule, the end of the child could let the parent continue if the child's
   * timer fires first.
   */
  async waitFor<Value>(
    cancelScope: CancellationScope,
    work: Promise<Value>,
    awaited: AwaitedName,
  ): Promise<Value> {
    const { name, due } = awaited;
    this.#waits = [...this.#waits, awaited];
    cancelScope.addBlocked(1);
    this.#noteRestSoon();
    let wokenBy = name;
    try {
      const value = await this.whileAlive(unlessCancelled(work, cancelScope.token));
      cancelScope.checkDeadline();
      if (value === undefined && due !== undefined) wokenBy = "time";
      return value;
    } catch (error) {
      if (error instanceof CancellationError) wokenBy = "cancel";
      throw error;
    } finally {
      this.#waits = this.#waits.filter((each) => each !== awaited);
      cancelScope.addBlocked(-1);
      this.#host.seats.wake(this.#taskId, wokenBy);
      this.#noteRestSoon();
    }
  }

  /**
   * Awaits `work` that only this process can complete. The task gives back its slot during the wait. A cancel of
   * the scope ends the wait.
   */
  async pauseFor<Value>(cancelScope: CancellationScope, work: Promise<Value>): Promise<Value> {
    this.#delays++;
    if (!this.isCalling) this.#slot.give();
    this.#noteRestSoon();
    try {
      return await this.whileAlive(unlessCancelled(work, cancelScope.token));
    } finally {
      this.#delays--;
      this.#host.listener.stayAwake();
    }
  }

  /**
   * Awaits the body of `call`, which only waits for requests of a program. While no request is open, the task holds
   * no slot.
   */
  async restWhile<Value>(call: InFlightCall, work: Promise<Value>): Promise<Value> {
    call.isResting = true;
    this.#rests++;
    this.#delays++;
    this.#noteRestSoon();
    try {
      return await work;
    } finally {
      call.isResting = false;
      this.#rests--;
      this.#delays--;
      this.#host.listener.stayAwake();
    }
  }

  /**
   * Awaits `work` without a slot. It gives back the slot only if `work` does not settle in this turn of the event
   * loop, because most reads of another run do.
   */
  async yieldSlotWhile<Value>(work: Promise<Value>): Promise<Value> {
    this.#yields++;
    this.#noteRestSoon();
    try {
      return await work;
    } finally {
      this.#yields--;
      if (!this.#token.cancelled) await this.#reclaimSlot();
    }
  }

  get isCancelled(): boolean {
    return this.#token.cancelled;
  }

  /**
   * Awaits `work`. If `work` is part of the cleanup of a cancelled task, the wait must end within the time for
   * stopping.
   */
  yieldSlotUnlessCancelled<Value>(
    work: Promise<Value>,
    isCleanup = this.isCancelled,
    token = this.#token,
  ): Promise<Value> {
    return this.yieldSlotWhile(isCleanup ? work : this.whileAlive(unlessCancelled(work, token)));
  }

  onCancel(listener: CancelListener, token = this.#token): () => void {
    return token.onCancel((error) => {
      if (!this.isDropped) listener(error);
    });
  }

  within(token: CancellationToken): SlotYielder {
    return {
      yieldSlotWhile: (work) => this.yieldSlotWhile(work),
      yieldSlotUnlessCancelled: (work, isCleanup = token.cancelled) =>
        this.yieldSlotUnlessCancelled(work, isCleanup, token),
      isCancelled: token.cancelled,
      onCancel: (listener) => this.onCancel(listener, token),
      within: (inner) => this.within(inner),
    };
  }

  /**
   * Returns the result of `work`. Never settles if the task is dropped, or the scope abandoned, before `work`
   * settles.
   */
  async whileAlive<Value>(work: Promise<Value>, cancelScope?: CancellationScope): Promise<Value> {
    const isOver = (): boolean => this.isDropped || (cancelScope?.isAbandoned ?? false);
    try {
      const value = await work;
      if (!isOver()) return value;
    } catch (error) {
      if (!isOver()) throw error;
    }
    return pendingForever();
  }

  /** The task's code has ended. */
  end(): void {
    this.#isEnded = true;
    this.#slot.give();
  }

  drop(): void {
    this.isDropped = true;
    this.#slot.close();
  }

  async #awaitSeat(cancelScope: CancellationScope): Promise<void> {
    while (!this.isSeated && !this.#isSeatedLive(cancelScope) && !cancelScope.token.cancelled)
      await this.#park(cancelScope);
    cancelScope.check();
  }

  async #awaitReady(cancelScope: CancellationScope): Promise<void> {
    await this.whenSeated(cancelScope);
    // A request arrives at an attempt that rested.
    if (this.#rests > 0) this.#host.listener.stayAwake();
    while (!this.#slot.isHeld) {
      const taken = this.#slot.take();
      if (taken !== undefined) await unlessCancelled(taken, cancelScope.token);
      await this.whenSeated(cancelScope);
    }
  }

  async #park(cancelScope: CancellationScope, over?: Promise<unknown>): Promise<void> {
    const parking = Promise.withResolvers<void>();
    this.#parked.push(parking.resolve);
    cancelScope.addBlocked(1);
    this.noteRest();
    this.settleIfPausing();
    try {
      const seated = over === undefined ? parking.promise : Promise.race([parking.promise, over]);
      await this.whileAlive(unlessCancelled(seated, cancelScope.token));
    } catch {
      // Cancelled: the caller checks the scope next.
    } finally {
      this.#parked = this.#parked.filter((each) => each !== parking.resolve);
      cancelScope.addBlocked(-1);
    }
  }

  /** Takes a slot for a line that awaited another run and continues. Lines that still wait need no slot. */
  async #reclaimSlot(): Promise<void> {
    if (this.isDropped || this.#isEnded) return;
    this.#host.listener.stayAwake();
    await this.#slot.take();
    this.#noteRestSoon();
  }

  /** Records for what the task waits, if it only waits. The owner also calls this before it releases the run. */
  noteRest(): void {
    if (this.isDropped) return;
    if (this.#yields > 0 || this.onlyWaits || this.#isResting) this.#slot.give();
    if (!this.isOffSlot) return;
    this.#slot.give();
    if (this.onlyWaits && this.#waits.length > 0 && !this.#hasWork)
      this.#host.seats.suspend(this.#taskId, [...this.#waits, ...this.#programWaits()]);
    this.#host.listener.noteIdle();
  }

  /**
   * G4: whether a line is parked only because the engine ends the execution. The log shows nothing that would wake
   * such a line, so that the store must not say that the task only waits. Otherwise, after the loss of the next
   * owner, the run would not continue until another line wakes (L7).
   */
  get #hasWork(): boolean {
    return this.isParked && this.#host.seats.hasSeat(this.#taskId);
  }

  /** Whether the resting attempts have no open call. */
  get #isResting(): boolean {
    return this.#rests > 0 && !this.#calls.needsSlot;
  }

  /**
   * L7: returns the names under which the log shows that programs wait. After a crash, such a task has work,
   * because the program must be started again.
   */
  *#programWaits(): Iterable<AwaitedName> {
    for (const { name } of this.#programs ?? noPrograms) yield { name: programWait(name) };
  }

  /**
   * Checks in the next turn of the event loop whether the task only waits, because another line of the task may
   * continue in this turn.
   */
  #noteRestSoon(): void {
    if (this.#waits.length > 0 || this.#parked.length > 0 || this.#yields > 0 || this.#delays > 0)
      this.#eventLoop.nextTurn(() => this.noteRest());
  }
}

const noPrograms: readonly OpenProgram[] = [];

/**
 * The slot of one task.
 *
 * States, and the moves between them:
 * - free: `take` moves it to held if a slot is available, otherwise to requested.
 * - requested: moves to held when the process grants a slot.
 * - held: `give` moves it to free.
 * - closed: `close` gives the slot back. A slot granted later is given back at once, and `take` never settles.
 */
class TaskSlot {
  readonly #slots: TaskSlots;
  readonly #host: TaskHost;
  readonly #taskId: TaskId;
  #isHeld = false;
  #request: Promise<void> | undefined;
  #isClosed = false;

  constructor(slots: TaskSlots, host: TaskHost, taskId: TaskId) {
    this.#slots = slots;
    this.#host = host;
    this.#taskId = taskId;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  get isRequested(): boolean {
    return this.#request !== undefined;
  }

  /** Takes the slot. Returns `undefined` if the slot is held now, otherwise a promise of it. */
  take(): Promise<void> | undefined {
    if (this.#isClosed) return pendingForever();
    if (!this.#isHeld && this.#request === undefined) this.#isHeld = this.#slots.tryTake();
    return this.#isHeld ? undefined : (this.#request ??= this.#requestSlot());
  }

  give(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#slots.give();
  }

  close(): void {
    this.#isClosed = true;
    this.give();
  }

  #requestSlot(): Promise<void> {
    const { seats, tenantId, turn } = this.#host;
    return this.#slots.take(seats.priority(this.#taskId), tenantId, turn).then(() => {
      this.#request = undefined;
      this.#isHeld = !this.#isClosed;
      if (this.#isHeld) return undefined;
      this.#slots.give();
      return pendingForever();
    });
  }
}

function unlessCancelled<Value>(work: Promise<Value>, token: CancellationToken): Promise<Value> {
  return new Promise((resolve, reject) => {
    const forget = token.onCancel(reject);
    work.then(resolve, reject).finally(forget);
  });
}
