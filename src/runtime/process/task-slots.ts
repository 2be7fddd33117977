import { priorities, Priority } from "../../kernel/index.ts";

type TenantId = string | null;

/** The waiting tasks of one priority, by tenant, in the order in which they came. No queue is empty. */
type Queues = Map<TenantId, (() => void)[]>;

/**
 * Limits how many tasks of a worker are active at the same time, and chooses the next one. Priorities share the slots
 * by stride scheduling over their weights; BACKGROUND is served only when no other task waits. Tenants of equal
 * priority take turns; the tasks of one tenant are served in order. A task that waits gives its slot back.
 */
export class TaskSlots {
  readonly #capacity: number;
  #taken = 0;
  /** The waiting tasks by priority. No value is empty. */
  readonly #waiting = new Map<Priority, Queues>();
  /** Stride position of each priority; the lowest is served next. */
  readonly #passes = new Map<Priority, number>();
  /** Value of `#serves` when each tenant was last served. */
  readonly #served = new Map<TenantId, number>();
  /** Number of slots that were given to waiting tasks. */
  #serves = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Takes a slot if one is free and no task waits. Returns whether it did. */
  tryTake(): boolean {
    if (this.#taken >= this.#capacity || this.#waiting.size > 0) return false;
    this.#taken++;
    return true;
  }

  /** Resolves when the caller has a slot. */
  take(priority: Priority, tenantId: TenantId = null): Promise<void> {
    if (this.tryTake()) return Promise.resolve();
    return new Promise((start) => {
      this.#level(priority);
      let queues = this.#waiting.get(priority);
      if (queues === undefined) this.#waiting.set(priority, (queues = new Map<TenantId, (() => void)[]>()));
      const queue = queues.get(tenantId);
      if (queue === undefined) queues.set(tenantId, [start]);
      else queue.push(start);
    });
  }

  /** Gives a slot back, to the next waiting task if there is one. */
  give(): void {
    const start = this.#next();
    if (start === undefined) this.#taken--;
    else start();
  }

  /** A priority without waiting tasks starts at the position that is served next, so that idle time earns no credit. */
  #level(priority: Priority): void {
    if (priority === Priority.BACKGROUND || this.#waiting.has(priority)) return;
    const busy = [...this.#waiting.keys()].filter((each) => each !== Priority.BACKGROUND);
    const level = busy.length === 0 ? 0 : Math.min(...busy.map((each) => this.#pass(each)));
    this.#passes.set(priority, Math.max(this.#pass(priority), level));
  }

  #next(): (() => void) | undefined {
    const priority = this.#waiting.size === 0 ? undefined : this.#nextPriority();
    const queues = priority === undefined ? undefined : this.#waiting.get(priority);
    if (priority === undefined || queues === undefined) {
      if (this.#passes.size > 0) this.#passes.clear();
      if (this.#served.size > 0) this.#served.clear();
      return undefined;
    }
    const tenantId = this.#nextTenant(queues);
    const queue = queues.get(tenantId);
    const start = queue?.shift();
    if (queue?.length === 0) queues.delete(tenantId);
    if (queues.size === 0) this.#waiting.delete(priority);
    this.#served.set(tenantId, ++this.#serves);
    if (priority !== Priority.BACKGROUND)
      this.#passes.set(priority, this.#pass(priority) + Priority.CRITICAL / priority);
    return start;
  }

  /** The tenant that was served longest ago. Among tenants that were never served, the one that came first. */
  #nextTenant(queues: Queues): TenantId {
    let next: TenantId = null;
    let longestAgo = Infinity;
    for (const tenantId of queues.keys()) {
      const served = this.#served.get(tenantId) ?? 0;
      if (served < longestAgo) [next, longestAgo] = [tenantId, served];
    }
    return next;
  }

  /** The waiting priority with the lowest stride position. Of two equal positions, the higher priority comes first. */
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
