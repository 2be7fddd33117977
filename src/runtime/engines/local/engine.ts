import type { AgentId, Clock, Engine, Lease, Leases, RunHost, RunId } from "../../../kernel/index.ts";

export interface LocalEngineOptions {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly workerId: string;
  /** How many runs at once. */
  readonly concurrency: number;
  /** Whose runs may be claimed here. */
  readonly agentIds: () => readonly AgentId[];
  /** How often to look without being woken: for times that have come, and for runs that dead workers left. */
  readonly pollMs: number;
  readonly onError: (error: unknown) => void;
}

/** Leases in the store, claimed by whoever has room. */
export class LocalEngine implements Engine {
  readonly #options: LocalEngineOptions;
  readonly #driven = new Set<Promise<void>>();
  #host: RunHost | undefined;
  #claiming: Promise<void> | undefined;
  #claimAgain = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: LocalEngineOptions) {
    this.#options = options;
  }

  async start(host: RunHost): Promise<void> {
    await this.#options.leases.enlist(this.#options.workerId);
    this.#host = host;
    this.#poll();
  }

  wake(_runId?: RunId): void {
    if (this.#host === undefined) return;
    if (this.#claiming !== undefined) {
      this.#claimAgain = true;
      return;
    }
    this.#claiming = this.#claim()
      .catch(this.#options.onError)
      .finally(() => {
        this.#claiming = undefined;
        if (!this.#claimAgain) return;
        this.#claimAgain = false;
        this.wake();
      });
  }

  async stop(): Promise<void> {
    this.#host = undefined;
    this.#stopTimer?.();
    await this.#claiming;
    await Promise.all(this.#driven);
    await this.#options.leases.dismiss(this.#options.workerId);
  }

  #poll(): void {
    if (this.#host === undefined) return;
    this.wake();
    const { clock, pollMs } = this.#options;
    this.#stopTimer = clock.schedule(clock.now() + pollMs, () => this.#poll());
  }

  async #claim(): Promise<void> {
    const { leases, clock, workerId, concurrency, agentIds } = this.#options;
    const limit = concurrency - this.#driven.size;
    if (limit <= 0 || this.#host === undefined) return;
    const claimed = await leases.claim({ workerId, limit, now: clock.now(), agentIds: agentIds() });
    for (const lease of claimed) {
      const driven = this.#drive(lease).finally(() => {
        this.#driven.delete(driven);
        this.wake();
      });
      this.#driven.add(driven);
    }
  }

  async #drive(lease: Lease): Promise<void> {
    const { leases, onError } = this.#options;
    try {
      const rest = await this.#host?.drive(lease);
      await leases.release(lease, rest ?? { kind: "ready" });
    } catch (error) {
      onError(error);
    }
  }
}
