import { Fault, type Clock } from "../../kernel/index.ts";

/** A timeout that restarts with each sign of activity and pauses while a person is asked. */
export class TimeLimit {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #over: () => void;
  #cancel: (() => void) | undefined;
  #held = 0;
  #ended = false;

  constructor(clock: Clock, ms: number, over: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#over = over;
    this.renew();
  }

  /** Restarts the timeout. */
  renew(): void {
    this.#cancel?.();
    if (this.#held === 0 && !this.#ended)
      this.#cancel = this.#clock.schedule(this.#clock.now() + this.#ms, this.#over);
  }

  /** Pauses the timeout until the work settles. */
  async heldDuring<Value>(work: Promise<Value>): Promise<Value> {
    this.#held++;
    this.#cancel?.();
    try {
      return await work;
    } finally {
      this.#held--;
      this.renew();
    }
  }

  /** Stops the timeout for good. */
  end(): void {
    this.#ended = true;
    this.#cancel?.();
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

/** Waits for work that other callers may wait for, too. The signal ends only this wait, not the work. */
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
