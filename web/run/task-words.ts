import { rootTaskId, type TaskId } from "../../src/kernel/index.ts";
import type { RunView, TaskView } from "../../src/surfaces/view/run-view.ts";
import { counted, shortModel } from "../parts/format.ts";
import { statusWord } from "../parts/status.ts";

export function hasEndedTask({ endedAt }: TaskView): boolean {
  return endedAt !== null;
}

/** What an agent does now, in words. */
export function doing(task: TaskView, view: RunView): string {
  if (hasEndedTask(task)) return statusWord(task.status).toLowerCase();
  switch (task.status) {
    case "pending":
      return "waits for a seat";
    case "pausing":
      return `gives its seat to ${agentOf(task.yieldsTo, view)}`;
    case "paused":
      return task.yieldsTo === null ? "paused" : `gave its seat to ${agentOf(task.yieldsTo, view)}`;
    default:
  }
  if (task.questions > 0) return `waits for you: ${questionOf(task.taskId, view)}`;
  if (task.status === "waiting") return waitWords(task, view);
  if (task.openCalls > 0 && task.lastCall !== null) {
    const { kind, name } = task.lastCall;
    const more = task.openCalls > 1 ? ` and ${task.openCalls - 1} more` : "";
    return kind === "model" ? `calls ${shortModel(name)}${more}` : `runs ${name}${more}`;
  }
  return "works";
}

function waitWords({ waitsFor }: TaskView, view: RunView): string {
  const joined = waitsFor.filter((name) => name.startsWith("join "));
  if (joined.length === 1) return `waits for ${agentOf((joined[0] ?? "").slice(5) as TaskId, view)}`;
  if (joined.length > 1) return `waits for ${counted(joined.length, "report")}`;
  if (waitsFor.includes("budget")) return "waits for money that is held";
  return waitsFor.length === 0 ? "waits" : `waits for ${waitsFor[0] ?? ""}`;
}

function questionOf(taskId: TaskId, view: RunView): string {
  for (const question of view.asked)
    if (question.taskId === taskId && question.decision === null) return question.request.toolName;
  return "an answer";
}

/** The name of a task's agent. */
export function agentOf(taskId: TaskId | null, view: RunView): string {
  return (taskId === null ? undefined : view.tasks.get(taskId)?.agentId) ?? "another agent";
}

/** A task and all below it in the order of the tree: each before its reports, which are in the order of hiring. */
export function inTreeOrder(view: RunView, root: TaskId = rootTaskId): readonly TaskView[] {
  const children = childrenOf(view);
  const ordered: TaskView[] = [];
  const visit = (task: TaskView): void => {
    ordered.push(task);
    for (const child of children.get(task.taskId) ?? []) visit(child);
  };
  const first = view.tasks.get(root);
  if (first !== undefined) visit(first);
  return ordered;
}

/** The reports of each task, in the order of hiring. `null` has the root. */
export function childrenOf(view: RunView): ReadonlyMap<TaskId | null, readonly TaskView[]> {
  const children = new Map<TaskId | null, TaskView[]>();
  for (const task of view.tasks) {
    const list = children.get(task.parentId);
    if (list === undefined) children.set(task.parentId, [task]);
    else list.push(task);
  }
  return children;
}
