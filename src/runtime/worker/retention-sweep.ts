import type { Clock, EventLoop } from "../../kernel/index.ts";

export interface RetentionSweepOptions {
  readonly keepMs: number;
  /** Deletes everything that ended before this time. Epoch milliseconds. */
  readonly collect: (before: number) => Promise<unknown>;
  readonly clock: Clock;
  readonly eventLoop: EventLoop;
  readonly onError: (error: unknown) => void;
}

/** Shortest and longest interval between two scheduled sweeps. The interval is `keepMs` within these bounds. */
const [minIntervalMs, maxIntervalMs] = [100, 60_000];

/**
 * If runs are hardly kept, a sweep starts after this many have ended: a minor garbage collection copies every run that
 * is still referenced.
 */
const maxEndedRuns = 8;

/** A sweep that `note` starts waits at least this many times the duration of the sweep before it. */
const pauseFactor = 20;

/** Deletes, at intervals, what has been kept for `keepMs`: ended runs or unnamed sessions. */
export class RetentionSweep {
  readonly #options: RetentionSweepOptions;
  #stopTimer: (() => void) | undefined;
  #sweeping: Promise<void> | undefined;
  #isStopped = false;
  /** Number of runs that `note` has counted since the last sweep. */
  #endedRuns = 0;
  /** When the last sweep ended, by `EventLoop.elapsed`. */
  #sweptAt = 0;
  /** Duration of the last sweep. */
  #sweepMs = 0;

  constructor(options: RetentionSweepOptions) {
    this.#options = options;
  }

  /** Sweeps now, unless a sweep is in progress, and then at intervals. */
  start(): void {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
      this.#schedule();
    });
  }

  /**
   * Counts an ended run. If runs are hardly kept (`keepMs` below the shortest interval), a sweep follows at the end of
   * this turn of the event loop, or earlier if enough runs have ended and the callers have received their results. Does
   * nothing soon after a sweep that took long.
   */
  note(): void {
    if (this.#options.keepMs >= minIntervalMs) return;
    const { eventLoop } = this.#options;
    if (eventLoop.elapsed() - this.#sweptAt < this.#sweepMs * pauseFactor) return;
    this.#endedRuns++;
    if (this.#endedRuns === 1) eventLoop.nextTurn(this.#sweepEnded);
    if (this.#endedRuns === maxEndedRuns) eventLoop.whenBlocked(this.#sweepEnded);
  }

  readonly #sweepEnded = (): void => {
    if (this.#endedRuns === 0 || this.#isStopped) return;
    this.#endedRuns = 0;
    this.#stopTimer?.();
    this.start();
  };

  /** Resolves when the sweep in progress has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer?.();
    await this.#sweeping;
  }

  #schedule(): void {
    if (this.#isStopped) return;
    const { clock, keepMs } = this.#options;
    const intervalMs = Math.min(Math.max(keepMs, minIntervalMs), maxIntervalMs);
    this.#stopTimer = clock.schedule(clock.now() + intervalMs, () => this.start(), { background: true });
  }

  async #sweep(): Promise<void> {
    const { collect, clock, eventLoop, keepMs, onError } = this.#options;
    const startedAt = eventLoop.elapsed();
    try {
      await collect(clock.now() - keepMs);
    } catch (error) {
      onError(error);
    }
    this.#sweptAt = eventLoop.elapsed();
    this.#sweepMs = this.#sweptAt - startedAt;
  }
}
