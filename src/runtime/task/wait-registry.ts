import type { Clock, JsonValue, StepRecord, TaskId } from "../../kernel/index.ts";
import type { Resolutions } from "../journal/resolutions.ts";
import { asksPerson, resolutionsTaken } from "../journal/wait-names.ts";

/** Returns the time at which a wait times out. `null` while the clock that it uses is stopped. */
export type Due = () => number | null;

/** A name for which a task waits, as its log shows it. */
export interface AwaitedName {
  readonly name: string;
  readonly due?: Due | undefined;
  /** Further names that end the wait. */
  readonly others?: readonly string[];
  /** Whether only this process can end the wait, so that the run stays in memory. Default: `false`. */
  readonly staysHere?: boolean;
}

export interface Wait {
  /** Resolves to the value, or to `undefined` if the time was reached first. */
  readonly came: Promise<JsonValue | undefined>;
  /** Ends the wait. A value that arrived and was not recorded is available to the next waiter. */
  leave(): void;
}

interface Waiter {
  readonly taskId: TaskId;
  readonly name: string;
  /** The task whose clock `due` uses. */
  readonly clock: TaskId;
  readonly due: Due | undefined;
  readonly resolve: (value: JsonValue | undefined) => void;
  forgetTimer: (() => void) | undefined;
  /** Whether the waiter has received a value that no step has recorded yet. */
  served: boolean;
  /** Whether the time has come while another waiter has a value that it may still return. */
  overdue: boolean;
}

/**
 * The waits in this process, by task and name, with their times. W1, W2: at most one waiter of a name has a value
 * that is not recorded, so that this is always the first value of the name.
 */
export class WaitRegistry {
  readonly #clock: Clock;
  readonly #resolutions: Resolutions;
  #waiters: Waiter[] = [];
  /** Created with the first timer. */
  #timers: Map<() => void, number> | undefined;

  constructor(clock: Clock, resolutions: Resolutions) {
    this.#clock = clock;
    this.#resolutions = resolutions;
  }

  /** Returns the time at which the next wait times out. */
  get nextTime(): number | null {
    const times = [...(this.#timers?.values() ?? [])];
    return times.length === 0 ? null : Math.min(...times);
  }

  wait(taskId: TaskId, name: string, due?: Due, clock: TaskId = taskId): Wait {
    const { promise, resolve } = Promise.withResolvers<JsonValue | undefined>();
    const waiter: Waiter = {
      taskId,
      name,
      clock,
      due,
      resolve,
      forgetTimer: undefined,
      served: false,
      overdue: false,
    };
    this.#waiters.push(waiter);
    this.serve(taskId, name);
    if (!waiter.served) this.#arm(waiter);
    return { came: promise, leave: () => this.#leave(waiter) };
  }

  /** Gives the next value of a name to its next waiter, after a value arrived or was recorded. */
  serve(taskId: TaskId, name: string): void {
    if (this.#waiters.length === 0) return;
    const waiters = this.#waiters.filter((each) => each.taskId === taskId && each.name === name);
    const [first] = waiters;
    if (first === undefined || waiters.some(({ served }) => served)) return;
    const found = this.#resolutions.first(taskId, name);
    if (found === undefined) {
      for (const waiter of waiters) if (waiter.overdue) this.#arm(waiter);
      return;
    }
    first.served = true;
    first.forgetTimer?.();
    first.resolve(found.value);
  }

  /**
   * Notes that a step is recorded. The value for which it waited is taken, and the clock of a task that asked a
   * person runs again.
   */
  recorded(step: StepRecord): void {
    if (step.kind === "llm" || step.kind === "tool") return;
    const taken = resolutionsTaken(step);
    if (taken !== undefined) this.taken(step.taskId, taken.wait);
    if (asksPerson(step.address)) this.rearm(step.taskId);
    // The values that abandoned branches had taken are available again.
    if (step.kind === "race" || step.kind === "abandon")
      for (const { name } of this.#waitersOf(step.taskId)) this.serve(step.taskId, name);
  }

  /** Notes that a step has recorded its value. */
  taken(taskId: TaskId, name: string): void {
    if (this.#waiters.length === 0) return;
    this.#waiters = this.#waiters.filter(
      (waiter) => !(waiter.served && waiter.taskId === taskId && waiter.name === name),
    );
    this.serve(taskId, name);
  }

  /** Restarts the timers of a task whose clock runs again. */
  rearm(taskId: TaskId): void {
    for (const waiter of this.#waiters.slice()) {
      if (waiter.clock !== taskId || waiter.served) continue;
      waiter.forgetTimer?.();
      this.#arm(waiter);
    }
  }

  /** Calls back at a time. The returned function cancels the call. */
  at(atMs: number, callback: () => void): () => void {
    const timers = (this.#timers ??= new Map<() => void, number>());
    const cancel = this.#clock.schedule(atMs, () => {
      timers.delete(cancel);
      callback();
    });
    timers.set(cancel, atMs);
    return () => {
      timers.delete(cancel);
      cancel();
    };
  }

  forgetTask(taskId: TaskId): void {
    const own = this.#waitersOf(taskId);
    if (own.length === 0) return;
    for (const { forgetTimer } of own) forgetTimer?.();
    this.#waiters = this.#waiters.filter((waiter) => waiter.taskId !== taskId);
  }

  forget(): void {
    for (const cancel of this.#timers?.keys() ?? []) cancel();
    this.#timers?.clear();
    this.#waiters = [];
  }

  #waitersOf(taskId: TaskId): readonly Waiter[] {
    return this.#waiters.filter((waiter) => waiter.taskId === taskId);
  }

  #arm(waiter: Waiter): void {
    const time = waiter.due?.() ?? null;
    if (time === null) return;
    if (time <= this.#clock.now()) {
      waiter.overdue = this.#isHeld(waiter);
      if (waiter.overdue) return;
      this.#remove(waiter);
      waiter.resolve(undefined);
      return;
    }
    waiter.forgetTimer = this.at(time, () => {
      if (!waiter.served && this.#waiters.includes(waiter)) this.#arm(waiter);
    });
  }

  /**
   * W1: whether another waiter has a value of the same name. Its step is about to record the value, or to return it
   * because its branch was abandoned. `serve` then starts the timer of the waiter again.
   */
  #isHeld({ taskId, name }: Waiter): boolean {
    return this.#waiters.some((each) => each.served && each.taskId === taskId && each.name === name);
  }

  #leave(waiter: Waiter): void {
    if (!this.#remove(waiter)) return;
    waiter.forgetTimer?.();
    if (waiter.served) this.serve(waiter.taskId, waiter.name);
  }

  #remove(waiter: Waiter): boolean {
    const place = this.#waiters.indexOf(waiter);
    if (place >= 0) this.#waiters.splice(place, 1);
    return place >= 0;
  }
}
