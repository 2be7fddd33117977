import {
  Fault,
  type ClaimOptions,
  type DriveOptions,
  type DriveResult,
  type Engine,
  type EnginePort,
  type EventLoop,
  type Lease,
  type RunClaimer,
  type RunHost,
  type RunId,
  type StoreChange,
} from "../../kernel/index.ts";
import { EventLoopTurn } from "../process/event-loop-turn.ts";

/**
 * Starts runs one at a time: the next run starts when the earlier ones wait for I/O. If models answer at once, a
 * run ends before the next one is loaded, so that memory is proportional to the runs in progress and not to the
 * runs claimed: `npm run bench -- loop`, row "memory of the process after them", is 22 % higher without this queue.
 * No run starts in a turn of the event loop that has lasted too long, so that timers and network events are
 * handled.
 *
 * The order is first in, first out, regardless of priority. Therefore the engine claims only few runs in advance,
 * and the store chooses among the others.
 */
export class RunStartQueue {
  readonly #loop: EventLoop;
  readonly #turn: EventLoopTurn;
  readonly #waiting: (() => void)[] = [];
  /** Whether a run has started and may continue without waiting for I/O. */
  #isBusy = false;

  constructor(loop: EventLoop, turn: EventLoopTurn) {
    this.#loop = loop;
    this.#turn = turn;
  }

  /** Number of runs that wait. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Resolves when the caller may start its run. `undefined` means at once. */
  waitTurn(): Promise<void> | undefined {
    const isFree = !this.#isBusy && !this.#turn.isExhausted;
    if (!this.#isBusy) this.#loop.whenBlocked(this.#startNext);
    this.#isBusy = true;
    return isFree ? undefined : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Called when every started run waits for I/O. */
  readonly #startNext = (): void => {
    if (this.#waiting.length === 0) this.#isBusy = false;
    else if (this.#turn.isExhausted) this.#loop.nextTurn(this.#startNext);
    else {
      this.#waiting.shift()?.();
      this.#loop.whenBlocked(this.#startNext);
    }
  };
}

const noRuns: readonly RunId[] = [];
const notDriven: DriveResult = { rest: { kind: "ready" }, isReleased: false };

/** Duration of a turn of the event loop after which no further run starts in it, in milliseconds. */
const maxTurnMs = 10;

/**
 * Maximum number of claimed runs that wait for their start. Other runs wait in the store, where runs of higher priority
 * are claimed first and other workers find them. The engine claims again when half of the queue has started.
 */
const maxWaiting = 16;

/** Delay before a run that could not be executed is released, so that it does not fail again at once. Milliseconds. */
const retryMs = 1_000;

/**
 * Claims runs by leases in the store and executes them in this process. Several workers may share one store. It
 * uses only its port, so that other engines can be written in the same way.
 */
export class LocalEngine implements Engine, RunClaimer {
  readonly kind = "local";
  readonly hostsPrograms = true;
  readonly claimer = this;
  readonly #options: EnginePort;
  readonly #driveOptions: DriveOptions = { onIdle: (isIdle) => this.#noteIdle(isIdle ? 1 : -1) };
  readonly #driven = new Map<Lease, Promise<void>>();
  readonly #startQueue: RunStartQueue;
  /**
   * J9: runs with a task of a version that this worker does not host. This is found out when a claimed run is
   * loaded; the run is then not claimed again.
   */
  readonly #pinned = new Set<RunId>();
  readonly #stopped = Promise.withResolvers<void>();
  #host: RunHost | undefined;
  #claiming: Promise<void> | undefined;
  /** Whether a claim is scheduled, or must follow the claim in progress. */
  #isClaimDue = false;
  /** Whether the last claim may have left runs in the store because the worker had no capacity. */
  #wasFull = false;
  /** Why the last claim failed. */
  #refusal: string | undefined;
  /** Number of executed runs that only wait. They do not use capacity. */
  #idle = 0;
  /** Runs that received mail and may have been left in the store. */
  readonly #mailed = new Set<RunId>();
  /** Runs that the next claim requests, even if the worker has no capacity. */
  #overdue: readonly RunId[] = noRuns;
  /** Number of reservations of `reserveClaim` that are not completed. */
  #reservedClaims = 0;
  /** Called when the last reservation is completed; `stop` waits for it. */
  #onClaimsCompleted: (() => void) | undefined;
  #cancelPoll: (() => void) | undefined;
  /** Time of the next poll. Epoch milliseconds. */
  #nextPollAt = Infinity;

  constructor(options: EnginePort) {
    this.#options = options;
    const { eventLoop } = options;
    this.#startQueue = new RunStartQueue(eventLoop, new EventLoopTurn(eventLoop, maxTurnMs));
  }

  async start(host: RunHost): Promise<void> {
    const { leases, workerId, onError } = this.#options;
    // Runs that other workers have taken over end here with `lease_lost`.
    await leases.enlist(workerId, { onLost: onError });
    this.#host = host;
    this.#poll();
  }

  wake(change: StoreChange): void {
    if ("runId" in change && this.#pinned.has(change.runId)) return;
    if (change.kind === "mail" && (this.#wasFull || this.#capacity <= 0) && this.#mailed.size < maxWaiting)
      this.#mailed.add(change.runId);
    if (change.kind === "new" && change.startAt !== null) this.#pollBy(change.startAt);
    else if (mayBeReady(change)) this.#claimSoon();
  }

  #claimSoon(): void {
    if (this.#host === undefined || this.#isClaimDue) return;
    this.#isClaimDue = true;
    if (this.#claiming === undefined) this.#options.eventLoop.soon(this.#claimAll);
  }

  /**
   * Reserves capacity for a new run. Returns `undefined` while a claim is due or in progress, because runs in the
   * store may have a higher priority than the new run.
   */
  reserveClaim(): ClaimOptions | undefined {
    if (this.#host === undefined || this.#isClaimDue || this.#claiming !== undefined || this.#capacity <= 0)
      return undefined;
    this.#reservedClaims++;
    return this.#claimOptions(1);
  }

  completeClaim(lease: Lease | undefined): void {
    this.#reservedClaims--;
    if (lease !== undefined) this.#driven.set(lease, this.#driveAndRelease(lease));
    else if (this.#wasFull) this.#claimSoon();
    if (this.#reservedClaims === 0) this.#onClaimsCompleted?.();
  }

  /** Called when the agents have changed. This worker may now execute runs that it could not execute before. */
  agentsChanged(): void {
    this.#pinned.clear();
    this.#claimSoon();
  }

  /** Called with `1` when all tasks of an executed run wait, and with `-1` when one of them continues. */
  #noteIdle(by: 1 | -1): void {
    this.#idle += by;
    if (by === 1 && this.#wasFull) this.#claimSoon();
  }

  async stop(): Promise<void> {
    this.#host = undefined;
    this.#cancelPoll?.();
    this.#stopped.resolve();
    await this.#claiming;
    if (this.#reservedClaims > 0)
      await new Promise<void>((resolve) => {
        this.#onClaimsCompleted = resolve;
      });
    await Promise.all(this.#driven.values());
    await this.#options.leases.dismiss(this.#options.workerId);
  }

  /**
   * Polls the store. Mail may cancel a run that waits in the store, so that even a worker without capacity executes
   * it. It does so only at the next poll, because another worker may have capacity.
   */
  #poll(): void {
    if (this.#host === undefined) return;
    this.#overdue = [...this.#mailed];
    this.#mailed.clear();
    this.#claimSoon();
    const { clock, leases, pollMs, onError } = this.#options;
    const now = clock.now();
    this.#nextPollAt = Infinity;
    this.#pollBy(now + pollMs);
    void (async () => {
      const wakeAt = await leases.nextWakeAt(now);
      if (wakeAt !== null) this.#pollBy(wakeAt);
    })().catch(onError);
  }

  /** Polls at the given time, unless an earlier poll is already scheduled. */
  #pollBy(atMs: number): void {
    if (this.#host === undefined || atMs >= this.#nextPollAt) return;
    const { clock } = this.#options;
    this.#cancelPoll?.();
    this.#nextPollAt = atMs;
    this.#cancelPoll = clock.schedule(atMs, () => this.#poll(), { background: true });
  }

  /** Claims runs. One claim handles all calls of `wake` within a turn of the event loop. */
  readonly #claimAll = (): void => {
    this.#isClaimDue = false;
    if (this.#host === undefined) return;
    const only = this.#overdue;
    this.#overdue = noRuns;
    const limit = only.length > 0 ? only.length : this.#capacity;
    this.#wasFull = limit <= 0;
    if (this.#wasFull) return;
    this.#claiming = this.#claimAndDrive(
      only.length > 0 ? { ...this.#claimOptions(limit), only } : this.#claimOptions(limit),
    );
    if (only.length > 0) this.#claimSoon();
  };

  async #claimAndDrive(options: ClaimOptions): Promise<void> {
    try {
      this.#driveAll(await this.#options.leases.claim(options), options.limit);
    } catch (error) {
      this.#reportRefusal(error);
    }
    this.#claiming = undefined;
    if (this.#isClaimDue) this.#claimAll();
  }

  /**
   * Reports a failed claim. It does not repeat a report for the same reason, because claims are made several times
   * per second.
   */
  #reportRefusal(error: unknown): void {
    const { message } = Fault.from(error);
    if (message !== this.#refusal) this.#options.onError(error);
    this.#refusal = message;
  }

  #driveAll(leases: readonly Lease[], limit: number): void {
    this.#refusal = undefined;
    this.#wasFull = leases.length >= limit;
    for (const lease of leases) this.#driven.set(lease, this.#driveAndRelease(lease));
  }

  get #capacity(): number {
    const active = this.#driven.size - this.#idle + this.#reservedClaims;
    return Math.min(
      this.#options.concurrency - active,
      maxWaiting - this.#startQueue.size - this.#reservedClaims,
    );
  }

  #claimOptions(limit: number): ClaimOptions {
    const { clock, workerId, agents, host } = this.#options;
    const except = this.#pinned.size === 0 ? noRuns : [...this.#pinned];
    return { workerId, limit, now: clock.now(), agents: agents(), except, host };
  }

  /**
   * Executes the run when it may start, then releases it. Never rejects: a run that cannot be executed is released.
   */
  async #driveAndRelease(lease: Lease): Promise<void> {
    const { leases, onError } = this.#options;
    const { runId } = lease;
    try {
      const turn = this.#startQueue.waitTurn();
      if (turn !== undefined) {
        await turn;
        if (this.#wasFull && this.#startQueue.size <= maxWaiting / 2) this.#claimSoon();
      }
      const { rest, isReleased } = (await this.#host?.drive(lease, this.#driveOptions)) ?? notDriven;
      if ("wakeAt" in rest && rest.wakeAt !== null) this.#pollBy(rest.wakeAt);
      // Unread mail would make the run ready at once.
      if (rest.kind === "unloaded") await this.#pause();
      if (isReleased) return;
      const releasing = leases.release(lease, rest);
      if (releasing !== undefined) await releasing;
    } catch (error) {
      const fault = Fault.from(error);
      if (fault.code === "version_mismatch") this.#pinned.add(runId);
      else onError(fault);
      if (fault.code !== "lease_lost") await this.#handBack(lease, fault);
    } finally {
      this.#driven.delete(lease);
      // The release has already reported a run that is ready again. Another run may have waited for the capacity.
      if (this.#wasFull) this.#claimSoon();
    }
  }

  /**
   * Releases a run that could not be executed, because its lease would block other workers. It waits before the
   * release, unless the run must be executed by another version.
   */
  async #handBack(lease: Lease, { code }: Fault): Promise<void> {
    const { leases, onError } = this.#options;
    if (code !== "version_mismatch") await this.#pause();
    for (;;) {
      try {
        await leases.release(lease, { kind: "ready" });
        return;
      } catch (error) {
        if (Fault.from(error).code === "lease_lost" || this.#host === undefined) return;
        onError(error);
        await this.#pause();
      }
    }
  }

  async #pause(): Promise<void> {
    const { clock } = this.#options;
    const delay = Promise.withResolvers<void>();
    const cancel = clock.schedule(clock.now() + retryMs, delay.resolve);
    await Promise.race([delay.promise, this.#stopped.promise]);
    cancel();
  }
}

/**
 * Whether the change may have made a run ready. A waiting message does not count, because the run that it starts
 * causes another change.
 */
function mayBeReady(change: StoreChange): boolean {
  switch (change.kind) {
    case "released":
      return change.isReady;
    case "consumed":
    case "seized":
    case "message":
    case "record":
      return false;
    default:
      return true;
  }
}
