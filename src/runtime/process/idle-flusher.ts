import { CompactingMap } from "./compacting-map.ts";

/** A log with records that are not written yet. */
export interface FlushableLog {
  /** Writes the records, unless they were written since the log was added. */
  writeIfIdle(): void;
}

/**
 * Writes the records of logs that no later step would flush soon. A log is written after one full turn of the event
 * loop in which nothing else wrote it. All logs share one `setImmediate`: a callback per log would keep every run that
 * ends within the turn in memory.
 */
export class IdleFlusher {
  /** Logs that were added in the current turn of the event loop. */
  #added = new CompactingMap<FlushableLog, FlushableLog>();
  /** Logs that were added in the turn before. */
  #waiting = new CompactingMap<FlushableLog, FlushableLog>();
  #isScheduled = false;

  add(log: FlushableLog): void {
    this.#added.set(log, log);
    this.#schedule();
  }

  remove(log: FlushableLog): void {
    this.#added.delete(log);
    this.#waiting.delete(log);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#flushWaiting);
  }

  /**
   * The first call comes at the end of the turn in which a log was added. The log waits one more turn, so that a task
   * which becomes idle in this turn records that in the same commit.
   */
  readonly #flushWaiting = (): void => {
    this.#isScheduled = false;
    const due = this.#waiting;
    this.#waiting = this.#added;
    this.#added = new CompactingMap();
    for (const log of due.values()) log.writeIfIdle();
    if (this.#waiting.size > 0) this.#schedule();
  };
}
