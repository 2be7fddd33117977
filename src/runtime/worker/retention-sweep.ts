import { Fault, type Clock } from "../../kernel/index.ts";

export interface RetentionSweepOptions {
  /** What says how long, as it is called where it is given. */
  readonly option: string;
  readonly keepMs: number;
  /** Lets go of what has been over since before then (epoch milliseconds). */
  readonly collect: (before: number) => Promise<unknown>;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** It is looked for what to let go of this often, at most and at least. */
const [mostOftenMs, leastOftenMs] = [100, 60_000];

/** Where nothing is to be kept for long, it is looked after so many: whatever is there when the collector comes is moved. */
const mostEnded = 8;

/** At least so many times as long as a sweep takes does the next one wait that nobody has to wait for. */
const restsPerSweep = 20;

/** Lets go, from time to time, of what was kept for so long: runs after their end, sessions nobody named. */
export class RetentionSweep {
  readonly #options: RetentionSweepOptions;
  #stopTimer: (() => void) | undefined;
  #sweeping: Promise<void> | undefined;
  #isStopped = false;
  /** Since it was last looked. */
  #ended = 0;
  /** Of the last sweep: when it was over, and how long it took. */
  #sweptAt = 0;
  #sweepMs = 0;

  constructor(options: RetentionSweepOptions) {
    const { option, keepMs } = options;
    if (!Number.isFinite(keepMs) || keepMs < 0)
      throw new Fault("invalid_argument", `${option} is ${keepMs}: it must be a number from 0`);
    this.#options = options;
  }

  start(): void {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
      this.#wait();
    });
  }

  /**
   * A run has ended. Where nothing is to be kept for long, it goes with the turn of the event loop, or when enough have ended in it and whoever
   * waited for their results has gone on; unless that would be all there is to do.
   */
  note(): void {
    if (this.#options.keepMs >= mostOftenMs) return;
    if (performance.now() - this.#sweptAt < this.#sweepMs * restsPerSweep) return;
    this.#ended++;
    if (this.#ended === 1) setImmediate(this.#look);
    if (this.#ended === mostEnded) process.nextTick(this.#look);
  }

  readonly #look = (): void => {
    if (this.#ended === 0 || this.#isStopped) return;
    this.#ended = 0;
    this.#stopTimer?.();
    this.start();
  };

  /** Resolves when what was begun is done. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer?.();
    await this.#sweeping;
  }

  #wait(): void {
    if (this.#isStopped) return;
    const { clock, keepMs } = this.#options;
    const everyMs = Math.min(Math.max(keepMs, mostOftenMs), leastOftenMs);
    this.#stopTimer = clock.schedule(clock.now() + everyMs, () => this.start(), { background: true });
  }

  async #sweep(): Promise<void> {
    const { collect, clock, keepMs, onError } = this.#options;
    const began = performance.now();
    try {
      await collect(clock.now() - keepMs);
    } catch (error) {
      onError(error);
    }
    this.#sweptAt = performance.now();
    this.#sweepMs = this.#sweptAt - began;
  }
}
