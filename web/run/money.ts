import { rootTaskId } from "../../src/kernel/index.ts";
import type { TaskView } from "../../src/surfaces/view/run-view.ts";
import { capUsd } from "../parts/format.ts";
import type { PurseTone, PurseValues } from "../parts/purse.tsx";
import { nothingHeld, type Held } from "./held.ts";
import { hasEndedTask } from "./task-words.ts";

/** The purse of a task: what it and its reports spent, lost and hold. */
export function purseOf(task: TaskView, held: Held | null): PurseValues {
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

/** The allowance of a task in words. Its log names it when the task starts. */
export function capWords({ budget }: Pick<TaskView, "budget">): string {
  if (budget === null) return "not set yet";
  return budget.maxCostUsd === null ? "no limit" : capUsd(budget.maxCostUsd);
}

export function toneOf(task: TaskView): PurseTone {
  if (task.status === "paused" || task.status === "pausing") return "hold";
  return hasEndedTask(task) && task.status !== "budget_exhausted" ? "done" : "live";
}

export function spentOf({ own, team, lost }: PurseValues): number {
  return own + team + lost;
}

export const rootId = rootTaskId;
