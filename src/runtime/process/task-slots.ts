import { priorities, Priority } from "../../kernel/index.ts";

type TenantId = string | null;
type Start = () => void;

/** The waiting tasks of one priority. Tenants take turns, and within a tenant the pairs of user and agent. */
class WaitingTasks {
  /**
   * Waiting tasks by tenant, then by `turnKey`. The entry that was served longest ago comes first. No entry is
   * empty.
   */
  readonly #tenants = new Map<TenantId, Map<string, Start[]>>();

  get isEmpty(): boolean {
    return this.#tenants.size === 0;
  }

  add(tenantId: TenantId, turn: string, start: Start): void {
    let queues = this.#tenants.get(tenantId);
    if (queues === undefined) this.#tenants.set(tenantId, (queues = new Map<string, Start[]>()));
    const queue = queues.get(turn);
    if (queue === undefined) queues.set(turn, [start]);
    else queue.push(start);
  }

  /** Removes and returns the next task. Its entries move to the end of their lists, unless they are empty now. */
  shift(): Start | undefined {
    for (const [tenantId, queues] of this.#tenants)
      for (const [turn, queue] of queues) {
        const start = queue.shift();
        queues.delete(turn);
        if (queue.length > 0) queues.set(turn, queue);
        this.#tenants.delete(tenantId);
        if (queues.size > 0) this.#tenants.set(tenantId, queues);
        return start;
      }
    return undefined;
  }
}

/**
 * Limits how many tasks of a worker are active at the same time, and chooses the next one. Priorities share the
 * slots in proportion to their weights (stride scheduling); BACKGROUND is served only when no other task waits. At
 * equal priority, tenants take turns, and within a tenant the pairs of user and agent take turns. The tasks of one
 * pair are served in order. A task that waits for something else gives back its slot.
 */
export class TaskSlots {
  readonly #capacity: number;
  #taken = 0;
  /** The waiting tasks by priority. No entry is empty. */
  readonly #waiting = new Map<Priority, WaitingTasks>();
  /** Stride position of each priority. The priority with the lowest position is served next. */
  readonly #passes = new Map<Priority, number>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Takes a slot if one is free and no task waits. Returns whether it did. */
  tryTake(): boolean {
    if (this.#taken >= this.#capacity || this.#waiting.size > 0) return false;
    this.#taken++;
    return true;
  }

  /** Resolves when the caller has a slot. `turn` is the `turnKey` of the run. */
  take(priority: Priority, tenantId: TenantId = null, turn = ""): Promise<void> {
    if (this.tryTake()) return Promise.resolve();
    return new Promise((start) => {
      this.#level(priority);
      let waiting = this.#waiting.get(priority);
      if (waiting === undefined) this.#waiting.set(priority, (waiting = new WaitingTasks()));
      waiting.add(tenantId, turn, start);
    });
  }

  /** Gives back a slot, which goes to the next waiting task if there is one. */
  give(): void {
    const start = this.#next();
    if (start === undefined) this.#taken--;
    else start();
  }

  /**
   * Sets a priority without waiting tasks to the position that is served next, so that the time in which it was
   * idle gives it no advantage.
   */
  #level(priority: Priority): void {
    if (priority === Priority.BACKGROUND || this.#waiting.has(priority)) return;
    const busy = [...this.#waiting.keys()].filter((each) => each !== Priority.BACKGROUND);
    const level = busy.length === 0 ? 0 : Math.min(...busy.map((each) => this.#pass(each)));
    this.#passes.set(priority, Math.max(this.#pass(priority), level));
  }

  #next(): Start | undefined {
    const priority = this.#waiting.size === 0 ? undefined : this.#nextPriority();
    const waiting = priority === undefined ? undefined : this.#waiting.get(priority);
    if (priority === undefined || waiting === undefined) {
      if (this.#passes.size > 0) this.#passes.clear();
      return undefined;
    }
    const start = waiting.shift();
    if (waiting.isEmpty) this.#waiting.delete(priority);
    if (priority !== Priority.BACKGROUND)
      this.#passes.set(priority, this.#pass(priority) + Priority.CRITICAL / priority);
    return start;
  }

  /**
   * Returns the priority of a waiting task with the lowest stride position. Of two equal positions, the higher
   * priority comes first.
   */
  #nextPriority(): Priority | undefined {
    let next: Priority | undefined;
    for (const priority of priorities) {
      if (!this.#waiting.has(priority)) continue;
      if (priority === Priority.BACKGROUND) return next ?? priority;
      if (next === undefined || this.#pass(priority) < this.#pass(next)) next = priority;
    }
    return next;
  }

  #pass(priority: Priority): number {
    return this.#passes.get(priority) ?? 0;
  }
}
