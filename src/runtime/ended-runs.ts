import { Fault, type Clock, type Journal } from "../kernel/index.ts";

export interface EndedRunsOptions {
  readonly journal: Journal;
  readonly clock: Clock;
  /** How long a run is kept after its end. */
  readonly keepMs: number;
  readonly onError: (error: unknown) => void;
}

/** It is looked for runs to collect this often, at most and at least. */
const [mostOftenMs, leastOftenMs] = [100, 60_000];

/** Collects runs that ended long enough ago, from time to time. */
export class EndedRuns {
  readonly #options: EndedRunsOptions;
  #stopTimer: (() => void) | undefined;
  #sweeping: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: EndedRunsOptions) {
    const { keepMs } = options;
    if (!Number.isFinite(keepMs) || keepMs < 0)
      throw new Fault("invalid_argument", `keepEndedRunsMs is ${keepMs}: it must be a number from 0`);
    this.#options = options;
  }

  start(): void {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
      this.#wait();
    });
  }

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
    const { journal, clock, keepMs, onError } = this.#options;
    try {
      await journal.collect({ endedBefore: clock.now() - keepMs });
    } catch (error) {
      onError(error);
    }
  }
}
