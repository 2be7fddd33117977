import {
  Fault,
  holdsSeat,
  openHeadcount,
  Priority,
  seatHolders,
  spawnBudget,
  type Headcount,
  type HeadcountTask,
  type SeatHolder,
  type SpawnBudget,
  type RunSnapshot,
  type TaskId,
} from "../../kernel/index.ts";
import { OwnSeats } from "./own-seats.ts";

/**
 * Who has a seat. Made from a budget it stands alone and owns a headcount; made from a run (`new SpawnTracker(ctx)`) it is a view of
 * the seats the runtime holds, which nobody else changes (H4).
 *
 * Alone, ids are names of your own, one per task: two tasks of one agent take two seats (H1). Nobody counts calls for you, so a
 * victim counts as being in one: it keeps its seat until `settle` or `release`, and only then does the newcomer's `acquire` resolve
 * (H2).
 */
export class SpawnTracker {
  readonly #own: OwnSeats | null;
  readonly #look: () => Headcount;

  constructor(source: Partial<SpawnBudget> | { readonly snapshot: RunSnapshot } = {}) {
    if ("snapshot" in source) {
      this.#own = null;
      this.#look = () => source.snapshot.headcount;
    } else {
      const own = new OwnSeats(openHeadcount(spawnBudget(source), "root" as TaskId, Priority.NORMAL));
      this.#own = own;
      this.#look = () => own.headcount;
    }
  }

  /**
   * Asks for a seat at once, and resolves when it is had: immediately while one is free, else when the victim has given up its own.
   * Rejects with `BudgetExhaustedError` when none can be had, and with `CancellationError` when it is released while it waits.
   *
   * `parent`: who hires, `root` unless told; a newcomer's ancestors are never its victims (H3).
   */
  async acquire(
    id: string,
    priority: Priority = Priority.NORMAL,
    { parent }: { readonly parent?: string } = {},
  ): Promise<void> {
    const own = this.#writable("acquire", "hire with ctx.spawn(), which takes the seat");
    await own.acquire(id, parent ?? own.headcount.rootId, priority);
  }

  /** It ended, however it ended: its seat goes to whoever is next (H5). Twice frees once; the root keeps its own. */
  release(id: string): void {
    this.#writable("release", "the commit that ends or pauses a task frees its seat").release(id);
  }

  /** Of a task that is to pause: the calls it was in are over, and it starts no other (H7). */
  settle(id: string): void {
    this.#writable("settle", "the runtime sees for itself when a task's calls are over").settle(id);
  }

  /** H8: a demoted task yields only to one that waits; a promoted one queues by its new rank and takes nobody's seat. */
  reprioritize(id: string, priority: Priority): void {
    const own = this.#writable("reprioritize", "call run.reprioritize(taskId, priority) on the run's handle");
    own.reprioritize(id, priority);
  }

  /** Whether it is to start nothing more: it will give up its seat, or has. */
  isPaused(id: string): boolean {
    const status = this.find(id)?.status;
    return status === "pausing" || status === "paused";
  }

  /** `undefined`: it was never hired, or has ended. */
  find(id: string): HeadcountTask | undefined {
    const { tasks } = this.#look();
    return Object.hasOwn(tasks, id) ? tasks[id as TaskId] : undefined;
  }

  hasSeat(id: string): boolean {
    const task = this.find(id);
    return task !== undefined && holdsSeat(task);
  }

  /** The root's included; never above `budget.maxAgents` (H1). */
  get seatsTaken(): number {
    return this.#look().taken;
  }

  get holders(): readonly SeatHolder[] {
    return seatHolders(this.#look());
  }

  get budget(): SpawnBudget {
    return this.#look().budget;
  }

  #writable(method: string, instead: string): OwnSeats {
    if (this.#own !== null) return this.#own;
    throw new Fault(
      "unsupported",
      `SpawnTracker.${method}: inside a run the tracker is a view of the seats the runtime holds; ${instead}`,
    );
  }
}
