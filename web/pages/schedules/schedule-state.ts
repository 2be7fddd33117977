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

/** The last fire that started no run, unless a later one did. */
function lastSkip({ skipped, lastAt }: Pick<Schedule, "skipped" | "lastAt">): Schedule["skipped"] {
  return skipped !== null && (lastAt === null || skipped.at > lastAt) ? skipped : null;
}

/** How a schedule is doing. One whose last run failed, or whose last fire was refused, is failing, not active. */
export function stateOf(
  schedule: Pick<Schedule, "status" | "skipped" | "lastAt">,
  runs: readonly Run[],
): { readonly look: Look; readonly word: string } {
  const { status } = schedule;
  const isFailing = badRuns(runs) > 0 || lastSkip(schedule)?.reason === "error";
  if (status === "active" && isFailing) return { look: "failed", word: "Failing" };
  return { look: looks[status], word: words[status] };
}

/** What a schedule asks its agent, in one line. Hidden characters are shown, because a person decides whether it stays. */
export function askWords({ input }: Pick<Schedule, "input">): string {
  return visibleLine(oneLine(inputText(input)));
}

const skips = {
  overlap: "The last fire was skipped, because the run before it had not ended",
  busy: "The last fire was skipped, because its session was busy",
  missed: "The last fire was missed: no process that hosts the agent was open",
  error: "The last fire was refused",
} as const;

/** Why the last fire started no run. `null` if it did. Hidden characters are shown, because the error quotes names and inputs. */
export function skipWords(schedule: Pick<Schedule, "skipped" | "lastAt">): string | null {
  const skipped = lastSkip(schedule);
  if (skipped === null) return null;
  const { reason, error } = skipped;
  return error === undefined ? skips[reason] : visibleLine(`${skips[reason]}: ${error}`);
}
