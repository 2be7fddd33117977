import { PassingMap } from "./compacting-map.ts";

/** A log with something in it that nobody has written yet. */
export interface WaitingLog {
  /** Writes it, if nobody has since it was said to wait. */
  writeIfIdle(): void;
}

/**
 * What nothing may follow for long is written by itself, after a turn of the event loop in which nobody wrote it. One look for all logs:
 * where runs end before the loop turns, one of each would hold on to all of them.
 */
export class IdleWrites {
  #fresh = new PassingMap<WaitingLog, WaitingLog>();
  #aged = new PassingMap<WaitingLog, WaitingLog>();
  #looksSoon = false;

  add(log: WaitingLog): void {
    this.#fresh.set(log, log);
    this.#lookSoon();
  }

  remove(log: WaitingLog): void {
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
    this.#fresh = new PassingMap();
    for (const log of aged.values()) log.writeIfIdle();
    if (this.#aged.size > 0) this.#lookSoon();
  };
}
