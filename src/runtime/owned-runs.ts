import {
  type DriveOptions,
  type DriveResult,
  Fault,
  type Journal,
  type Lease,
  type Rest,
  type RunHost,
  type RunId,
} from "../kernel/index.ts";
import type { LiveContexts } from "./process/live-contexts.ts";
import type { WorkerContext } from "./process/worker-context.ts";
import { RunOwner } from "./run/run-owner.ts";
import type { AgentRegistry } from "./worker/agent-registry.ts";

export interface OwnedRunsOptions {
  /** What the runs of this worker share. */
  readonly context: WorkerContext;
  readonly journal: Pick<Journal, "find">;
  readonly agents: AgentRegistry;
  readonly contexts: LiveContexts;
  /** Called when a run has ended for good. */
  readonly onEnd: () => void;
  readonly onError: (error: unknown) => void;
}

/** The runs that this worker owns. The engine makes it execute each run that it has claimed. */
export class OwnedRuns implements RunHost {
  readonly #options: OwnedRunsOptions;
  readonly #owners = new Map<RunId, RunOwner>();
  /** Released runs whose hooks and other observers still process events. */
  readonly #observing = new Map<RunId, Promise<void>>();
  /**
   * Faults with which the store refused a record of a run. When the run is executed again, it fails with this
   * fault.
   */
  readonly #refusals = new Map<RunId, Fault>();
  #isClosing = false;

  constructor(options: OwnedRunsOptions) {
    this.#options = options;
  }

  async drive(lease: Lease, options: DriveOptions = {}): Promise<DriveResult> {
    const { runId } = lease;
    const owner = await this.#load(lease, options);
    if (!(owner instanceof RunOwner)) return { rest: owner, isReleased: false };
    // `releaseAll` releases the runs that are owned when it is called. A run that was loaded later is handed back here.
    if (this.#isClosing) return { rest: { kind: "ready" }, isReleased: false };
    this.#owners.set(runId, owner);
    try {
      const result = await owner.runUntilReleased(this.#refusals.get(runId));
      if (result.rest.kind === "ended") this.#forget(runId);
      else if (owner.hasEnded) this.#noteResumable(runId);
      return result;
    } finally {
      this.#noteReleased(runId, owner);
    }
  }

  /** Loads the run. L7: if the run must not be loaded yet, returns the state in which it is left. */
  async #load(lease: Lease, options: DriveOptions): Promise<RunOwner | Rest> {
    try {
      return await RunOwner.load(await this.#contextOf(lease.runId), lease, options);
    } catch (error) {
      const { code, details } = Fault.from(error);
      const retryAt = code === "crash_loop" ? details?.["retryAt"] : undefined;
      if (typeof retryAt !== "number") throw error;
      this.#options.onError(error);
      return { kind: "unloaded", wakeAt: retryAt };
    }
  }

  /**
   * Returns the context for a run, with the agents of the run: those that it is bound to, or that a resolver
   * creates for it.
   */
  async #contextOf(runId: RunId): Promise<WorkerContext> {
    const { context, agents, journal } = this.#options;
    let own = agents.forRun(runId);
    if (own === undefined && agents.mayResolve) {
      const run = await journal.find(runId);
      own = run && (await agents.resolve(run));
    }
    return own === undefined ? context : { ...context, agents: own };
  }

  /** Removes what was kept for a run that has ended and cannot continue. */
  #forget(runId: RunId): void {
    const { agents, contexts, onEnd } = this.#options;
    agents.unbind(runId);
    contexts.delete(runId);
    onEnd();
  }

  #noteResumable(runId: RunId): void {
    const { agents, contexts } = this.#options;
    agents.noteResumable(runId);
    contexts.noteEnded(runId);
  }

  #noteReleased(runId: RunId, owner: RunOwner): void {
    if (owner.refusal === undefined) this.#refusals.delete(runId);
    else this.#refusals.set(runId, owner.refusal);
    if (this.#owners.get(runId) === owner) this.#owners.delete(runId);
    this.#trackObservers(runId, owner);
  }

  #trackObservers(runId: RunId, owner: RunOwner): void {
    const forget = (): void => {
      if (this.#observing.get(runId) === settled) this.#observing.delete(runId);
    };
    const settled = owner.whenObserved()?.then(forget, (error: unknown) => {
      forget();
      this.#options.onError(error);
    });
    if (settled !== undefined) this.#observing.set(runId, settled);
  }

  /**
   * Resolves when the observers of a run have processed its events. `undefined` if this process has no observers of
   * the run.
   */
  whenObserved(runId: RunId): Promise<void> | undefined {
    const observed = this.#owners.get(runId)?.whenObserved();
    return observed === undefined
      ? this.#observing.get(runId)
      : observed.then(() => this.#observing.get(runId));
  }

  /** Resolves when the observers of all released runs have processed their events. */
  async whenAllObserved(): Promise<void> {
    await Promise.all(this.#observing.values());
  }

  /** Makes the owner of a run read its mailbox and check its lease. */
  poke(runId: RunId): void {
    this.#owners.get(runId)?.poke();
  }

  pokeAll(): void {
    for (const owner of this.#owners.values()) owner.poke();
  }

  /**
   * Releases all runs for other workers. Calls in flight get `graceMs` to settle. Afterwards this worker executes
   * no runs.
   */
  async releaseAll(graceMs: number): Promise<void> {
    this.#isClosing = true;
    await Promise.allSettled([...this.#owners.values()].map((owner) => owner.release(graceMs)));
  }
}
