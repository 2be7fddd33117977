import { Fault } from "../base/fault.ts";

declare const brand: unique symbol;

/**
 * J2: where a step stands in its task's journal: the indexes and branch names from the task down, joined by `/`. The third step of
 * a task is `2`; the first tool its model call asked for, `2/0`; the fourth step of the branch `left` of a `parallel`
 * at 5, `5/left/3`. Carries no version of anything.
 */
export type StepAddress = string & { readonly [brand]: "StepAddress" };

/** The address space for steps inside a task, a branch or a tool's body; the task's own is empty. */
export type StepScope = StepAddress | "";

const branchName = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

export function stepAt(scope: StepScope, index: number): StepAddress {
  if (!Number.isSafeInteger(index) || index < 0) {
    throw new Fault("invalid_argument", `${index} is not a step index: it must be an integer from 0`);
  }
  return (scope === "" ? `${index}` : `${scope}/${index}`) as StepAddress;
}

/** The scope of a named branch of the step at `address`. A name is no number, so it is never taken for an index. */
export function branchScope(address: StepAddress, name: string): StepScope {
  if (!branchName.test(name)) {
    throw new Fault(
      "invalid_argument",
      `${JSON.stringify(name)} is not a branch name: it must be 1 to 64 letters, digits, and _ . -, starting with a letter or _`,
    );
  }
  return `${address}/${name}` as StepAddress;
}
