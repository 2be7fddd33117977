import { checkChoice, checkOptions, optionNames, type OptionNames } from "../base/option-check.ts";
import { executionBudget } from "../limits/execution-budget.ts";
import { parseHistoryRetention } from "../limits/history-retention.ts";
import { parsePriority } from "../limits/priority.ts";
import type { SpawnOptions } from "../run/spawn-options.ts";

/** The names of the options of `ctx.spawn`. */
export const spawnOptionNames = optionNames<SpawnOptions>({
  priority: true,
  onFull: true,
  budget: true,
  retention: true,
  role: true,
  handsOver: true,
  onParentEnd: true,
  onPause: true,
  tools: true,
});

/** Throws `invalid_argument` for spawn options that are unknown or invalid. `owner` has the options `names`. */
export function checkSpawnOptions(
  owner: string,
  options: SpawnOptions,
  names: OptionNames = spawnOptionNames,
): void {
  checkOptions(owner, options, names);
  checkChoice(owner, "onFull", options.onFull, ["refuse", "wait"]);
  checkChoice(owner, "onParentEnd", options.onParentEnd, ["cancel", "wait", "detach"]);
  checkChoice(owner, "onPause", options.onPause, ["suspend", "return-partial"]);
  if (options.priority !== undefined) parsePriority(options.priority);
  if (options.retention !== undefined) parseHistoryRetention(options.retention);
  if (options.budget !== undefined) executionBudget(options.budget);
}
