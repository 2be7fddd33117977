import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { formatRunId, parseRunId, type RunId } from "../base/identity.ts";
import type { JsonObject } from "../base/json-value.ts";
import { is, optionTable, type OptionKinds } from "../base/option-table.ts";
import { readProperty } from "../base/read-property.ts";
import { executionBudget, type ExecutionBudget } from "../limits/execution-budget.ts";
import { parsePriority, type Priority } from "../limits/priority.ts";

/**
 * The handle of a run that another run has started with `ctx.start`. It is JSON, so that code can pass it to other
 * tasks.
 */
export interface StartedRun {
  /** Id of the run. */
  readonly runId: RunId;
}

/**
 * What happens to a started run when the task that started it ends, fails or is cancelled, or when the branch that
 * started it loses. `cancel` cancels the run, and `abandon` lets it continue alone. A run that has already ended is
 * not affected.
 */
export type OnCallerEnd = "cancel" | "abandon";

/** Options of `ctx.start`. */
export interface StartRunOptions {
  /**
   * Id of the run: `ship-7` stands for the run `run_ship-7`. If a run with this id and an equal input exists, the
   * call returns it; another input throws `already_exists`. S6: ids belong to the tenant of the caller. Default: an
   * id that follows from the journal.
   */
  readonly id?: string;
  /** What happens to the new run when the run that starts it ends first. Default: `cancel`. */
  readonly onParentEnd?: OnCallerEnd;
  /**
   * Budget of the run. B6: for each limit of tokens, cost or turns that this task has, the option must say which
   * part of the limit the started run may spend. This part is reserved until the started run ends.
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

/** Maximum length of a chain of runs in which each run has started the next. */
export const longestCallChain = 100;

/** Returns the run id of the option `id` of `ctx.start`. */
export function calledRunId(id: string): RunId {
  return id.startsWith("run_") ? parseRunId(id) : formatRunId(id);
}

/** Whether a value is the handle of a started run and not of a child task. */
export function isStartedRun(value: unknown): value is StartedRun {
  return readProperty(value, "taskId") === undefined && typeof readProperty(value, "runId") === "string";
}

/** Throws if a value is not the handle of a started run. `owner` names the call in the error. */
export function requireStartedRun(owner: string, value: unknown): asserts value is StartedRun {
  if (isStartedRun(value)) return;
  throw new Fault(
    "invalid_argument",
    `invalid run ${describeValue(value)} of ${owner}: expected what ctx.start() returned`,
  );
}
