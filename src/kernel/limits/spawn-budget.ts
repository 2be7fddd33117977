import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";

/** The hiring cap of a whole run: one object, shared by every node of its tree. Frozen. */
export interface SpawnBudget {
  /** Seats in the run, the root's included (H1). */
  readonly maxAgents: number;
  /** Whether a HIGH or CRITICAL newcomer may pause a lower task for its seat (H3). */
  readonly allowPreempt: boolean;
}

export const defaultSpawnBudget: SpawnBudget = Object.freeze({ maxAgents: 50, allowPreempt: true });

export function spawnBudget(options: Partial<SpawnBudget> = {}): SpawnBudget {
  // Made here, and frozen since.
  if (options === defaultSpawnBudget) return defaultSpawnBudget;
  const { maxAgents = defaultSpawnBudget.maxAgents, allowPreempt = defaultSpawnBudget.allowPreempt } =
    options;
  if (!Number.isSafeInteger(maxAgents) || maxAgents < 1) {
    throw new Fault(
      "invalid_argument",
      `maxAgents is ${describeValue(maxAgents)}: it must be an integer from 1, the root counts as one`,
    );
  }
  if (typeof allowPreempt !== "boolean") {
    throw new Fault(
      "invalid_argument",
      `allowPreempt is ${describeValue(allowPreempt)}: it must be true or false`,
    );
  }
  return Object.freeze({ maxAgents, allowPreempt });
}
