/** A log with records, or a scope with events, that are not written yet. */
export interface FlushableLog {
  /** Writes the records, unless they were written since the log was added. */
  writeIfIdle(): void;
}

/**
 * Writes the records of logs that no later step would flush soon. A log is written after one full turn of the event
 * loop in which nothing else wrote it.
 */
export class IdleFlusher {
  /** The next callback of each log that waits. */
  readonly #callbacks = new Map<FlushableLog, NodeJS.Immediate>();

  add(log: FlushableLog): void {
    if (this.#callbacks.has(log)) return;
    // The first callback comes at the end of the current turn. The log waits one more turn, so that a task which
    // becomes idle in this turn records that in the same commit.
    this.#schedule(log, () => this.#schedule(log, () => this.#write(log)));
  }

  remove(log: FlushableLog): void {
    clearImmediate(this.#callbacks.get(log));
    this.#callbacks.delete(log);
  }

  #schedule(log: FlushableLog, callback: () => void): void {
    this.#callbacks.set(log, setImmediate(callback));
  }

  #write(log: FlushableLog): void {
    this.#callbacks.delete(log);
    log.writeIfIdle();
  }
}
