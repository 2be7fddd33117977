import {
  Fault,
  type ClaimOptions,
  type Clock,
  type Engine,
  type AgentVersion,
  type Lease,
  type Leases,
  type DriveResult,
  type RunHost,
  type RunId,
} from "../../kernel/index.ts";
import { RunStartQueue } from "./run-start-queue.ts";
import { EventLoopTurn } from "../process/event-loop-turn.ts";
import type { RunClaimer } from "../process/worker-context.ts";
import { CompactingMap } from "../process/compacting-map.ts";

export interface LocalEngineOptions {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly workerId: string;
  /** How many runs at once, those that only wait not counted. */
  readonly concurrency: number;
  /** Whose runs may be claimed here. */
  readonly agents: () => readonly AgentVersion[];
  /** How often to look without being woken: for times that have come, and for runs that dead workers left. */
  readonly pollMs: number;
  /** Whether waiting for more work keeps the process alive. */
  readonly keepAlive: boolean;
  readonly onError: (error: unknown) => void;
}

const noRuns: readonly RunId[] = [];
const notDriven: DriveResult = { rest: { kind: "ready" }, isReleased: false };

/** So long may a turn of the event loop last in which runs are begun. */
const longestTurnMs = 10;

/**
 * So many at most are claimed and wait to begin: the rest wait in the store, where whoever has a higher rank is chosen first, and where
 * other workers find them. When half of them have begun, there is room for as many.
 */
const maxWaiting = 16;

/** How long a run that could not be driven is kept from being tried again. */
const retryMs = 1_000;

/** Leases in the store, claimed by whoever has room. */
export class LocalEngine implements Engine, RunClaimer {
  readonly #options: LocalEngineOptions;
  readonly #driven = new CompactingMap<Lease, Promise<void>>();
  readonly #startQueue = new RunStartQueue(new EventLoopTurn(longestTurnMs));
  /** J9: runs with a task of another version than is hosted here. Known once they were looked at; not claimed again after that. */
  readonly #pinned = new Set<RunId>();
  readonly #stopped = Promise.withResolvers<void>();
  #host: RunHost | undefined;
  #claiming: Promise<void> | undefined;
  #claimsSoon = false;
  /** There may have been no room for all that could be claimed. */
  #wasFull = false;
  /** Of those it drives, how many only wait: they take no room. */
  #idle = 0;
  /** Places kept for runs that are being created. */
  #reservedClaims = 0;
  /** Who stops waits for them. */
  #claimsCompleted: (() => void) | undefined;
  #stopTimer: (() => void) | undefined;

  constructor(options: LocalEngineOptions) {
    this.#options = options;
  }

  async start(host: RunHost): Promise<void> {
    await this.#options.leases.enlist(this.#options.workerId);
    this.#host = host;
    this.#poll();
  }

  wake(runId?: RunId): void {
    if (this.#host === undefined || (runId !== undefined && this.#pinned.has(runId))) return;
    if (this.#claimsSoon) return;
    this.#claimsSoon = true;
    if (this.#claiming === undefined) queueMicrotask(this.#claimAll);
  }

  /** A place for a run that is about to be created, kept until `completeClaim` says what came of it. Nothing where there is no room, or others may be first. */
  reserveClaim(): ClaimOptions | undefined {
    if (this.#host === undefined || this.#claimsSoon || this.#claiming !== undefined || this.#room <= 0)
      return undefined;
    this.#reservedClaims++;
    return this.#claimOf(1);
  }

  completeClaim(lease: Lease | undefined): void {
    this.#reservedClaims--;
    if (lease !== undefined) this.#driven.set(lease, this.#drive(lease));
    else if (this.#wasFull) this.wake();
    if (this.#reservedClaims === 0) this.#claimsCompleted?.();
  }

  /** Other agents are hosted, or other versions: what was not for this worker may be now. */
  agentsChanged(): void {
    this.#pinned.clear();
    this.wake();
  }

  /** A run that is driven only waits from now on, or does so no longer. */
  noteIdle(by: 1 | -1): void {
    this.#idle += by;
    if (by === 1 && this.#wasFull) this.wake();
  }

  async stop(): Promise<void> {
    this.#host = undefined;
    this.#stopTimer?.();
    this.#stopped.resolve();
    await this.#claiming;
    if (this.#reservedClaims > 0)
      await new Promise<void>((resolve) => {
        this.#claimsCompleted = resolve;
      });
    await Promise.all(this.#driven.values());
    await this.#options.leases.dismiss(this.#options.workerId);
  }

  #poll(): void {
    if (this.#host === undefined) return;
    this.wake();
    const { clock, pollMs, keepAlive } = this.#options;
    this.#stopTimer = clock.schedule(clock.now() + pollMs, () => this.#poll(), { background: !keepAlive });
  }

  /** One look for all that changed in a breath. */
  readonly #claimAll = (): void => {
    this.#claimsSoon = false;
    if (this.#host === undefined) return;
    const { leases, onError } = this.#options;
    const limit = this.#room;
    this.#wasFull = limit <= 0;
    if (this.#wasFull) return;
    try {
      const claimed = leases.claim(this.#claimOf(limit));
      if (claimed instanceof Promise) this.#claiming = this.#claimLater(claimed, limit);
      else this.#driveAll(claimed, limit);
    } catch (error) {
      onError(error);
    }
  };

  async #claimLater(claimed: Promise<readonly Lease[]>, limit: number): Promise<void> {
    try {
      this.#driveAll(await claimed, limit);
    } catch (error) {
      this.#options.onError(error);
    }
    this.#claiming = undefined;
    if (this.#claimsSoon) this.#claimAll();
  }

  #driveAll(leases: readonly Lease[], limit: number): void {
    this.#wasFull = leases.length >= limit;
    for (const lease of leases) this.#driven.set(lease, this.#drive(lease));
  }

  get #room(): number {
    const coming = this.#driven.size - this.#idle + this.#reservedClaims;
    return Math.min(
      this.#options.concurrency - coming,
      maxWaiting - this.#startQueue.size - this.#reservedClaims,
    );
  }

  #claimOf(limit: number): ClaimOptions {
    const { clock, workerId, agents } = this.#options;
    const except = this.#pinned.size === 0 ? noRuns : [...this.#pinned];
    return { workerId, limit, now: clock.now(), agents: agents.call(undefined), except };
  }

  async #drive(lease: Lease): Promise<void> {
    const { leases, onError } = this.#options;
    const { runId } = lease;
    try {
      const turn = this.#startQueue.waitTurn();
      if (turn !== undefined) {
        await turn;
        if (this.#wasFull && this.#startQueue.size <= maxWaiting / 2) this.wake();
      }
      // By `call`: compiled for one runtime's function, this would be compiled again for the next one's.
      const { rest, isReleased } = (await this.#host?.drive.call(this.#host, lease)) ?? notDriven;
      if (isReleased) return;
      if (leases.releaseNow === undefined) await leases.release(lease, rest);
      else leases.releaseNow(lease, rest);
    } catch (error) {
      const fault = Fault.from(error);
      if (fault.code === "version_mismatch") this.#pinned.add(runId);
      else onError(fault);
      if (fault.code !== "lease_lost") await this.#handBack(lease, fault);
    } finally {
      this.#driven.delete(lease);
      // If it is to be driven again, its release has said so; another may have waited for its place.
      if (this.#wasFull) this.wake();
    }
  }

  /** Its lease would keep a run that noRuns drives from everyone else; and tried again at once, it would fail at once. */
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
    const over = Promise.withResolvers<void>();
    const cancel = clock.schedule(clock.now() + retryMs, over.resolve);
    await Promise.race([over.promise, this.#stopped.promise]);
    cancel();
  }
}
