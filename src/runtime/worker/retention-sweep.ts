import type { Clock, EventLoop } from "../../kernel/index.ts";

export interface RetentionSweepOptions {
  readonly keepMs: number;
  /** Deletes everything that ended before this time. Epoch milliseconds. */
  readonly collect: (before: number) => Promise<unknown>;
  readonly clock: Clock;
  readonly eventLoop: EventLoop;
  readonly onError: (error: unknown) => void;
}

/**
 * Shortest and longest interval between two scheduled sweeps, in milliseconds. Within these bounds, the interval is
 * `keepMs`.
 */
const [minIntervalMs, maxIntervalMs] = [100, 60_000];

/**
 * Number of ended runs after which a sweep starts, if ended runs are kept for only a short time. Without it, each
 * minor garbage collection would copy all runs that are still referenced.
 */
const maxEndedRuns = 8;

/**
 * Factor for the pause before a sweep that `note` starts: it is at least this many times the duration of the
 * previous sweep.
 */
const pauseFactor = 20;

/** Deletes at intervals what has been kept for `keepMs`: ended runs, or unnamed sessions. */
export class RetentionSweep {
  readonly #options: RetentionSweepOptions;
  #stopTimer: (() => void) | undefined;
  #sweeping: Promise<void> | undefined;
  #isStopped = false;
  /** Number of runs that `note` has counted since the last sweep. */
  #endedRuns = 0;
  /** Time at which the last sweep ended, by `EventLoop.elapsed`. */
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
   * Counts an ended run. If runs are kept only for a very short time (`keepMs` below the shortest interval), a
   * sweep follows at the end of this turn of the event loop. It follows earlier if enough runs have ended and the
   * callers have received their results. Does nothing soon after a sweep that took long.
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
