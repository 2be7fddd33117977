import {
  collectedInput,
  type AgentId,
  type DriveOptions,
  type DriveResult,
  type EventDraft,
  Fault,
  type FaultCode,
  HistoryRetention,
  type HostedAgent,
  type Lease,
  type LostOwner,
  type Rest,
  type RunRecord,
  type TaskId,
  rootTaskId as root,
} from "../../kernel/index.ts";
import { adoptionOf, type Adoption } from "../journal/adopted-run.ts";
import { openAccountCommand } from "../journal/new-run.ts";
import { hostedAgent, type VersionPolicy, type WorkerContext } from "../process/worker-context.ts";
import { callsInFlight, judgeLosses, refuseLoad, restOf } from "./crash-recovery.ts";
import { MailboxReader, type MailboxOwner } from "./mailbox-reader.ts";
import { RunObservers, type ObservedLog } from "./run-observers.ts";
import { RunLog, type LogOwner } from "../journal/run-log.ts";
import { planResume } from "../journal/resume-plan.ts";
import { RunState } from "../journal/run-state.ts";
import type { RunningTasks } from "./running-tasks.ts";
import { TaskSupervisor, type SupervisorListener } from "./task-supervisor.ts";
import { WaitRegistry } from "../task/wait-registry.ts";

/** J9: an agent of the run that this worker hosts in another version, and what the version policy requires. */
interface VersionMismatch {
  readonly fault: Fault;
  readonly policy: VersionPolicy;
}

/** J9: returns the first agent of the root and the live tasks that this worker hosts in another version. */
function findVersionMismatch(
  { agents, versionPolicy = "resume" }: WorkerContext,
  { runId, agentId: rootAgent, agentVersion: rootVersion }: RunRecord,
  state: RunState,
): VersionMismatch | undefined {
  const compare = (agentId: AgentId, started: string | null): VersionMismatch | undefined => {
    const agent = agents.get(agentId);
    const here = agent?.version ?? null;
    if (here === started) return undefined;
    const fault = new Fault(
      "version_mismatch",
      `run ${runId} was started by version ${started ?? "none"} of agent ${agentId}, and this worker hosts version ${here ?? "none"}; host the same version, or set versionPolicy to "resume"`,
      { details: { agentId, started, here } },
    );
    return { fault, policy: agent?.versionPolicy ?? versionPolicy };
  };
  const { byName, agentVersion = rootVersion } = state.task(root).record;
  // L18: a run that was started by name belongs to the version that adopts it.
  const rootMismatch = byName === undefined ? compare(rootAgent, agentVersion) : undefined;
  if (rootMismatch !== undefined) return rootMismatch;
  for (const { record, outcome } of state.tasks.values()) {
    if (record.parentId === null || outcome !== null) continue;
    const mismatch = compare(record.agentId, record.agentVersion ?? null);
    if (mismatch !== undefined) return mismatch;
  }
  return undefined;
}

/** An agent that keeps the history of its runs in the application's own store and can delete it there. */
type HistoryOwner = HostedAgent & Required<Pick<HostedAgent, "clearHistory">>;

/** Trap R14: returns the root's agent if it must still delete the history of the ended run. */
function historyOwnerToClear(
  { agents }: WorkerContext,
  { agentId }: RunRecord,
  state: RunState,
): HistoryOwner | undefined {
  const { retention } = state.task(root).record.supervision;
  if (retention !== HistoryRetention.RUN || state.isHistoryCleared) return undefined;
  const agent = agents.get(agentId);
  return agent !== undefined && ownsHistory(agent) ? agent : undefined;
}

function ownsHistory(agent: HostedAgent): agent is HistoryOwner {
  return agent.clearHistory !== undefined;
}

/** Fault codes with which a store refuses the content of a commit. The same commit would fail again. */
const refusals: ReadonlySet<FaultCode> = new Set<FaultCode>(["not_json", "not_found", "invalid_argument"]);

/** Milliseconds after which a failed deletion of an ended run's history is repeated. */
const clearAgainMs = 1_000;

/**
 * The phases in which the owner of a run can be:
 * - loaded: the `RunState` is computed from the journal; no code runs. `runUntilReleased` recovers from the last
 *   owner's crash, applies the mailbox and starts the tasks, which moves to active.
 * - active: the tasks run code, have calls in flight or only wait. If all of them only wait, the run is idle as
 *   well (`isIdle`) and does not count against the concurrency of the worker. After `suspendAfterMs` an idle run is
 *   released, unless a task waits for another run.
 * - clearing: every task has ended, and the history of the run is being deleted from the application's own store.
 *   The end of the deletion moves to releasing, or back to active if a mailbox message has resumed the run.
 * - releasing: the store writes the last commit and releases the run in one transaction. Mailbox messages are left
 *   for the next owner (L3). If the store cannot do both at once, the run stays active during its last flush, and a
 *   message that gives a task work makes it stay.
 * - closed: the promise of `runUntilReleased` is settled and every task is dropped. `fail` moves to it from any
 *   phase, because a run that cannot be written to must not continue here.
 */
type Phase = "loaded" | "active" | "clearing" | "releasing" | "closed";

const ready: Rest = { kind: "ready" };
/** Maximum number of times that a release flushes records which were added during its flush. */
const maxFlushes = 100;

/** Executes one run: reads its mailbox, supervises its tasks, and releases the run when it has ended or only waits. */
export class RunOwner implements SupervisorListener, LogOwner, ObservedLog, MailboxOwner {
  readonly #worker: WorkerContext;
  readonly #lease: Lease;
  readonly #record: RunRecord;
  readonly #state: RunState;
  readonly #observers: RunObservers;
  readonly #log: RunLog;
  readonly #waits: WaitRegistry;
  readonly #supervisor: TaskSupervisor;
  readonly #running: RunningTasks;
  readonly #mailbox: MailboxReader;
  readonly #options: DriveOptions;
  readonly #result = Promise.withResolvers<DriveResult>();
  #cancelIdleTimer: (() => void) | undefined;
  #phase: Phase = "loaded";
  /** Whether all tasks only wait, and the worker counts this run as idle. */
  #isIdle = false;
  /** Set while `release` waits for calls in flight. */
  #onCallsSettled: (() => void) | undefined;
  #refusal: Fault | undefined;

  private constructor(
    worker: WorkerContext,
    lease: Lease,
    record: RunRecord,
    state: RunState,
    options: DriveOptions,
  ) {
    this.#worker = worker;
    this.#options = options;
    this.#lease = lease;
    this.#record = record;
    this.#state = state;
    const { store, clock, idleFlusher } = worker;
    const waits = new WaitRegistry(clock, state.resolutions);
    const live = worker.contexts?.forRun(record.tenantId, state.task(root).record);
    const observers = new RunObservers({ worker, record, state, log: this, live });
    const log = new RunLog({ store, lease, state, clock, idleFlusher, observers, owner: this });
    this.#waits = waits;
    this.#observers = observers;
    this.#log = log;
    const supervisor = new TaskSupervisor({ worker, lease, record, state, log, waits, live, listener: this });
    this.#supervisor = supervisor;
    this.#running = supervisor.running;
    this.#mailbox = new MailboxReader({ store, state, log, supervisor, owner: this });
  }

  get readsMailbox(): boolean {
    return this.#phase !== "releasing" && !this.#isClosed;
  }

  get #isClosed(): boolean {
    return this.#phase === "closed";
  }

  /** G4: whether the engine ends the execution. No call then starts, and the run is released when open calls settle. */
  get #isDraining(): boolean {
    return this.#options.signal?.aborted === true;
  }

  emitObserved(taskId: TaskId, draft: EventDraft): boolean {
    if (this.#isClosed || this.#state.ended) return false;
    this.#log.emit(this.#state.ownerOf(taskId), draft);
    return true;
  }

  onStep(): void {
    this.#options.onStep?.();
  }

  onUsage(): void {
    this.#worker.capQueue.returned(this.#record);
  }

  onWriteFailure(fault: Fault): void {
    if (refusals.has(fault.code)) this.#refusal = fault;
    this.fail(fault);
  }

  /** Loads the run. Costs O(commits of the run). Rejects with `crash_loop` if the run must not be loaded yet. */
  static async load(worker: WorkerContext, lease: Lease, options: DriveOptions = {}): Promise<RunOwner> {
    refuseLoad(lease, worker.clock.now());
    const state = new RunState(worker.unknownPrice);
    const record = await worker.store.journal.replay(lease.runId, (commit) => state.fold(commit));
    return new RunOwner(worker, lease, record, state, options);
  }

  /**
   * Executes the run until it is released. Rejects when the lease is lost or the store fails, and with `version_mismatch`
   * when the run is for a worker of another version (J9). `refusal` is the fault with which the store refused a commit of the
   * last attempt; the run then fails with this fault.
   */
  runUntilReleased(refusal?: Fault): Promise<DriveResult> {
    const { signal } = this.#options;
    if (signal?.aborted === true) this.#drain();
    else signal?.addEventListener("abort", this.#drain);
    this.#start(refusal).catch((error: unknown) => this.fail(Fault.from(error)));
    return this.#result.promise;
  }

  /**
   * L18, L21: ends a run that no worker has adopted, or that is bound to another machine, if its mail cancels it. It executes
   * no code. If no mail cancels the run, it is released as ready.
   */
  endIfCancelled(): Promise<DriveResult> {
    this.#readCancel().catch((error: unknown) => this.fail(Fault.from(error)));
    return this.#result.promise;
  }

  async #readCancel(): Promise<void> {
    const { record, outcome } = this.#state.task(root);
    this.#supervisor.executesNothing = true;
    const loading = this.#supervisor.load();
    if (loading !== undefined) await loading;
    const isMeant =
      record.byName !== undefined || (this.#state.host ?? this.#worker.host) !== this.#worker.host;
    if (isMeant && outcome === null) {
      this.#supervisor.recover();
      await this.#mailbox.read();
    }
    if (!this.#isClosed && !this.#state.ended) await this.#release(() => ready);
  }

  async #start(refusal: Fault | undefined): Promise<void> {
    const mismatch = findVersionMismatch(this.#worker, this.#record, this.#state);
    if (mismatch?.policy === "pin") throw mismatch.fault;
    if (this.#state.task(root).record.byName !== undefined && !(await this.#adopt())) return;
    this.#takeCollected();
    const loading = this.#supervisor.load();
    if (loading !== undefined) await loading;
    const { lostOwner } = this.#lease;
    const mayRest = refusal === undefined && mismatch?.policy !== "refuse";
    if (lostOwner === undefined) {
      if (!this.#state.ended) this.#supervisor.recover();
    } else if (!this.#state.ended) {
      if (mayRest && (await this.#restAgain())) return;
      // Before the mailbox is read, because a message may start code.
      await this.#recoverFrom(lostOwner);
    }
    if (this.#isClosed) return;
    if (this.#state.resumesFork) this.#supervisor.reopen(planResume(this.#state));
    await this.#mailbox.read();
    if (this.#isClosed) return;
    if (mismatch?.policy === "refuse") this.#supervisor.failAll(mismatch.fault);
    if (refusal !== undefined) this.#supervisor.failAll(refusal);
    this.#supervisor.startAll();
    // The tasks may have ended already, and the run with them.
    if (this.#phase === "loaded") this.#phase = "active";
    this.noteIdle();
    this.noteCallEnd();
  }

  /** L20: makes the collected inputs the input of the run before it starts. A run that is still queued collects further. */
  #takeCollected(): void {
    const { record: task, outcome } = this.#state.task(root);
    const collect = this.#record.flow?.collect;
    if (collect === undefined || outcome !== null || task.isCollected === true) return;
    if (this.#lease.isQueued === true) return;
    const input = collectedInput(collect);
    this.#log.add({ tasks: [{ type: "create", task: { ...task, input, isCollected: true } }] });
  }

  /**
   * L18: adopts a run that was started by name, before its mail is read or any code is executed. If the workflow does not
   * accept the input, the run ends. If the run has limits, it is released to wait for its turn first. Returns `false` in both
   * cases.
   */
  async #adopt(): Promise<boolean> {
    const { record: task, outcome } = this.#state.task(root);
    if (outcome !== null) return true;
    const { agentId, flow: limits } = this.#record;
    let adoption: Adoption;
    try {
      adoption = await adoptionOf(hostedAgent(this.#worker, agentId), this.#record, task);
    } catch (error) {
      if (this.#isClosed) return false;
      this.#supervisor.failAll(Fault.from(error));
      this.#supervisor.finishIfDone();
      return false;
    }
    if (this.#isClosed) return false;
    const { flow, event } = adoption;
    if (flow !== undefined && limits === undefined) {
      await this.#release(() => ({ kind: "queued", flow }));
      return false;
    }
    const { budget, supervision } = adoption.task;
    this.#log.emit(root, { type: "run_adopt", data: event });
    this.#log.add({ tasks: [{ type: "create", task: adoption.task }] });
    const { ledger } = this.#supervisor;
    const account = { taskId: root, parentId: null, budget, priority: supervision.priority };
    ledger.apply(root, { type: "close", taskId: root });
    ledger.apply(root, openAccountCommand(this.#worker, account));
    return true;
  }

  /** L7: releases a run that only waits, without executing its code. Returns `false` if the run has work. */
  async #restAgain(): Promise<boolean> {
    const { store, clock } = this.#worker;
    const rest = restOf(this.#state, clock.now());
    if (rest === undefined) return false;
    const mail = await store.mailbox.read(this.#record.runId);
    if (mail.some(({ place }) => place > this.#state.mailThrough)) return false;
    await this.#release(() => {
      const still = restOf(this.#state, clock.now());
      return still && { kind: "suspended", ...still };
    });
    return this.#isClosed;
  }

  /**
   * L7: records that the last owner was lost, with what is known about it, before any code is executed. If the limit is
   * reached, the run is paused instead: no task ends, and only `resume` continues the run.
   */
  async #recoverFrom(lostOwner: LostOwner): Promise<void> {
    const { store, crashLoopLimit: limit } = this.#worker;
    const losses = await judgeLosses(store, this.#state, lostOwner);
    const { ended, unknown } = losses;
    const isLoop = losses.lost !== undefined && ended.length >= limit;
    const calls = isLoop ? await callsInFlight(store, this.#state, this.#record.runId) : [];
    if (this.#isClosed) return;
    this.#supervisor.recover(losses);
    if (isLoop) this.#supervisor.pause({ limit, ended, unknown, calls });
    const flushed = this.#log.flush();
    if (flushed !== undefined) await flushed;
  }

  /** Whether every task has ended. The run may still be resumed. */
  get hasEnded(): boolean {
    return this.#state.ended;
  }

  /** The fault with which the store refused a commit. The next attempt to execute the run must end it with this fault. */
  get refusal(): Fault | undefined {
    return this.#refusal;
  }

  /** Resolves when the observers in this process have handled every event so far. `undefined` if they already have. */
  whenObserved(): Promise<void> | undefined {
    const { runId } = this.#lease;
    const writing = this.#log.whenWritten();
    if (writing === undefined) return this.#observers.whenSettled(runId);
    return writing.then(() => this.#observers.whenSettled(runId));
  }

  /** Reads the mailbox, and checks whether another worker now owns the run. */
  poke(): void {
    this.#readMailboxAndCheckLease().catch((error: unknown) => this.fail(Fault.from(error)));
  }

  /**
   * Releases the run for another worker. Calls in flight get `graceMs` to settle; the next owner repeats the calls that have
   * not settled. A run that only waits is released as suspended, so that it keeps its status `waiting` without an owner (K1).
   */
  async release(graceMs = 0): Promise<void> {
    // Decided before the drain, which makes a task with work wait, too.
    if (!this.#isClosed && this.#isIdle && this.#running.isIdle) await this.#suspend();
    if (this.#isClosed) return;
    this.#supervisor.seats.drain();
    if (graceMs > 0 && this.#isCalling) await this.#callsSettled(graceMs);
    await this.#release(
      () => ready,
      () => this.#running.parkPrograms(),
    );
  }

  /** Resolves once no call is in flight, or after `graceMs`. */
  async #callsSettled(graceMs: number): Promise<void> {
    const { clock } = this.#worker;
    const settled = Promise.withResolvers<void>();
    this.#onCallsSettled = settled.resolve;
    const cancel = clock.schedule(clock.now() + graceMs, settled.resolve);
    await settled.promise;
    cancel();
    this.#onCallsSettled = undefined;
  }

  get #isCalling(): boolean {
    return this.#running.hasCalls && !this.#running.isResting;
  }

  readonly #drain = (): void => {
    this.#supervisor.seats.drain();
    this.noteCallEnd();
  };

  /** Notes that a call of a task has ended. The code may continue before the run is released, because it may end its task. */
  noteCallEnd(): void {
    if (this.#isDraining) this.#worker.eventLoop.nextTurn(() => this.#releaseDrained());
    if (this.#onCallsSettled !== undefined)
      this.#worker.eventLoop.nextTurn(() => {
        if (this.#isClosed || !this.#isCalling) this.#onCallsSettled?.();
      });
  }

  #releaseDrained(): void {
    if (this.#phase !== "active" || this.#isCalling) return;
    if (this.#running.isWaiting) void this.#suspend();
    else void this.#release(() => ready);
  }

  #sleep(untilMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#worker.clock.schedule(untilMs, resolve);
    });
  }

  /**
   * Notes that all tasks only wait. The run then does not count against the concurrency of the worker. If no task waits for a
   * delay or another run, the run is released after `suspendAfterMs`.
   */
  noteIdle(): void {
    if (this.#phase === "loaded" || this.#isClosed) return;
    if (this.#cancelIdleTimer !== undefined || !this.#running.isOffSlot) return;
    this.#countIdle(true);
    if (this.#state.isDrivenAgain && this.#running.onlyWaits) this.#noteRest();
    if (!this.#running.isResting) return;
    this.noteCallEnd();
    if (this.#isDraining || !this.#running.isIdle) return;
    const { clock, suspendAfterMs } = this.#worker;
    // A run that starts later, or in its turn, has no code to keep, and is `pending` until then (K1).
    const isLater = this.#lease.isQueued === true || (this.#record.startAt ?? 0) > clock.now();
    const isEarly = !this.#running.hasCode && isLater;
    // The timer counts as armed until the release has ended, because a release notes that the run is idle.
    const suspend = async (): Promise<void> => {
      if (this.#running.isIdle) await this.#suspend();
      if (this.#cancelIdleTimer === cancel) this.#cancelIdleTimer = undefined;
    };
    const delayMs = isEarly ? 0 : Math.max(suspendAfterMs, this.#running.idleMs);
    const cancel = clock.schedule(clock.now() + delayMs, () => void suspend());
    this.#cancelIdleTimer = cancel;
  }

  /** L7: records that a lost owner's work has been executed as far as possible. A loss from here on does not count. */
  #noteRest(): void {
    this.#state.isDrivenAgain = false;
    this.#log.noteStanding();
  }

  stayAwake(): void {
    this.#cancelIdleTimer?.();
    this.#cancelIdleTimer = undefined;
    this.#countIdle(false);
  }

  #countIdle(isIdle: boolean): void {
    if (this.#isIdle === isIdle) return;
    this.#isIdle = isIdle;
    this.#options.onIdle?.(isIdle);
  }

  /**
   * Releases a run that only waits. A paused run wakes only when a mailbox message arrives. A task records its wait one turn
   * of the event loop after the wait has begun, and a timer of the run may fire earlier. Therefore the waits are recorded
   * here: the store must say for what a released run waits.
   */
  async #suspend(): Promise<void> {
    await this.#release(
      () => {
        if (!this.#running.isIdle) return undefined;
        // A task may have been woken meanwhile. The drain keeps it from its next call, which only another execution can start.
        if (this.#isDraining && !this.#running.isWaiting) return ready;
        return { kind: "suspended", wakeAt: this.#state.paused ? null : this.#waits.nextTime };
      },
      () => {
        this.#running.noteRests();
        if (this.#running.isIdle) this.#running.parkPrograms();
      },
    );
  }

  /**
   * Releases a run that has ended. A completed run is released as ended. Any other outcome can be resumed, so that the run is
   * released as suspended until a mailbox message arrives.
   */
  finish(): void {
    if (this.#phase !== "loaded" && this.#phase !== "active") return;
    const agent = historyOwnerToClear(this.#worker, this.#record, this.#state);
    if (agent !== undefined) {
      void this.#clearHistory(agent);
      return;
    }
    const completed = this.#state.task(root).outcome?.status === "completed";
    const rest: Rest = completed ? { kind: "ended" } : { kind: "suspended", wakeAt: null };
    const released = this.#log.flushAndRelease(rest);
    if (released === undefined) void this.#release(() => (this.#state.ended ? rest : undefined));
    else {
      this.#phase = "releasing";
      void this.#closeAfter(released, rest);
    }
  }

  /**
   * Trap R14: deletes the history of the run after the commit that ends it, and records this. The process owns the run until
   * the deletion succeeds: a failed deletion is repeated after a delay, and after a crash the next owner repeats it.
   */
  async #clearHistory(agent: HistoryOwner): Promise<void> {
    this.#phase = "clearing";
    try {
      const flushed = this.#log.flush();
      if (flushed !== undefined) await flushed;
    } catch (error) {
      this.fail(Fault.from(error));
      return;
    }
    try {
      await agent.clearHistory(this.#record.runId);
      if (this.#isClosed) return;
      this.#log.add({ historyCleared: true });
    } catch (error) {
      if (this.#isClosed) return;
      this.#worker.onError(Fault.from(error));
      await this.#sleep(this.#worker.clock.now() + clearAgainMs);
    }
    if (this.#isClosed) return;
    this.#phase = "active";
    if (this.#state.ended) this.finish();
    else this.noteCallEnd();
  }

  /** Closes the run when the store has written the last commit and released the run with it. */
  async #closeAfter(released: Promise<void>, rest: Rest): Promise<void> {
    try {
      await released;
    } catch (error) {
      this.fail(Fault.from(error));
    }
    if (!this.#isClosed) this.#closeWith(rest, true);
  }

  /**
   * Reads the mailbox and checks the lease. A run whose calls are in flight may not write for a long time, so that it would
   * not notice the loss of its lease otherwise.
   */
  async #readMailboxAndCheckLease(): Promise<void> {
    await this.#mailbox.read();
    if (this.readsMailbox && this.#running.hasCalls) await this.#worker.store.leases.check(this.#lease);
  }

  /** Closes the run after a fault. The next owner continues from the last commit; later records are lost. */
  fail(fault: Fault): void {
    if (this.#isClosed) return;
    this.#close();
    // `runUntilReleased` may not have returned the promise yet, so its rejection would count as unhandled.
    this.#result.promise.catch(() => undefined);
    this.#result.reject(fault);
  }

  /**
   * Flushes until nothing is left to write, then closes the run. If a task has work again, `restNow` returns `undefined`, and
   * the run is not closed: while a commit is written, mail may let the code continue to its next wait. Without this check,
   * the records that the code added would be lost, and nothing would wake the run. `note` adds to the log what must be stored
   * before. Fails the run if a flush fails.
   */
  async #release(restNow: () => Rest | undefined, note?: () => void): Promise<void> {
    try {
      // A program that works on while its worker closes could write for ever, so the rounds are limited.
      for (let round = 0; round < maxFlushes && !this.#isClosed; round++) {
        note?.();
        const flushed = this.#log.flush();
        if (flushed !== undefined) await flushed;
        if (this.#log.isDurable) break;
      }
    } catch (error) {
      this.fail(Fault.from(error));
    }
    if (this.#isClosed) return;
    const rest = restNow();
    if (rest !== undefined) this.#closeWith(rest, false);
  }

  #closeWith(rest: Rest, isReleased: boolean): void {
    this.#close();
    this.#result.resolve({ rest, isReleased });
  }

  #close(): void {
    this.#phase = "closed";
    this.#onCallsSettled?.();
    this.#options.signal?.removeEventListener("abort", this.#drain);
    this.stayAwake();
    this.#waits.forget();
    this.#log.close();
    this.#supervisor.close();
    this.#state.dispose();
  }
}
