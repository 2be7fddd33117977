import { visibleLine } from "../../../src/kernel/index.ts";
import type { Run, Schedule } from "../../api/types.ts";
import { oneLine } from "../../base/format.ts";
import { inputText } from "../../model/words/input-text.ts";
import { hasEnded, type Look } from "../../model/status.ts";

function isBad({ status }: Run): boolean {
  return hasEnded(status) && status !== "completed" && status !== "cancelled";
}

/** How many of the newest ended runs did not complete, in a row. */
export function badRuns(runs: readonly Run[]): number {
  const ended = runs.filter(({ status }) => hasEnded(status));
  const good = ended.findIndex((run) => !isBad(run));
  return good < 0 ? ended.length : good;
}

const looks = { active: "running", paused: "paused", done: "completed" } as const;
const words = { active: "Active", paused: "Paused", done: "Done" } as const;

/** How a schedule is doing. One whose last run failed is failing, not active. */
export function stateOf(
  { status }: Pick<Schedule, "status">,
  runs: readonly Run[],
): { readonly look: Look; readonly word: string } {
  if (status === "active" && badRuns(runs) > 0) return { look: "failed", word: "Failing" };
  return { look: looks[status], word: words[status] };
}

/** What a schedule asks its agent, in one line. Hidden characters are shown, because a person decides whether it stays. */
export function askWords({ input }: Pick<Schedule, "input">): string {
  return visibleLine(oneLine(inputText(input)));
}

/** Why the last fire was skipped. `null` if it was not. */
export function skipWords({ skipped }: Pick<Schedule, "skipped">): string | null {
  return skipped === null ? null : visibleLine(`skipped: ${skipped.error ?? skipped.reason}`);
}
