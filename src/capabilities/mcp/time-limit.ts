import { Fault, type Clock } from "../../kernel/index.ts";

/** A timeout that can be restarted, and that does not run while a person is asked. */
export class TimeLimit {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #over: () => void;
  /** Milliseconds that were left when the timeout was last started or paused. */
  #left: number;
  #startedAt = 0;
  #cancel: (() => void) | undefined;
  #held = 0;
  #ended = false;

  constructor(clock: Clock, ms: number, over: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#left = ms;
    this.#over = over;
    this.#start();
  }

  /** Milliseconds that are left. */
  get left(): number {
    const isRunning = this.#cancel !== undefined;
    return Math.max(0, this.#left - (isRunning ? this.#clock.now() - this.#startedAt : 0));
  }

  /** Restarts the timeout with its full time. */
  renew(): void {
    this.#pause();
    this.#left = this.#ms;
    this.#start();
  }

  /**
   * Pauses the timeout until `release()` has been called as often as `hold()`. It then continues with the remaining
   * time.
   */
  hold(): void {
    this.#held++;
    this.#pause();
  }

  /** Ends one `hold()`. */
  release(): void {
    this.#held--;
    this.#start();
  }

  /** Pauses the timeout until the work settles. */
  async heldDuring<Value>(work: Promise<Value>): Promise<Value> {
    this.hold();
    try {
      return await work;
    } finally {
      this.release();
    }
  }

  /** Stops the timeout for good. */
  end(): void {
    this.#ended = true;
    this.#pause();
  }

  #pause(): void {
    this.#left = this.left;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #start(): void {
    if (this.#held > 0 || this.#ended || this.#cancel !== undefined) return;
    this.#startedAt = this.#clock.now();
    this.#cancel = this.#clock.schedule(this.#startedAt + this.#left, this.#over);
  }
}

/** Resolves after a delay, or rejects with the signal's reason if the signal is aborted first. */
export function delay(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      cancel();
      reject(reasonOf(signal));
    };
    const cancel = clock.schedule(clock.now() + ms, () => {
      signal.removeEventListener("abort", stop);
      resolve();
    });
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

/** Waits for work for which other callers may also wait. The signal ends only this wait, not the work. */
export function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(reasonOf(signal));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Returns the reason of an aborted signal as an error. */
export function reasonOf({ reason }: AbortSignal): Error {
  return reason instanceof Error ? reason : new Fault("internal", `stopped: ${String(reason)}`);
}
