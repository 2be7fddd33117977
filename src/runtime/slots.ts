import { Priority } from "../kernel/index.ts";

interface Waiter {
  readonly tenantId: string | null;
  readonly start: () => void;
}

/**
 * How many tasks of a worker may be active at once, and who is next: by stride over priority weights, BACKGROUND only when nobody else
 * is ready; among equals tenants in turn, and for one tenant first come first served. A task that waits for something gives its slot back.
 */
export class Slots {
  readonly #capacity: number;
  #taken = 0;
  /** By priority; none is empty. */
  readonly #waiting = new Map<Priority, Waiter[]>();
  readonly #passes = new Map<Priority, number>();
  /** When each tenant was last served, by count. */
  readonly #served = new Map<string | null, number>();
  #serves = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Resolves with a slot. At once, if one is free. */
  async take(priority: Priority, tenantId: string | null = null): Promise<void> {
    if (this.#taken < this.#capacity && this.#waiting.size === 0) {
      this.#taken++;
      return;
    }
    await new Promise<void>((start) => {
      this.#level(priority);
      const waiters = this.#waiting.get(priority) ?? [];
      waiters.push({ tenantId, start });
      this.#waiting.set(priority, waiters);
    });
  }

  give(): void {
    const next = this.#next();
    if (next === undefined) this.#taken--;
    else next.start();
  }

  /** A class that nobody waits in starts level with the one served next: idle time earns no credit. */
  #level(priority: Priority): void {
    if (priority === Priority.BACKGROUND || this.#waiting.has(priority)) return;
    const busy = [...this.#waiting.keys()].filter((each) => each !== Priority.BACKGROUND);
    const level = busy.length === 0 ? 0 : Math.min(...busy.map((each) => this.#passes.get(each) ?? 0));
    this.#passes.set(priority, Math.max(this.#passes.get(priority) ?? 0, level));
  }

  #next(): Waiter | undefined {
    const priority = this.#nextPriority();
    if (priority === undefined) {
      this.#passes.clear();
      this.#served.clear();
      return undefined;
    }
    const waiters = this.#waiting.get(priority) ?? [];
    const next = waiters.toSorted((one, other) => this.#lastServed(one) - this.#lastServed(other))[0];
    if (next === undefined) return undefined;
    waiters.splice(waiters.indexOf(next), 1);
    if (waiters.length === 0) this.#waiting.delete(priority);
    this.#served.set(next.tenantId, ++this.#serves);
    if (priority !== Priority.BACKGROUND)
      this.#passes.set(priority, (this.#passes.get(priority) ?? 0) + Priority.CRITICAL / priority);
    return next;
  }

  #lastServed({ tenantId }: Waiter): number {
    return this.#served.get(tenantId) ?? 0;
  }

  /** The higher among those with equal passes. */
  #nextPriority(): Priority | undefined {
    const weighed = [...this.#waiting.keys()].filter((each) => each !== Priority.BACKGROUND);
    if (weighed.length === 0) return this.#waiting.has(Priority.BACKGROUND) ? Priority.BACKGROUND : undefined;
    return weighed.toSorted(
      (one, other) => (this.#passes.get(one) ?? 0) - (this.#passes.get(other) ?? 0) || other - one,
    )[0];
  }
}
