import type { StepAddress, StepRecord, TaskId } from "../../kernel/index.ts";
import type { ArrivedValue, Resolutions } from "./resolutions.ts";

/** The branches of a step that were abandoned: all but those that had settled. */
export interface Abandonment {
  /** Address of the step whose branches were abandoned. */
  readonly step: StepAddress;
  /** Names of the branches that had settled. */
  readonly settled: readonly string[];
}

/** Part of a stored address, so it must not change. A colon cannot be part of the name of a branch. */
const abandonmentMark = "abandoned:";

/** Address of the record that branches of the step were abandoned. A step that runs again may have several, from 0. */
export function abandonmentAddress(step: StepAddress, ordinal: number): StepAddress {
  return `${step}/${abandonmentMark}${ordinal}` as StepAddress;
}

/** Returns which branches the recorded step has abandoned. `undefined` if it has abandoned none. */
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

/** Values that an abandoned branch had taken, and the record with which they returned to their wait. */
interface ReturnedValues extends TakenValues {
  readonly by: StepAddress;
}

/** W1: the values that steps in branches of a task have taken. They return to their waits if the branch is abandoned. */
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

  /** J5: the step at this address has refused its value, and runs again: the value does not return to its wait any more. */
  forget(step: StepAddress): void {
    this.#taken = this.#taken.filter(({ address }) => address !== step);
  }

  /** Whether an abandoned branch has taken values. */
  isAnyIn(abandoned: Abandonment): boolean {
    return this.#taken.some(({ address }) => isInside(address, abandoned));
  }

  /** The record at `by` abandons branches: the next waits receive the values of these branches, in their order. */
  giveBack(by: StepAddress, abandoned: Abandonment): void {
    const lost = this.#taken.filter(({ address }) => isInside(address, abandoned));
    if (lost.length === 0) return;
    this.#taken = this.#taken.filter(({ address }) => !isInside(address, abandoned));
    this.#returned = [...this.#returned, ...lost.map((taken) => ({ ...taken, by }))];
    for (const { wait, values } of lost.toReversed()) this.#resolutions.putBack(this.#taskId, wait, values);
  }

  /** J5: the record at `by` is void. Its branches, which run again, hold their values as before. */
  takeBack(by: StepAddress): void {
    const undone = this.#returned.filter((each) => each.by === by);
    if (undone.length === 0) return;
    this.#returned = this.#returned.filter((each) => each.by !== by);
    const held = undone.filter(({ wait, values }) => this.#resolutions.takeOut(this.#taskId, wait, values));
    this.#taken = [...this.#taken, ...held];
  }

  /** Addresses of the steps whose values returned with the record at `by` and were taken by other steps since. */
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
