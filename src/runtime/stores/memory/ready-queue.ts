import type { RunRecord } from "../../../kernel/index.ts";

/** The values that determine the order of ready runs. */
export interface Ready {
  readonly record: Pick<RunRecord, "priority">;
  readonly readyAt: number;
}

/** The ready runs of one tenant, priority, user and agent. */
export class ReadyQueue<Row extends Ready> {
  #rows = new Set<Row>();
  #isInOrder = true;
  #newest = 0;

  get size(): number {
    return this.#rows.size;
  }

  /**
   * Adds a run. Most runs arrive in the order of `readyAt`, so that the queue is sorted only after a run that does
   * not.
   */
  add(row: Row): void {
    if (row.readyAt < this.#newest) this.#isInOrder = false;
    else this.#newest = row.readyAt;
    this.#rows.add(row);
  }

  remove(row: Row): void {
    this.#rows.delete(row);
  }

  /** Iterates over the runs in the order in which they became ready. */
  inOrder(): Iterator<Row, undefined> {
    if (!this.#isInOrder) this.#sort();
    return this.#rows.values();
  }

  #sort(): void {
    this.#rows = new Set([...this.#rows].toSorted(byPriorityThenAge));
    this.#isInOrder = true;
  }
}

/** Compares two ready runs for sorting: the higher priority first, then the run that has been ready longer. */
export function byPriorityThenAge(one: Ready, other: Ready): number {
  return other.record.priority - one.record.priority || one.readyAt - other.readyAt;
}
