import { Priority } from "../kernel/index.ts";

interface Waiter {
  readonly priority: Priority;
  readonly start: () => void;
}

/**
 * How many tasks of a worker may be active at once, and who is next: by stride over priority weights, first come first served among
 * equals, BACKGROUND only when nobody else is ready. A task that waits for something gives its slot back.
 */
export class Slots {
  readonly #capacity: number;
  #taken = 0;
  readonly #waiting: Waiter[] = [];
  readonly #passes = new Map<Priority, number>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get free(): number {
    return this.#capacity - this.#taken;
  }

  /** Resolves with a slot. At once, if one is free. */
  async take(priority: Priority): Promise<void> {
    if (this.#taken < this.#capacity && this.#waiting.length === 0) {
      this.#taken++;
      return;
    }
    await new Promise<void>((start) => {
      this.#level(priority);
      this.#waiting.push({ priority, start });
    });
  }

  give(): void {
    const next = this.#next();
    if (next === undefined) this.#taken--;
    else next.start();
  }

  /** A class that nobody waits in starts level with the one served next. */
  #level(priority: Priority): void {
    const busy = this.#waiting.map((each) => each.priority);
    if (busy.includes(priority)) return;
    const level = busy.length === 0 ? 0 : Math.min(...busy.map((each) => this.#passes.get(each) ?? 0));
    this.#passes.set(priority, Math.max(this.#passes.get(priority) ?? 0, level));
  }

  #next(): Waiter | undefined {
    const weighed = this.#waiting.filter(({ priority }) => priority !== Priority.BACKGROUND);
    const [first] = (weighed.length > 0 ? weighed : this.#waiting).toSorted(
      (one, other) =>
        (this.#passes.get(one.priority) ?? 0) - (this.#passes.get(other.priority) ?? 0) ||
        other.priority - one.priority,
    );
    if (first === undefined) {
      this.#passes.clear();
      return undefined;
    }
    this.#waiting.splice(this.#waiting.indexOf(first), 1);
    if (first.priority !== Priority.BACKGROUND) {
      const pass = (this.#passes.get(first.priority) ?? 0) + Priority.CRITICAL / first.priority;
      this.#passes.set(first.priority, pass);
    }
    return first;
  }
}
