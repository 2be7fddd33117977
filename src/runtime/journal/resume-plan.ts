import {
  canonicalJson,
  rootTaskId,
  HistoryRetention,
  type StepAddress,
  type StepRecord,
  type TaskId,
} from "../../kernel/index.ts";
import type { RunState, TaskState } from "./run-state.ts";

/** Why a task is cancelled that its parent's end took along. */
export const parentEnded = "its parent has ended";

/** A task to go on with, and the records it goes on without (J5). */
export interface ResumedTask {
  readonly taskId: TaskId;
  readonly voids: readonly StepAddress[];
}

/**
 * J5: which tasks of an ended run go on when it is resumed. The root, if it did not complete; below a task that goes on, those whose
 * failure was the last thing it saw, and those it took along when it ended. A child whose failure it survived stays as it is:
 * what came after depends on it. So does one whose words retention has erased: there is nothing to go on from.
 */
export function planResume(state: RunState): readonly ResumedTask[] {
  const root = state.task(rootTaskId);
  if (root.outcome === null || root.outcome.status === "completed" || isErased(root)) return [];
  const plan: ResumedTask[] = [];
  const reached = new Set<TaskState>([root]);
  for (const task of reached) {
    const joins = [...task.steps.values()].filter((step) => isJoin(step) && isTip(task, step.address));
    const failed = (name: string): TaskState[] =>
      name
        .split(" ")
        .flatMap((word) => state.tasks.get(word as TaskId) ?? [])
        .filter(({ outcome }) => outcome?.status === "failed" || outcome?.status === "cancelled")
        .filter((child) => !isErased(child));
    const stale = joins.filter(({ name }) => failed(name).length > 0);
    for (const { name } of stale) for (const child of failed(name)) reached.add(child);
    for (const child of takenAlong(state, task)) reached.add(child);
    const voids = [...task.endedOn.flatMap((address) => sameFailure(task, address)), ...stale.map(addressOf)];
    plan.push({ taskId: task.record.taskId, voids });
  }
  return plan;
}

/** Its words went with the run's end. */
function isErased({ record }: TaskState): boolean {
  return record.supervision.retention === HistoryRetention.NONE;
}

function takenAlong(state: RunState, { record }: TaskState): readonly TaskState[] {
  return [...state.tasks.values()].filter(
    (each) =>
      each.record.parentId === record.taskId &&
      !isErased(each) &&
      each.outcome?.status === "cancelled" &&
      each.cancelled?.reason === parentEnded,
  );
}

function isJoin({ kind, name, outcome }: StepRecord): boolean {
  return kind === "wait" && outcome.kind === "ok" && /^(join|ask) /.test(name);
}

/** The record, and those inside the step in which the same fault was recorded on its way out. */
function sameFailure({ steps }: TaskState, address: StepAddress): readonly StepAddress[] {
  const failure = failureText(steps.get(address));
  if (failure === undefined) return [];
  const inside = [...steps.values()].filter(
    (step) => step.address.startsWith(`${address}/`) && failureText(step) === failure,
  );
  return [address, ...inside.map(addressOf)];
}

function failureText(step: StepRecord | undefined): string | undefined {
  if (step?.outcome.kind !== "failed") return undefined;
  const { code, message, details = null } = step.outcome.failure;
  return canonicalJson({ code, message, details });
}

/** Nothing was recorded after it, in its scope or in one around it, and what it stands in came to nothing either. */
function isTip({ steps }: TaskState, address: StepAddress): boolean {
  const parts = address.split("/");
  for (let length = parts.length; length > 0; length--) {
    const index = Number(parts[length - 1]);
    if (!Number.isSafeInteger(index)) continue;
    const own = steps.get(parts.slice(0, length).join("/") as StepAddress);
    if (length < parts.length && own?.kind !== "llm" && own?.outcome.kind === "ok") return false;
    const around = parts.slice(0, length - 1);
    // J2: tools of one turn stand side by side, and not one after another.
    const isTool = own?.kind === "tool" || steps.get(around.join("/") as StepAddress)?.kind === "llm";
    if (isTool) continue;
    const next = [...around, index + 1].join("/");
    for (const each of steps.keys()) if (each === next || each.startsWith(`${next}/`)) return false;
  }
  return true;
}

function addressOf({ address }: StepRecord): StepAddress {
  return address;
}
