import {
  invalidOption,
  is,
  nearestName,
  optionTable,
  type OptionKinds,
  type OptionTable,
} from "../base/option-table.ts";
import { executionBudget } from "../limits/execution-budget.ts";
import { parseHistoryRetention } from "../limits/history-retention.ts";
import { parsePriority } from "../limits/priority.ts";
import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { ChildRequest, SpawnChildOptions, SpawnOptions } from "../run/spawn-options.ts";

/** The kinds of the options of `ctx.spawn`. */
export const spawnKinds = {
  priority: is.checkedBy(parsePriority),
  onFull: is.choice(["refuse", "wait"]),
  budget: is.checkedBy(executionBudget),
  retention: is.checkedBy(parseHistoryRetention),
  role: is.any,
  handsOver: is.any,
  onParentEnd: is.choice(["cancel", "wait", "detach"]),
  onPause: is.choice(["suspend", "return-partial"]),
  tools: is.any,
} satisfies OptionKinds<SpawnOptions>;

export const spawnTable = optionTable(spawnKinds);

const childRequestTable = optionTable({
  prompt: is.any,
  tools: is.list({ hint: 'use names, as in ["read"]' }),
  priority: spawnKinds.priority,
  onFull: spawnKinds.onFull,
  budget: spawnKinds.budget,
  onParentEnd: spawnKinds.onParentEnd,
} satisfies OptionKinds<ChildRequest>);

export const spawnChildTable = optionTable({
  sessionId: is.any,
  prompt: is.any,
  tools: childRequestTable.kinds.tools,
  priority: spawnKinds.priority,
  budget: spawnKinds.budget,
  metadata: is.any,
  context: is.any,
  streaming: is.boolean(),
  runId: is.any,
} satisfies OptionKinds<SpawnChildOptions>);

/**
 * Throws `invalid_argument` if the request for a child is invalid. `owner` names the call whose options `table`
 * describes; `tools` are the valid tool names.
 */
export function checkChildRequest(
  owner: string,
  request: ChildRequest,
  tools: Iterable<string>,
  table: OptionTable = childRequestTable,
): void {
  table.read(owner, request);
  const { prompt, tools: wanted } = request;
  const isContent = typeof prompt === "string" || Array.isArray(prompt);
  if (!isContent || prompt.length === 0)
    throw invalidOption(owner, "prompt", prompt, "a text that is not empty, or content parts");
  checkToolNames(owner, wanted, tools);
}

function checkToolNames(owner: string, wanted: readonly string[] | undefined, tools: Iterable<string>): void {
  if (wanted === undefined) return;
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
