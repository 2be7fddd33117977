import type { Clock, JsonValue, TaskId } from "../kernel/index.ts";

interface Waiter {
  readonly resolve: (value: JsonValue | undefined) => void;
  readonly until: number | null;
}

/** Who waits for which name in this process, and until when. */
export class Waits {
  readonly #clock: Clock;
  readonly #waiters = new Map<string, Waiter[]>();
  readonly #timers = new Map<() => void, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The time at which the next of them has waited long enough. */
  get nextTime(): number | null {
    const times = [...this.#timers.values()];
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Resolves with what `deliver` brings, or with `undefined` at `until`. */
  wait(taskId: TaskId, name: string, until: number | null): Promise<JsonValue | undefined> {
    return new Promise((resolve) => {
      const key = `${taskId} ${name}`;
      const waiter: Waiter = { until, resolve };
      this.#waiters.set(key, [...(this.#waiters.get(key) ?? []), waiter]);
      if (until !== null) this.at(until, () => this.#leave(key, waiter) && resolve(undefined));
    });
  }

  /** Calls back at a time, unless everything is forgotten before. */
  at(atMs: number, callback: () => void): void {
    const cancel = this.#clock.schedule(atMs, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.set(cancel, atMs);
  }

  /** Whether somebody took it. */
  deliver(taskId: TaskId, name: string, value: JsonValue): boolean {
    const key = `${taskId} ${name}`;
    const [first] = this.#waiters.get(key) ?? [];
    if (first === undefined) return false;
    this.#leave(key, first);
    first.resolve(value);
    return true;
  }

  forget(): void {
    for (const cancel of this.#timers.keys()) cancel();
    this.#timers.clear();
    this.#waiters.clear();
  }

  #leave(key: string, waiter: Waiter): boolean {
    const waiters = this.#waiters.get(key) ?? [];
    if (!waiters.includes(waiter)) return false;
    this.#waiters.set(
      key,
      waiters.filter((each) => each !== waiter),
    );
    return true;
  }
}
