import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock, EventLoop, IdSource } from "../../kernel/index.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** The real functions, before any simulation replaces them. */
const realTurn = globalThis.setImmediate;

interface Happening {
  readonly at: number;
  /** Orders the happenings of one time. */
  readonly tie: number;
  readonly process: SimulatedProcess | undefined;
  readonly run: () => void;
  isCancelled: boolean;
}

const inside = new AsyncLocalStorage<SimulatedProcess | undefined>();

/** Returns the simulated process whose code calls this function. `undefined` outside a simulation. */
export function currentProcess(): SimulatedProcess | undefined {
  return inside.getStore();
}

/**
 * One thread and a virtual time. Each happening runs alone, with everything that continues from it without waiting. Of the
 * happenings of one time, the seed chooses the next one, so that the same seed gives the same order.
 *
 * @advanced
 */
export class Scheduler {
  readonly random: SeededRandom;
  readonly #queue: Happening[] = [];
  #now: number;
  #happenings = 0;

  /** `startAt` is the virtual time of the start, in epoch milliseconds. */
  constructor(random: SeededRandom, startAt: number) {
    this.random = random.named("scheduler");
    this.#now = startAt;
  }

  /** The virtual time in epoch milliseconds, which no process reads directly. */
  get now(): number {
    return this.#now;
  }

  /** Number of happenings so far. */
  get happenings(): number {
    return this.#happenings;
  }

  /** Calls `run` after `ms` milliseconds, for a process if one is given. Returns a function that cancels the call. */
  after(ms: number, run: () => void, process?: SimulatedProcess): () => void {
    const happening = {
      at: this.#now + Math.max(0, ms),
      tie: this.random.next(),
      process,
      run,
      isCancelled: false,
    };
    push(this.#queue, happening);
    return () => {
      happening.isCancelled = true;
    };
  }

  /**
   * Runs scheduled actions until `isDone` returns `true` or no action is left. `isDone` is called after each
   * action.
   */
  async run(isDone: () => boolean): Promise<void> {
    await drained();
    while (!isDone()) {
      const next = pop(this.#queue);
      if (next === undefined) return;
      const { process, at, run } = next;
      if (next.isCancelled || process?.isAlive === false) continue;
      if (process !== undefined && process.stoppedUntil > at) {
        next.isCancelled = true;
        push(this.#queue, { ...next, at: process.stoppedUntil, isCancelled: false });
        continue;
      }
      this.#now = Math.max(this.#now, at);
      this.#happenings++;
      inside.run(process, run);
      await drained();
    }
  }
}

/** Resolves when no promise is left that can continue without another scheduled action. */
function drained(): Promise<void> {
  return new Promise((resolve) => void realTurn(resolve));
}

/** A process of a simulation. Its clock, its event loop and its timers stop with it. @advanced */
export class SimulatedProcess {
  readonly name: string;
  readonly random: SeededRandom;
  readonly ids: IdSource;
  readonly clock: Clock;
  readonly eventLoop: EventLoop;
  readonly #scheduler: Scheduler;
  readonly #startedAt: number;
  /** Milliseconds by which the machine's clock is ahead of the virtual time. */
  #aheadMs = 0;
  /** Speed of the clock relative to the virtual time. */
  #rate = 1;
  #setAt: number;
  /** The process does nothing before this virtual time. */
  stoppedUntil = 0;
  isAlive = true;
  /** Called before each call of a port. */
  onPort: ((what: string) => void) | undefined;

  constructor(scheduler: Scheduler, name: string, random: SeededRandom) {
    this.#scheduler = scheduler;
    this.name = name;
    this.random = random.named(`process ${name}`);
    this.#startedAt = scheduler.now;
    this.#setAt = scheduler.now;
    let count = 0;
    this.ids = { next: () => `${name}-${++count}` };
    this.clock = {
      now: () => Math.floor(this.#time()),
      schedule: (atMs, callback) => this.#schedule(atMs, callback),
    };
    this.eventLoop = {
      soon: (callback) => queueMicrotask(callback),
      whenBlocked: (callback) => queueMicrotask(() => process.nextTick(callback)),
      nextTurn: (callback) => void scheduler.after(0, callback, this),
      elapsed: () => scheduler.now - this.#startedAt,
    };
  }

  /** Runs code as this process. */
  enter<Result>(code: () => Result): Result {
    return inside.run(this, code);
  }

  /**
   * Counts a call of a port. Returns `false` if the process is dead: the call must then have no effect and never
   * settle.
   */
  mayCall(what: string): boolean {
    if (this.isAlive) this.onPort?.(what);
    return this.isAlive;
  }

  after(ms: number, run: () => void): () => void {
    return this.#scheduler.after(ms, run, this);
  }

  /** Calls the function at an interval that is not affected by changes of the clock. */
  every(ms: number, call: () => void): () => void {
    let cancel: () => void;
    const next = (): void => {
      cancel = this.after(ms, () => {
        next();
        call();
      });
    };
    next();
    return () => cancel();
  }

  /** Sets the clock of the machine forward or back. */
  jump(ms: number): void {
    this.#aheadMs += ms;
  }

  /** Sets the clock right. */
  setRight(): void {
    this.#aheadMs = 0;
    this.#rate = 1;
    this.#setAt = this.#scheduler.now;
  }

  /** Makes the clock run faster (`rate` above 1) or slower. */
  drift(rate: number): void {
    this.#aheadMs = this.#time() - this.#scheduler.now;
    this.#setAt = this.#scheduler.now;
    this.#rate = rate;
  }

  #time(): number {
    const { now } = this.#scheduler;
    return now + this.#aheadMs + (now - this.#setAt) * (this.#rate - 1);
  }

  #schedule(atMs: number, callback: () => void): () => void {
    let cancel: () => void;
    const arm = (): void => {
      // A timer does not count a change of the clock, so that a long delay is compared with the clock in between.
      const delayMs = Math.min(60_000, Math.max(0, (atMs - this.#time()) / this.#rate));
      cancel = this.after(delayMs, () => {
        if (this.clock.now() < Math.floor(atMs)) arm();
        else callback();
      });
    };
    arm();
    return () => cancel();
  }
}

function isBefore(one: Happening, other: Happening): boolean {
  return one.at === other.at ? one.tie < other.tie : one.at < other.at;
}

/** Adds to a binary heap. */
function push(heap: Happening[], added: Happening): void {
  heap.push(added);
  let place = heap.length - 1;
  while (place > 0) {
    const parent = (place - 1) >> 1;
    if (!isBefore(added, heap[parent] as Happening)) break;
    heap[place] = heap[parent] as Happening;
    place = parent;
  }
  heap[place] = added;
}

function pop(heap: Happening[]): Happening | undefined {
  const [first] = heap;
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return first;
  let place = 0;
  for (;;) {
    let child = 2 * place + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1] as Happening, heap[child] as Happening)) child++;
    if (!isBefore(heap[child] as Happening, last)) break;
    heap[place] = heap[child] as Happening;
    place = child;
  }
  heap[place] = last;
  return first;
}
