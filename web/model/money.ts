import { rootTaskId } from "../../src/kernel/index.ts";
import type { RunView, TaskView } from "../../src/surfaces/view/run-view.ts";
import { capUsd } from "../base/format.ts";
import { nothingHeld, type Held } from "./held.ts";
import { isAsking } from "../../src/surfaces/view/status-words.ts";
import { hasEndedTask } from "../../src/surfaces/view/task-words.ts";

/** Returns the use of a task's budget: what the task and its reports have spent, lost and reserved. */
export function budgetUseOf(task: TaskView, held: Held | null): BudgetUse {
  const total = task.total.costUsd ?? 0;
  const lost = task.total.lost.costUsd ?? 0;
  const own = Math.max(0, (task.own.costUsd ?? 0) - (task.own.lost.costUsd ?? 0));
  return {
    own,
    team: Math.max(0, total - lost - own),
    lost,
    held: hasEndedTask(task) ? 0 : (held ?? nothingHeld)(task.taskId),
    cap: task.budget?.maxCostUsd ?? null,
  };
}

/** The budget of a task in words. Its log names it when the task starts. */
export function capWords({ budget }: Pick<TaskView, "budget">): string {
  if (budget === null) return "not set yet";
  return budget.maxCostUsd === null ? "no limit" : capUsd(budget.maxCostUsd);
}

export function toneOf(task: TaskView): MeterTone {
  if ((task.status === "paused" && !isAsking(task)) || task.status === "pausing") return "hold";
  return hasEndedTask(task) && task.status !== "budget_exhausted" ? "done" : "live";
}

export function spentOf({ own, team, lost }: BudgetUse): number {
  return own + team + lost;
}

export const rootId = rootTaskId;

/** The calls with an answer of one model. */
interface ModelLine {
  readonly calls: number;
  readonly input: number;
  readonly output: number;
  readonly costUsd: number | null;
}

const noCalls: ModelLine = { calls: 0, input: 0, output: 0, costUsd: 0 };

/** The models of a run with what they answered, by name. With the unreported calls they add up to what the root spent. */
export function modelLines({ money }: Pick<RunView, "money">): readonly (readonly [string, ModelLine])[] {
  const lines = new Map<string, ModelLine>();
  for (const { model, calls, usage } of money) {
    const { calls: known, input, output, costUsd } = lines.get(model) ?? noCalls;
    lines.set(model, {
      calls: known + calls,
      input: input + usage.inputTokens,
      output: output + usage.outputTokens,
      costUsd: costUsd === null || usage.costUsd === null ? null : costUsd + usage.costUsd,
    });
  }
  return [...lines].filter(([, { calls }]) => calls > 0);
}

export type MeterTone = "live" | "done" | "hold";

/**
 * The used parts of a budget, in dollars. `team` is the amount spent by reports; `held` is the amount reserved for
 * calls in progress.
 */
export interface BudgetUse {
  readonly own: number;
  readonly team: number;
  readonly lost: number;
  readonly held: number;
  /** `null`: no limit. */
  readonly cap: number | null;
}
