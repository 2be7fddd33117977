import type { StepAddress, StepRecord, TaskId } from "../../kernel/index.ts";
import type { ArrivedValue, Resolutions } from "./resolutions.ts";

/** The branches of a step that were abandoned, which are all branches that had not settled. */
export interface Abandonment {
  /** Address of the step in which branches were abandoned. */
  readonly step: StepAddress;
  /** Names of the branches that had settled. */
  readonly settled: readonly string[];
}

/**
 * Part of a stored address, so that it must not change. It contains a colon, which the name of a branch cannot
 * contain.
 */
const abandonmentMark = "abandoned:";

/**
 * Returns the address of the record that branches of the step were abandoned. If the step runs again, there may be
 * several such records; `ordinal` counts them from 0.
 */
export function abandonmentAddress(step: StepAddress, ordinal: number): StepAddress {
  return `${step}/${abandonmentMark}${ordinal}` as StepAddress;
}

/** Returns which branches the recorded step has abandoned. `undefined` if it has abandoned no branch. */
export function abandonmentOf({
  kind,
  address,
  outcome,
}: Pick<StepRecord, "kind" | "address" | "outcome">): Abandonment | undefined {
  if (outcome.kind === "failed") return undefined;
  if (kind === "race") {
    const { winner } = outcome.value as { readonly winner: string };
    return { step: address, settled: [winner] };
  }
  if (kind !== "abandon") return undefined;
  const { settled } = outcome.value as { readonly settled: readonly string[] };
  return { step: address.slice(0, address.lastIndexOf("/")) as StepAddress, settled };
}

/** Values of a wait that a step in a branch has taken. */
interface TakenValues {
  /** Address of the step. */
  readonly address: StepAddress;
  readonly wait: string;
  readonly values: readonly ArrivedValue[];
}

/** Values that an abandoned branch had taken, with the record by which they returned to their wait. */
interface ReturnedValues extends TakenValues {
  readonly by: StepAddress;
}

/**
 * W1: the values that steps in branches of a task have taken. If a branch is abandoned, they return to their waits.
 */
export class BranchValues {
  readonly #taskId: TaskId;
  readonly #resolutions: Resolutions;
  /** The list has the order of the records. */
  #taken: readonly TakenValues[] = [];
  #returned: readonly ReturnedValues[] = [];

  constructor(taskId: TaskId, resolutions: Resolutions) {
    this.#taskId = taskId;
    this.#resolutions = resolutions;
  }

  note(taken: TakenValues): void {
    this.#taken = [...this.#taken, taken];
  }

  /**
   * J5: forgets the value of the step at this address, because the step has refused the value and runs again. The
   * value then no longer returns to its wait.
   */
  forget(step: StepAddress): void {
    this.#taken = this.#taken.filter(({ address }) => address !== step);
  }

  /** Whether an abandoned branch has taken values. */
  isAnyIn(abandoned: Abandonment): boolean {
    return this.#taken.some(({ address }) => isInside(address, abandoned));
  }

  /**
   * Applies the record at `by`, which abandons branches: the next waits receive the values of these branches, in
   * their order.
   */
  giveBack(by: StepAddress, abandoned: Abandonment): void {
    const lost = this.#taken.filter(({ address }) => isInside(address, abandoned));
    if (lost.length === 0) return;
    this.#taken = this.#taken.filter(({ address }) => !isInside(address, abandoned));
    this.#returned = [...this.#returned, ...lost.map((taken) => ({ ...taken, by }))];
    for (const { wait, values } of lost.toReversed()) this.#resolutions.putBack(this.#taskId, wait, values);
  }

  /**
   * J5: reverses `giveBack` for the record at `by`, because it is void. Its branches, which run again, hold their
   * values as before.
   */
  takeBack(by: StepAddress): void {
    const undone = this.#returned.filter((each) => each.by === by);
    if (undone.length === 0) return;
    this.#returned = this.#returned.filter((each) => each.by !== by);
    const held = undone.filter(({ wait, values }) => this.#resolutions.takeOut(this.#taskId, wait, values));
    this.#taken = [...this.#taken, ...held];
  }

  /** Returns the addresses of the steps that have taken values which returned with the record at `by`. */
  takenSince(by: StepAddress): readonly StepAddress[] {
    return this.#returned
      .filter((each) => each.by === by && !this.#resolutions.has(this.#taskId, each.wait, each.values))
      .map(({ address }) => address);
  }
}

/** Whether a step belongs to an abandoned branch. */
export function isInside(address: StepAddress, { step, settled }: Abandonment): boolean {
  if (!address.startsWith(`${step}/`)) return false;
  const [branch = ""] = address.slice(step.length + 1).split("/", 1);
  return !settled.includes(branch);
}
