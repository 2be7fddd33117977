import { Fault } from "../base/fault.ts";

declare const brand: unique symbol;

/**
 * J2: position of a step in its task's journal: indexes and branch names from the task down, joined by `/`. The third
 * step of a task has the address `2`; the first tool call of that model call, `2/0`; the fourth step of the branch
 * `left` of the `parallel` at 5, `5/left/3`. No address contains a version.
 */
export type StepAddress = string & { readonly [brand]: "StepAddress" };

/** Address space for the steps of a task, a branch or a tool's body. The scope of the task itself is empty. */
export type StepScope = StepAddress | "";

const branchName = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

/** Returns the address of the step with this index, from 0, in a scope. */
export function stepAt(scope: StepScope, index: number): StepAddress {
  if (!Number.isSafeInteger(index) || index < 0) {
    throw new Fault("invalid_argument", `invalid step index ${index}: use an integer from 0`);
  }
  return (scope === "" ? `${index}` : `${scope}/${index}`) as StepAddress;
}

/**
 * Returns the scope of a named branch of the step at `address`. A name never starts with a digit, so a branch and a
 * step cannot have the same address.
 */
export function branchScope(address: StepAddress, name: string): StepScope {
  if (!branchName.test(name)) {
    throw new Fault(
      "invalid_argument",
      `invalid branch name ${JSON.stringify(name)}: use 1 to 64 letters, digits, and _ . -, starting with a letter or _`,
    );
  }
  return `${address}/${name}` as StepAddress;
}
