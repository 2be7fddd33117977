import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { formatRunId, parseRunId, type RunId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import { readProperty } from "../base/read-property.ts";
import { executionBudget, type ExecutionBudget } from "../limits/execution-budget.ts";
import { parsePriority, type Priority } from "../limits/priority.ts";

/** A run that another run has started with `ctx.start`. It is JSON, so that it may be passed on. */
export interface StartedRun {
  /** Id of the run. */
  readonly runId: RunId;
}

/**
 * What happens to a started run when the task that started it ends, fails or is cancelled, or when the branch that
 * started it loses: `cancel` cancels it, `abandon` lets it continue alone. A run that has ended already is left as it is.
 */
export type OnCallerEnd = "cancel" | "abandon";

/** Options of `ctx.start`. */
export interface StartRunOptions {
  /**
   * Id of the run: `ship-7` is the run `run_ship-7`. If a run with this id and an equal input exists, it is the started
   * one; another input is refused with `already_exists`. S6: ids belong to the tenant of the caller. Default: an id that follows
   * from the journal.
   */
  readonly id?: string;
  /** What happens to the run when this one ends first. Default: `cancel`. */
  readonly onParentEnd?: OnCallerEnd;
  /**
   * Budget of the run. B6: if this task has a limit of tokens, cost or turns, the option is required for each of them: it
   * names the part of the limit that the started run may spend. The part is reserved until that run ends.
   */
  readonly budget?: Partial<ExecutionBudget>;
  /** Priority of the run. Default: `Priority.NORMAL`. */
  readonly priority?: Priority;
  /** Data for lists of runs. Default: `{}`. */
  readonly metadata?: JsonObject;
  /** Milliseconds after which the run starts. Default: 0. */
  readonly delayMs?: number;
}

/** The options of `ctx.start`, by name. */
export const startRunKinds = {
  id: is.text(),
  onParentEnd: is.choice(["cancel", "abandon"], { default: "cancel" }),
  budget: is.checkedBy(executionBudget),
  priority: is.checkedBy(parsePriority),
  metadata: is.named("data", '{ customer: "c7" }'),
  delayMs: is.number({ from: 0, finite: true, default: 0 }),
} satisfies OptionKinds<StartRunOptions>;

export const startRunTable = optionTable(startRunKinds);

/** How many runs may have started each other in a row. */
export const longestCallChain = 100;

/** Returns the run id of the option `id` of `ctx.start`. */
export function calledRunId(id: string): RunId {
  return id.startsWith("run_") ? parseRunId(id) : formatRunId(id);
}

/** Whether a value is the handle of a run, and not that of a child task. */
export function isStartedRun(value: unknown): value is StartedRun {
  return readProperty(value, "taskId") === undefined && typeof readProperty(value, "runId") === "string";
}

/** Refuses a value that is no handle of a started run. */
export function requireStartedRun(owner: string, value: unknown): asserts value is StartedRun {
  if (isStartedRun(value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid run ${describeValue(value)} of ${owner}: expected what ctx.start() returned`,
  );
}
