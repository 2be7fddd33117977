import type { SettledCall } from "../../kernel/index.ts";

/**
 * The settled calls on which the checks of a tool call may base their decision: those of a scope, and those made
 * around the scope before it was opened. The list is the same in every process. Calls that a record hides on a
 * replay (inside a tool, a step or a race) are not included. Calls of one batch are in call order, and those of
 * branches in the order of the branches.
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

  /** Adds the calls of a branch to this history. */
  join(branch: CallHistory): void {
    for (const settled of branch.#calls.slice(branch.#inherited)) this.#calls.push(settled);
  }
}
