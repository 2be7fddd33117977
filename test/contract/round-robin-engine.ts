import type { Engine, EngineFactory, EnginePort, RunHost, RunId } from "../../src/kernel/index.ts";

/** Duration of one execution of a run, in milliseconds. */
const sliceMs = 5;

/**
 * A small engine that shares no code with the local engine. It keeps a queue of the runs that it knows, claims one of
 * them by its id, executes the run for a short time, and puts it at the end of the queue.
 */
export const roundRobinEngine: EngineFactory = (port) => new RoundRobinEngine(port);

class RoundRobinEngine implements Engine {
  readonly kind = "round-robin";
  readonly #port: EnginePort;
  readonly #queue = new Set<RunId>();
  #host: RunHost | undefined;
  #turning: Promise<void> | undefined;
  #cancelSweep: (() => void) | undefined;

  constructor(port: EnginePort) {
    this.#port = port;
  }

  async start(host: RunHost): Promise<void> {
    const { leases, workerId, onError } = this.#port;
    await leases.enlist(workerId, { onLost: onError });
    this.#host = host;
    this.#sweep();
  }

  wake(change: Parameters<Engine["wake"]>[0]): void {
    if ("runId" in change) this.#queue.add(change.runId);
    this.#turn();
  }

  agentsChanged(): void {
    this.#turn();
  }

  async stop(): Promise<void> {
    this.#host = undefined;
    this.#cancelSweep?.();
    await this.#turning;
    await this.#port.leases.dismiss(this.#port.workerId);
  }

  /**
   * Finds runs of which no change was announced: runs of dead workers, runs of other processes, and runs whose time has
   * come.
   */
  #sweep(): void {
    if (this.#host === undefined) return;
    const { clock, pollMs } = this.#port;
    this.#cancelSweep = clock.schedule(clock.now() + pollMs, () => this.#sweep(), { background: true });
    this.#turn();
  }

  #turn(): void {
    this.#turning ??= this.#rounds()
      .catch(this.#port.onError)
      .finally(() => (this.#turning = undefined));
  }

  async #rounds(): Promise<void> {
    const { leases, workerId, clock, agents } = this.#port;
    for (;;) {
      const [next] = this.#queue;
      if (this.#host === undefined) return;
      if (next !== undefined) this.#queue.delete(next);
      const claim = { workerId, limit: 1, now: clock.now(), agents: agents() };
      const [lease] = await leases.claim(next === undefined ? claim : { ...claim, only: [next] });
      if (lease === undefined && next === undefined) return;
      if (lease === undefined) continue;
      const slice = new AbortController();
      const cancel = clock.schedule(clock.now() + sliceMs, () => slice.abort());
      const { rest, isReleased } = await this.#host.drive(lease, { signal: slice.signal });
      cancel();
      if (!isReleased) await leases.release(lease, rest);
      if (rest.kind === "ready") this.#queue.add(lease.runId);
    }
  }
}
