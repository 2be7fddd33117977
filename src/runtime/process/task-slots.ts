import { priorities, Priority } from "../../kernel/index.ts";

type TenantId = string | null;

/** Of one priority, by tenant: those who wait, in the order in which they came. None is empty. */
type Queues = Map<TenantId, (() => void)[]>;

/**
 * How many tasks of a worker may be active at once, and who is next: by stride over priority weights, BACKGROUND only when nobody else
 * is ready; among equals tenants in turn, and for one tenant first come first served. A task that waits for something gives its slot back.
 */
export class TaskSlots {
  readonly #capacity: number;
  #taken = 0;
  /** By priority; none is empty. */
  readonly #waiting = new Map<Priority, Queues>();
  readonly #passes = new Map<Priority, number>();
  /** When each tenant was last served, by count. */
  readonly #served = new Map<TenantId, number>();
  #serves = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Whether there was one to be had at once. */
  tryTake(): boolean {
    if (this.#taken >= this.#capacity || this.#waiting.size > 0) return false;
    this.#taken++;
    return true;
  }

  /** Resolves with a slot. */
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

  give(): void {
    const start = this.#next();
    if (start === undefined) this.#taken--;
    else start();
  }

  /** A class that nobody waits in starts level with the one served next: idle time earns no credit. */
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

  /** The one served longest ago; of those that were not served yet, the one that came first. */
  #nextTenant(queues: Queues): TenantId {
    let next: TenantId = null;
    let longestAgo = Infinity;
    for (const tenantId of queues.keys()) {
      const served = this.#served.get(tenantId) ?? 0;
      if (served < longestAgo) [next, longestAgo] = [tenantId, served];
    }
    return next;
  }

  /** The higher among those with equal passes. */
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
