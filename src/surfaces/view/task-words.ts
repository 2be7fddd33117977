import { rootTaskId, type TaskId } from "../../kernel/index.ts";
import { cancelWords } from "./cancel-words.ts";
import { isUnanswered } from "./question-log.ts";
import type { RunView, TaskView } from "./run-view.ts";
import { counted, shortModel } from "./short-words.ts";
import { isAsking, taskWord } from "./status-words.ts";

export function hasEndedTask({ endedAt }: TaskView): boolean {
  return endedAt !== null;
}

/** Describes what an agent is doing now, or returns the beginning of its result. */
export function doingOrResult(task: TaskView, view: RunView): string {
  return task.result || doing(task, view);
}

/** What an agent does now, in words. */
export function doing(task: TaskView, view: RunView): string {
  if (hasEndedTask(task)) return cancelWords(task, view) ?? taskWord(task).toLowerCase();
  switch (task.status) {
    case "pending":
      return "waits for a seat";
    case "pausing":
      return task.yieldsTo === null
        ? "pauses after its calls in flight"
        : `gives its seat to ${agentOf(task.yieldsTo, view)}`;
    case "paused":
      if (isAsking(task)) break;
      return task.yieldsTo === null ? "paused" : `gave its seat to ${agentOf(task.yieldsTo, view)}`;
    default:
  }
  if (task.questions > 0) return `waits for you: ${questionOf(task.taskId, view)}`;
  if (task.status === "waiting") return waitWords(task, view);
  if (task.openCalls > 0 && task.lastCall !== null) {
    const { kind, name } = task.lastCall;
    const more = task.openCalls > 1 ? ` and ${task.openCalls - 1} more` : "";
    return `${kind === "model" ? `calls ${shortModel(name)}` : callWords(name, view)}${more}`;
  }
  return "works";
}

function waitWords({ waitsFor }: TaskView, view: RunView): string {
  const joined = waitsFor.flatMap((name) => (name.startsWith("join ") ? name.split(" ").slice(1) : []));
  const [first] = joined.length > 0 ? [`join ${joined.join(" ")}`] : waitsFor;
  return first === undefined ? "waits" : `waits for ${waitWord(first, view)}`;
}

/** What a wait of a task is for, in words. */
export function waitWord(name: string, view: RunView): string {
  const [kind = "", ...rest] = name.split(" ");
  switch (kind) {
    case "join":
      return rest.length === 1 ? agentOf(rest[0] as TaskId, view) : counted(rest.length, "report");
    case "approval":
      return "a person";
    case "reply":
      return "a reply";
    case "sleep":
      return "its time";
    case "signal":
      return `the signal ${rest.join(" ")}`;
    case "budget":
      return "money that is held";
    case "cap":
      return "money that other runs hold";
    case "steer":
    case "follow_up":
      return "input";
    default:
      return name;
  }
}

const handoff = "handoff_";

/** Whether a tool hands a task over to another agent. */
export function isHandOff(tool: string): boolean {
  return tool.startsWith(handoff);
}

/** The agents of a run. `null` if the run is not read yet. */
type Agents = Pick<RunView, "tasks"> | null;

/**
 * Returns the agent to which a hand-off gives a task. In the name of the tool, `_` replaces some characters of the
 * agent's name, so the real name is searched in the run.
 */
export function targetOf(tool: string, view: Agents): string {
  const target = tool.slice(handoff.length);
  if (view === null || !target.includes("_")) return target;
  for (const { agentId } of view.tasks) if (agentId.replaceAll(/[^\w-]/gu, "_") === target) return agentId;
  return target;
}

/** Returns the title for calls of a tool: `hires NAME` for a hand-off, otherwise its name. */
export function toolTitle(tool: string, view: Agents): string {
  return isHandOff(tool) ? `hires ${targetOf(tool, view)}` : tool;
}

/** Describes a call of a tool: `hires NAME` for a hand-off, otherwise `runs NAME`. */
export function callWords(tool: string, view: Agents): string {
  return isHandOff(tool) ? toolTitle(tool, view) : `runs ${tool}`;
}

/** Describes what an agent waits for after it has asked a person with a tool. */
export function askedWith(tool: string): string {
  if (tool === "top_up") return "a top-up";
  return tool === "ask_human" ? "an answer" : tool;
}

/**
 * Describes the position of an agent in the queue for a seat: `first in line`. Agents with a higher priority come
 * first; agents of the same priority are in the order in which they asked.
 */
function lineWords(task: TaskView, view: RunView): string {
  const line = [...view.tasks]
    .filter(({ status }) => status === "pending")
    .toSorted((one, other) => other.priority - one.priority || one.createdAt - other.createdAt);
  const at = line.findIndex(({ taskId }) => taskId === task.taskId);
  return at === 0 ? "first in line" : `${at} before it`;
}

/** Describes what an agent is doing now, with its position in the queue for a seat, or its turn. */
export function doingInDetail(task: TaskView, view: RunView): string {
  const words = doing(task, view);
  if (hasEndedTask(task)) return words;
  if (task.status === "pending") return `${words}, ${lineWords(task, view)}`;
  const isCalling = task.openCalls > 0 && task.lastCall?.kind === "model" && task.status === "running";
  return isCalling ? `${words}, turn ${task.own.calls - task.own.lost.calls + 1}` : words;
}

function questionOf(taskId: TaskId, view: RunView): string {
  for (const question of view.asked)
    if (question.taskId === taskId && isUnanswered(question, view))
      return askedWith(question.request.toolName);
  return "an answer";
}

/** The name of a task's agent. */
export function agentOf(taskId: TaskId | null, view: RunView): string {
  return (taskId === null ? undefined : view.tasks.get(taskId)?.agentId) ?? "another agent";
}

/**
 * Returns a task and all tasks below it in the order of the tree: each task before its reports, and reports in the
 * order in which they were hired.
 */
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

/** Returns the reports of each task, in the order in which they were hired. The root is listed under `null`. */
export function childrenOf(view: RunView): ReadonlyMap<TaskId | null, readonly TaskView[]> {
  const children = new Map<TaskId | null, TaskView[]>();
  for (const task of view.tasks) {
    const list = children.get(task.parentId);
    if (list === undefined) children.set(task.parentId, [task]);
    else list.push(task);
  }
  return children;
}
