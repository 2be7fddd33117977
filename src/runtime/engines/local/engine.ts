import {
  Fault,
  type Clock,
  type Engine,
  type HostedAgent,
  type Lease,
  type Leases,
  type RunHost,
  type RunId,
} from "../../../kernel/index.ts";

export interface LocalEngineOptions {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly workerId: string;
  /** How many runs at once. */
  readonly concurrency: number;
  /** Whose runs may be claimed here. */
  readonly agents: () => readonly HostedAgent[];
  /** How often to look without being woken: for times that have come, and for runs that dead workers left. */
  readonly pollMs: number;
  /** Whether waiting for more work keeps the process alive. */
  readonly keepAlive: boolean;
  readonly onError: (error: unknown) => void;
}

const none: readonly Lease[] = [];

/** How long a run that could not be driven is kept from being tried again. */
const retryMs = 1_000;

/** Leases in the store, claimed by whoever has room. */
export class LocalEngine implements Engine {
  readonly #options: LocalEngineOptions;
  readonly #driven = new Map<Lease, Promise<void>>();
  /** J9: runs with a task of another version than is hosted here. Known once they were looked at; not claimed again after that. */
  readonly #pinned = new Set<RunId>();
  readonly #stopped = Promise.withResolvers<void>();
  #host: RunHost | undefined;
  #claiming: Promise<void> | undefined;
  #claimAgain = false;
  /** There may have been no room for all that could be claimed. */
  #wasFull = false;
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
    this.#claimAgain = true;
    this.#claiming ??= this.#claimAll();
  }

  /** Other agents are hosted, or other versions: what was not for this worker may be now. */
  hostsChanged(): void {
    this.#pinned.clear();
    this.wake();
  }

  async stop(): Promise<void> {
    this.#host = undefined;
    this.#stopTimer?.();
    this.#stopped.resolve();
    await this.#claiming;
    await Promise.all(this.#driven.values());
    await this.#options.leases.dismiss(this.#options.workerId);
  }

  #poll(): void {
    if (this.#host === undefined) return;
    this.wake();
    const { clock, pollMs, keepAlive } = this.#options;
    this.#stopTimer = clock.schedule(clock.now() + pollMs, () => this.#poll(), { background: !keepAlive });
  }

  async #claimAll(): Promise<void> {
    while (this.#claimAgain && this.#host !== undefined) {
      this.#claimAgain = false;
      try {
        const claimed = await this.#claim();
        for (const lease of claimed) this.#driven.set(lease, this.#drive(lease));
        this.#wasFull = this.#room <= 0;
      } catch (error) {
        this.#options.onError(error);
      }
    }
    this.#claiming = undefined;
  }

  #claim(): Promise<readonly Lease[]> | readonly Lease[] {
    const { leases, clock, workerId, agents } = this.#options;
    const limit = this.#room;
    if (limit <= 0) return none;
    const except = [...this.#pinned];
    return leases.claim({ workerId, limit, now: clock.now(), agents: agents(), except });
  }

  get #room(): number {
    return this.#options.concurrency - this.#driven.size;
  }

  async #drive(lease: Lease): Promise<void> {
    const { leases, onError } = this.#options;
    const { runId } = lease;
    try {
      const rest = await this.#host?.drive(lease);
      await leases.release(lease, rest ?? { kind: "ready" });
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

  /** Its lease would keep a run that nobody drives from everyone else; and tried again at once, it would fail at once. */
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
