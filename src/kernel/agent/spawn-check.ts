import {
  checkChoice,
  checkList,
  checkOptions,
  nearestName,
  optionNames,
  type OptionNames,
} from "../base/option-check.ts";
import { executionBudget } from "../limits/execution-budget.ts";
import { parseHistoryRetention } from "../limits/history-retention.ts";
import { parsePriority } from "../limits/priority.ts";
import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { ChildRequest, SpawnChildOptions, SpawnOptions } from "../run/spawn-options.ts";

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

/** The names of the options of `ctx.child`. */
const childRequestNames = optionNames<ChildRequest>({
  prompt: true,
  tools: true,
  priority: true,
  onFull: true,
  budget: true,
  onParentEnd: true,
});

/** The names of the options of `Runtime.spawnChild`. */
export const spawnChildNames = optionNames<SpawnChildOptions>({
  sessionId: true,
  prompt: true,
  tools: true,
  priority: true,
  budget: true,
  metadata: true,
  context: true,
  streaming: true,
  runId: true,
});

/** Throws `invalid_argument` for a child that is invalid. `owner` has the options `names`; `tools` are the valid names. */
export function checkChildRequest(
  owner: string,
  request: ChildRequest,
  tools: Iterable<string>,
  names: OptionNames = childRequestNames,
): void {
  checkOptions(owner, request, names);
  const { prompt, tools: wanted, ...options } = request;
  checkChoice(owner, "onFull", options.onFull, ["refuse", "wait"]);
  checkChoice(owner, "onParentEnd", options.onParentEnd, ["cancel", "wait", "detach"]);
  if (options.priority !== undefined) parsePriority(options.priority);
  if (options.budget !== undefined) executionBudget(options.budget);
  const isContent = typeof prompt === "string" || Array.isArray(prompt);
  if (!isContent || prompt.length === 0)
    throw new Fault(
      "invalid_argument",
      `invalid prompt ${describeValue(prompt)} of ${owner}: expected a text that is not empty, or content parts`,
    );
  checkToolNames(owner, wanted, tools);
}

function checkToolNames(owner: string, wanted: readonly string[] | undefined, tools: Iterable<string>): void {
  if (wanted === undefined) return;
  checkList(`tools of ${owner}`, wanted, 'use names, as in ["read"]');
  const known = new Set(tools);
  for (const name of wanted) {
    if (known.has(name)) continue;
    const nearest = typeof name === "string" ? nearestName(name, known) : undefined;
    const fix = nearest === undefined ? "" : `; use ${describeValue(nearest)}`;
    throw new Fault(
      "invalid_argument",
      `invalid tools of ${owner}: there is no tool ${describeValue(name)}; expected some of ${[...known].join(", ") || "none"}${fix}`,
      { details: { tools: [...known] } },
    );
  }
}
