import { CompactingMap } from "./compacting-map.ts";

/** A log with something in it that nobody has written yet. */
export interface FlushableLog {
  /** Writes it, if nobody has since it was said to wait. */
  writeIfIdle(): void;
}

/**
 * What nothing may follow for long is written by itself, after a turn of the event loop in which nobody wrote it. One look for all logs:
 * where runs end before the loop turns, one of each would hold on to all of them.
 */
export class IdleFlusher {
  #fresh = new CompactingMap<FlushableLog, FlushableLog>();
  #aged = new CompactingMap<FlushableLog, FlushableLog>();
  #looksSoon = false;

  add(log: FlushableLog): void {
    this.#fresh.set(log, log);
    this.#lookSoon();
  }

  remove(log: FlushableLog): void {
    this.#fresh.delete(log);
    this.#aged.delete(log);
  }

  #lookSoon(): void {
    if (this.#looksSoon) return;
    this.#looksSoon = true;
    setImmediate(this.#look);
  }

  /** The first look comes in the turn that is under way: a task that comes to rest in it says so in the same commit. */
  readonly #look = (): void => {
    this.#looksSoon = false;
    const aged = this.#aged;
    this.#aged = this.#fresh;
    this.#fresh = new CompactingMap();
    for (const log of aged.values()) log.writeIfIdle();
    if (this.#aged.size > 0) this.#lookSoon();
  };
}
