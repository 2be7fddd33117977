import type { StepAddress } from "../../kernel/index.ts";

/**
 * Addresses of the steps of a task that have begun and have no record yet, each with the `seq` of its start event. Two short arrays
 * instead of a `Map`: there is mostly one such step, and V8 rehashes a `Map` into a new table after a few insertions and deletions
 * (`npm run bench -- loop`, row "turn in memory").
 */
export class BegunSteps {
  readonly #addresses: StepAddress[] = [];
  readonly #seqs: number[] = [];

  get size(): number {
    return this.#addresses.length;
  }

  has(address: StepAddress): boolean {
    return this.#addresses.includes(address);
  }

  get(address: StepAddress): number | undefined {
    const index = this.#addresses.indexOf(address);
    return index < 0 ? undefined : this.#seqs[index];
  }

  set(address: StepAddress, seq: number): void {
    const index = this.#addresses.indexOf(address);
    if (index >= 0) this.#seqs[index] = seq;
    else {
      this.#addresses.push(address);
      this.#seqs.push(seq);
    }
  }

  /** Returns `false` if the step has not begun or is recorded. */
  delete(address: StepAddress): boolean {
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

  clear(): void {
    this.#addresses.length = 0;
    this.#seqs.length = 0;
  }

  keys(): readonly StepAddress[] {
    return this.#addresses;
  }
}
