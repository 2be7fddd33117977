import type { Commit } from "../../kernel/index.ts";

/** B7: what a run holds of the caps, as far as its owner knows. */
export class HeldAllotment {
  /** What the run holds for each UTC day, in nano-dollars. */
  readonly #days = new Map<string, number>();
  /** Whether the store may hold an allotment of the run, which a commit has to return. A field: every commit asks. */
  mayExist = false;
  #returns = 0;

  /** How often the run has returned its allotment. An answer to a draw that began before a return is out of date. */
  get returns(): number {
    return this.#returns;
  }

  /** The run may draw, or an earlier owner of the run may have drawn. */
  expect(): void {
    this.mayExist = true;
  }

  on(day: string): number {
    return this.#days.get(day) ?? 0;
  }

  set(day: string, amount: number): void {
    this.#days.set(day, amount);
  }

  /** U8: a commit with `usage` returns the allotment, except for what the run still holds. */
  giveBack(holds: Commit["holds"] = {}): void {
    this.#days.clear();
    for (const [day, amount] of Object.entries(holds)) this.#days.set(day, amount);
    this.mayExist = this.#days.size > 0;
    this.#returns++;
  }
}
