import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { checkOptions, optionNames } from "../base/option-check.ts";

/** The limit on the agents of a whole run. All tasks of the run share one frozen object. */
export interface SpawnBudget {
  /** H1: maximum number of seats in the run, including the root's. Default: 50. */
  readonly maxAgents: number;
  /** H3: whether a new HIGH or CRITICAL task may pause a task of lower priority to get its seat. Default: `true`. */
  readonly allowPreempt: boolean;
}

export const defaultSpawnBudget: SpawnBudget = Object.freeze({ maxAgents: 50, allowPreempt: true });

const knownOptions = optionNames<SpawnBudget>({ maxAgents: true, allowPreempt: true });

/** Completes a spawn budget with the defaults. Throws `invalid_argument` if it is invalid. */
export function spawnBudget(options: Partial<SpawnBudget> = {}): SpawnBudget {
  // The default object is valid and frozen, so it needs no check.
  if (options === defaultSpawnBudget) return defaultSpawnBudget;
  checkOptions("spawnBudget", options, knownOptions);
  const { maxAgents = defaultSpawnBudget.maxAgents, allowPreempt = defaultSpawnBudget.allowPreempt } =
    options;
  if (!Number.isSafeInteger(maxAgents) || maxAgents < 1) {
    throw new Fault(
      "invalid_argument",
      `invalid maxAgents ${describeValue(maxAgents)}: expected an integer from 1, because the root counts as one`,
    );
  }
  if (typeof allowPreempt !== "boolean") {
    throw new Fault(
      "invalid_argument",
      `invalid allowPreempt ${describeValue(allowPreempt)}: expected true or false`,
    );
  }
  return Object.freeze({ maxAgents, allowPreempt });
}
