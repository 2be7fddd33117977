import type { CancelView, RunView, TaskView } from "./run-view.ts";
import { personName } from "./short-words.ts";

/** The reasons that the runtime records if the caller gave none, and for the reports of a task that has ended. */
const noReason = "cancelled";
const parentEnded = "its parent has ended";

/** Describes who cancelled a task and why: `cancelled by you: too late`. `null` if the task was not cancelled. */
export function cancelWords(
  { cancelled, parentId }: Pick<TaskView, "cancelled" | "parentId">,
  { tasks }: Pick<RunView, "tasks">,
): string | null {
  if (cancelled == null) return null;
  if (cancelled.by !== null) return `cancelled by ${whoOf(cancelled.by)}${why(cancelled)}`;
  const parent = parentId === null ? undefined : tasks.get(parentId)?.agentId;
  if (parent === undefined) return `cancelled${why(cancelled)}`;
  return cancelled.reason === parentEnded
    ? `cancelled because ${parent} has ended`
    : `cancelled by ${parent}${why(cancelled)}`;
}

/**
 * Describes who cancelled a run and why, as text after the status of the run: `by you: too late`. `null` if no
 * caller cancelled it.
 */
export function runCancelWords({ cancelled }: Pick<RunView, "cancelled">): string | null {
  if (cancelled == null || cancelled.by === null) return null;
  return `by ${whoOf(cancelled.by)}${why(cancelled)}`;
}

/** Describes the action of a caller: `You cancelled the run: too late`. `what` names the cancelled object. */
export function cancelSentence(
  { by, reason }: { readonly by: string; readonly reason: string },
  what = "the run",
): string {
  return `${personName(by)} cancelled ${what}${why({ reason })}`;
}

function whoOf(by: string): string {
  const name = personName(by);
  return name === "You" ? "you" : name;
}

function why({ reason }: Pick<CancelView, "reason">): string {
  return reason === "" || reason === noReason ? "" : `: ${reason}`;
}
