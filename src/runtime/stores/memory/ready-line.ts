import type { Priority } from "../../../kernel/index.ts";
import { CompactingMap } from "../../process/compacting-map.ts";
import type { RunRow } from "./run-row.ts";

/** Runs of one tenant and priority. */
export class ReadyLine {
  readonly priority: Priority;
  #rows = new CompactingMap<RunRow, RunRow>();
  #isInOrder = true;
  #newest = 0;

  constructor(priority: Priority) {
    this.priority = priority;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Most became ready just now. */
  add(row: RunRow): void {
    if (row.readyAt < this.#newest) this.#isInOrder = false;
    else this.#newest = row.readyAt;
    this.#rows.set(row, row);
  }

  remove(row: RunRow): void {
    this.#rows.delete(row);
  }

  /** The longest ready first. */
  inOrder(): Iterator<RunRow, undefined> {
    if (!this.#isInOrder) this.#sort();
    return this.#rows.values();
  }

  #sort(): void {
    const rows = [...this.#rows.values()].toSorted(inLine);
    this.#rows = new CompactingMap();
    for (const row of rows) this.#rows.set(row, row);
    this.#isInOrder = true;
  }
}

/** The higher priority first, then the longest ready. */
export function inLine(one: RunRow, other: RunRow): number {
  return other.record.priority - one.record.priority || one.readyAt - other.readyAt;
}
