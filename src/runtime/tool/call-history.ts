import type { SettledCall } from "../../kernel/index.ts";

/**
 * The settled calls that a gate may judge by: those of a scope, and those made around it before it was opened. The same in every process
 * that looks. So what a record hides on replay is not in it (calls inside a tool, a step or a race, for whoever is outside), calls of one
 * batch are in the order they were asked for, and those of branches in the order of the branches.
 */
export class CallHistory {
  readonly #calls: SettledCall[];
  readonly #inherited: number;

  constructor(around?: CallHistory) {
    this.#calls = around === undefined ? [] : [...around.calls];
    this.#inherited = this.#calls.length;
  }

  get calls(): readonly SettledCall[] {
    return this.#calls;
  }

  add(settled: SettledCall): void {
    this.#calls.push(settled);
  }

  /** What was called in a branch has been called here. */
  join(branch: CallHistory): void {
    for (const settled of branch.#calls.slice(branch.#inherited)) this.#calls.push(settled);
  }
}
