import type { Clock, JsonValue, StepRecord, TaskId } from "../../kernel/index.ts";
import type { Resolutions } from "../journal/resolutions.ts";
import { asksPerson, resolutionsTaken } from "../journal/wait-names.ts";

/** When a wait has been long enough; `null` while the clock it goes by stands still. */
export type Due = () => number | null;

/** What a task waits for, as its log names it. */
export interface AwaitedName {
  readonly name: string;
  readonly due?: Due | undefined;
}

export interface Wait {
  /** What came, or `undefined` when the time was there first. */
  readonly came: Promise<JsonValue | undefined>;
  /** Nobody waits any more; what came and was not recorded is there for the next. */
  leave(): void;
}

interface Waiter {
  readonly taskId: TaskId;
  readonly name: string;
  /** The task whose clock `due` goes by. */
  readonly clock: TaskId;
  readonly due: Due | undefined;
  readonly resolve: (value: JsonValue | undefined) => void;
  forgetTimer: (() => void) | undefined;
  /** It was given a value that no step has recorded yet. */
  served: boolean;
}

/**
 * Who waits for which name in this process, and until when. W1, W2: at most one waiter of a name has a value that is not recorded yet,
 * so the first value of the name is always the one it has.
 */
export class WaitRegistry {
  readonly #clock: Clock;
  readonly #resolutions: Resolutions;
  #waiters: Waiter[] = [];
  /** Made with the first. */
  #timers: Map<() => void, number> | undefined;

  constructor(clock: Clock, resolutions: Resolutions) {
    this.#clock = clock;
    this.#resolutions = resolutions;
  }

  /** The time at which the next of them has waited long enough. */
  get nextTime(): number | null {
    const times = [...(this.#timers?.values() ?? [])];
    return times.length === 0 ? null : Math.min(...times);
  }

  wait(taskId: TaskId, name: string, due?: Due, clock: TaskId = taskId): Wait {
    const { promise, resolve } = Promise.withResolvers<JsonValue | undefined>();
    const waiter: Waiter = { taskId, name, clock, due, resolve, forgetTimer: undefined, served: false };
    this.#waiters.push(waiter);
    this.serve(taskId, name);
    if (!waiter.served) this.#arm(waiter);
    return { came: promise, leave: () => this.#leave(waiter) };
  }

  /** Something came for the name, or was taken: the next waiter gets what is there. */
  serve(taskId: TaskId, name: string): void {
    if (this.#waiters.length === 0) return;
    const waiters = this.#waiters.filter((each) => each.taskId === taskId && each.name === name);
    const [first] = waiters;
    if (first === undefined || waiters.some(({ served }) => served)) return;
    const found = this.#resolutions.first(taskId, name);
    if (found === undefined) return;
    first.served = true;
    first.forgetTimer?.();
    first.resolve(found.value);
  }

  /** A step is recorded: the value it waited for is taken, and a task that asked a person has a running clock again. */
  recorded(step: StepRecord): void {
    if (step.kind === "llm" || step.kind === "tool") return;
    const taken = resolutionsTaken(step);
    if (taken !== undefined) this.taken(step.taskId, taken.wait);
    if (asksPerson(step.address)) this.rearm(step.taskId);
  }

  /** A step recorded what it was given. */
  taken(taskId: TaskId, name: string): void {
    if (this.#waiters.length === 0) return;
    this.#waiters = this.#waiters.filter(
      (waiter) => !(waiter.served && waiter.taskId === taskId && waiter.name === name),
    );
    this.serve(taskId, name);
  }

  /** The clock of a task goes on. */
  rearm(taskId: TaskId): void {
    for (const waiter of this.#waiters.slice()) {
      if (waiter.clock !== taskId || waiter.served) continue;
      waiter.forgetTimer?.();
      this.#arm(waiter);
    }
  }

  /** Calls back at a time, unless told to forget it before. */
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
    const own = this.#waiters.filter((waiter) => waiter.taskId === taskId);
    if (own.length === 0) return;
    for (const { forgetTimer } of own) forgetTimer?.();
    this.#waiters = this.#waiters.filter((waiter) => waiter.taskId !== taskId);
  }

  forget(): void {
    for (const cancel of this.#timers?.keys() ?? []) cancel();
    this.#timers?.clear();
    this.#waiters = [];
  }

  #arm(waiter: Waiter): void {
    const time = waiter.due?.() ?? null;
    if (time === null) return;
    if (time <= this.#clock.now()) {
      this.#remove(waiter);
      waiter.resolve(undefined);
      return;
    }
    waiter.forgetTimer = this.at(time, () => {
      if (!waiter.served && this.#waiters.includes(waiter)) this.#arm(waiter);
    });
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
