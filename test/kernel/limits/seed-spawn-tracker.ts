import {
  BudgetExhaustedError,
  priorities,
  Priority,
  type SpawnBudget,
  type TaskId,
} from "../../../src/kernel/index.ts";

/**
 * The seat tracker of the first design, with its faults, so that a test can show which faults the headcount's promises
 * prevent. The root is counted but not listed, and `allowPreempt` is ignored (R4).
 */
export class SeedSpawnTracker {
  readonly #maxAgents: number;
  readonly #active = new Map<TaskId, Priority>();
  readonly #paused = new Set<TaskId>();
  #total = 1;

  constructor(budget: SpawnBudget) {
    this.#maxAgents = budget.maxAgents;
  }

  acquire(taskId: TaskId, priority: Priority): void {
    if (this.#total < this.#maxAgents) {
      this.#active.set(taskId, priority);
      this.#total += 1;
      return;
    }
    const victim = priority > Priority.NORMAL ? this.#lowestBelow(priority) : undefined;
    if (victim === undefined) {
      throw new BudgetExhaustedError({
        dimension: "agents",
        limit: this.#maxAgents,
        used: this.#total + 1,
      });
    }
    this.#paused.add(victim);
    this.#active.set(taskId, priority);
  }

  release(taskId: TaskId): void {
    this.#active.delete(taskId);
    this.#paused.delete(taskId);
    this.#total = Math.max(1, this.#total - 1);
  }

  isPaused(taskId: TaskId): boolean {
    return this.#paused.has(taskId);
  }

  reprioritize(taskId: TaskId, priority: Priority): void {
    if (!this.#active.has(taskId)) return;
    this.#active.set(taskId, priority);
    if (priority >= Priority.NORMAL) this.#paused.delete(taskId);
    else if (this.#total >= this.#maxAgents) this.#paused.add(taskId);
  }

  active(): readonly TaskId[] {
    return [...this.#active.keys()];
  }

  /** The oldest of the tasks with the lowest priority. Paused tasks are not excluded (R1). */
  #lowestBelow(priority: Priority): TaskId | undefined {
    const ranks = priorities.filter((rank) => rank < priority).toReversed();
    const tasks = [...this.#active];
    return ranks.flatMap((rank) => tasks.filter((task) => task[1] === rank))[0]?.[0];
  }
}
