import type { StepAddress } from "../../kernel/index.ts";

/** Number of steps from which a `Map` is used: searching an array costs O(steps), so a turn with n tool calls would cost O(n²). */
const manySteps = 32;

/**
 * Addresses of the steps of a task that have begun and have no record yet, each with the `seq` of its start event. Two short arrays
 * instead of a `Map` while there are few: there is mostly one such step, and V8 rehashes a `Map` into a new table after a few insertions
 * and deletions (`npm run bench -- loop`, row "turn in memory").
 */
export class BegunSteps {
  readonly #addresses: StepAddress[] = [];
  readonly #seqs: number[] = [];
  /** Holds the steps instead of the arrays from `manySteps` steps on, until none is left. */
  #many: Map<StepAddress, number> | undefined;

  get size(): number {
    return this.#many?.size ?? this.#addresses.length;
  }

  has(address: StepAddress): boolean {
    return this.#many?.has(address) ?? this.#addresses.includes(address);
  }

  get(address: StepAddress): number | undefined {
    if (this.#many !== undefined) return this.#many.get(address);
    const index = this.#addresses.indexOf(address);
    return index < 0 ? undefined : this.#seqs[index];
  }

  set(address: StepAddress, seq: number): void {
    if (this.#many !== undefined) {
      this.#many.set(address, seq);
      return;
    }
    const index = this.#addresses.indexOf(address);
    if (index >= 0) this.#seqs[index] = seq;
    else {
      this.#addresses.push(address);
      this.#seqs.push(seq);
      if (this.#addresses.length === manySteps) this.#moveToMap();
    }
  }

  #moveToMap(): void {
    const many = new Map<StepAddress, number>();
    for (const [index, address] of this.#addresses.entries()) many.set(address, this.#seqs[index] ?? -1);
    this.clear();
    this.#many = many;
  }

  /** Returns `false` if the step has not begun or is recorded. */
  delete(address: StepAddress): boolean {
    if (this.#many !== undefined) return this.#deleteFromMap(this.#many, address);
    const index = this.#addresses.lastIndexOf(address);
    if (index < 0) return false;
    if (index === this.#addresses.length - 1) {
      this.#addresses.pop();
      this.#seqs.pop();
    } else {
      this.#addresses.splice(index, 1);
      this.#seqs.splice(index, 1);
    }
    return true;
  }

  #deleteFromMap(many: Map<StepAddress, number>, address: StepAddress): boolean {
    const isFound = many.delete(address);
    if (many.size === 0) this.#many = undefined;
    return isFound;
  }

  clear(): void {
    this.#addresses.length = 0;
    this.#seqs.length = 0;
    this.#many = undefined;
  }

  keys(): readonly StepAddress[] {
    return this.#many === undefined ? this.#addresses : [...this.#many.keys()];
  }
}
