import type { RunId } from "../../kernel/index.ts";

/**
 * Tracks whether a person who answers questions can be reached through this process: through a server, a channel,
 * or a reader of the run.
 */
export class Attendance {
  /** Number of those who attend to all runs. */
  #all = 0;
  /** Number of those who attend to one run. */
  readonly #readers = new Map<RunId, number>();

  isAttended(runId: RunId): boolean {
    return this.#all > 0 || this.#readers.has(runId);
  }

  /** Declares that a person can be reached for all runs, until the returned function is called. */
  attend(): () => void {
    this.#all++;
    return once(() => this.#all--);
  }

  /** Declares that a person can be reached for one run, until the returned function is called. */
  read(runId: RunId): () => void {
    this.#readers.set(runId, (this.#readers.get(runId) ?? 0) + 1);
    return once(() => {
      const others = (this.#readers.get(runId) ?? 1) - 1;
      if (others === 0) this.#readers.delete(runId);
      else this.#readers.set(runId, others);
    });
  }
}

function once(end: () => unknown): () => void {
  let isOver = false;
  return () => {
    if (!isOver) end();
    isOver = true;
  };
}
