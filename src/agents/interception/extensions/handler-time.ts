import { Fault, type Clock } from "../../../kernel/index.ts";

/** Maximum time of one handler, in milliseconds. The time in which a person is asked does not count. */
const handlerMs = 5_000;

/** The faults of calls that exceeded their time limit. */
const expiries = new WeakSet<Fault>();

/** Measures the time of one call of an extension's code. The time in which a person is asked does not count. */
export class HandlerTime {
  readonly #name: string;
  readonly #clock: () => Clock;
  #leftMs: number;
  #since = 0;
  #questions = 0;
  #cancelTimer: (() => void) | undefined;
  #expire: ((fault: Fault) => void) | undefined;
  #isOver = false;

  /**
   * `name` describes the code in the fault of a call that takes too long. The clock is read only for asynchronous
   * code. With `limitMs: Infinity` the code has no time limit.
   */
  constructor(name: string, clock: () => Clock, limitMs: number = handlerMs) {
    this.#name = name;
    this.#clock = clock;
    this.#leftMs = limitMs;
  }

  /** Whether the fault means that code exceeded its time. */
  static isExpiry(fault: Fault): boolean {
    return expiries.has(fault);
  }

  /** Whether the code has ended or has exceeded its time. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Runs the code. Rejects with `internal` when its time limit has passed, and with the error of `watch` if that
   * rejects. The code may still run then, but `isOver` is true. `watch` is called only for asynchronous code.
   */
  run<Value>(
    code: () => Value | Promise<Value>,
    watch?: (fail: (error: unknown) => void) => () => void,
  ): Promise<Value> {
    let work: Value | Promise<Value>;
    try {
      work = code();
    } catch (error) {
      this.#isOver = true;
      return Promise.reject(error);
    }
    if (!isThenable(work)) {
      this.#isOver = true;
      return Promise.resolve(work);
    }
    const started = work;
    return new Promise<Value>((resolve, reject) => {
      const unwatch = watch?.(reject);
      this.#expire = reject;
      if (this.#questions === 0) this.#start();
      Promise.resolve(started).then(resolve, reject);
      this.#end = () => unwatch?.();
    }).finally(() => {
      this.#isOver = true;
      this.#stop();
      this.#end();
    });
  }

  #end: () => void = () => {};

  /** Waits for a person. The time of this wait does not count for the code. */
  async pauseFor<Value>(ask: () => Promise<Value>): Promise<Value> {
    if (this.#questions++ === 0) this.#stop();
    try {
      return await ask();
    } finally {
      if (--this.#questions === 0 && !this.#isOver && this.#expire !== undefined) this.#start();
    }
  }

  #start(): void {
    if (this.#leftMs === Infinity) return;
    const clock = this.#clock();
    this.#since = clock.now();
    this.#cancelTimer = clock.schedule(this.#since + this.#leftMs, () => {
      this.#isOver = true;
      const fault = new Fault("internal", `${this.#name} exceeded its time limit of ${handlerMs} ms`);
      expiries.add(fault);
      this.#expire?.(fault);
    });
  }

  #stop(): void {
    if (this.#cancelTimer === undefined) return;
    this.#cancelTimer();
    this.#cancelTimer = undefined;
    this.#leftMs = Math.max(0, this.#leftMs - (this.#clock().now() - this.#since));
  }
}

function isThenable<Value>(value: Value | Promise<Value>): value is Promise<Value> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
