/** A log with records that are not written yet. */
export interface FlushableLog {
  /** Writes the records if none was written since the log was added. Otherwise the log may add itself again. */
  writeIfIdle(): void;
}

/**
 * Writes the records of logs that no later step would flush soon. A log is written after one full turn of the event
 * loop in which nothing else wrote it.
 */
export class IdleFlusher {
  /** Logs that were added in the current turn of the event loop. */
  #added: FlushableLog[] = [];
  /** Logs that were added in the turn before. */
  #waiting: FlushableLog[] = [];

  /** Adds a log. It must not be added again before `writeIfIdle` is called. */
  add(log: FlushableLog): void {
    if (this.#added.length === 0 && this.#waiting.length === 0) setImmediate(this.#endTurn);
    this.#added.push(log);
  }

  /**
   * The first call comes at the end of the turn in which a log was added. The log waits one more turn, so that a task
   * which becomes idle in this turn records that in the same commit.
   */
  readonly #endTurn = (): void => {
    const due = this.#waiting;
    this.#waiting = this.#added;
    this.#added = [];
    if (this.#waiting.length > 0) setImmediate(this.#endTurn);
    for (const log of due) log.writeIfIdle();
  };
}
