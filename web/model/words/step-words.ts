import { visibleLine } from "../../../src/kernel/index.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import type { StepView } from "../../../src/surfaces/view/step-log.ts";
import { shortModel, usd } from "../../base/format.ts";
import { askedWith, toolTitle } from "../../../src/surfaces/view/task-words.ts";

const handOff = "handoff_";

/** Whether a step hands a task to a report, which does the work. */
export function isHandOff({ kind, name }: StepView): boolean {
  return kind === "tool" && name.startsWith(handOff);
}

/**
 * Whether a fork shares the step with its original run, which paid for it. A call that the fork repeats has ended
 * at its start.
 */
export function isFree({ endSeq }: StepView, { forkedFrom }: Pick<RunView, "forkedFrom">): boolean {
  return forkedFrom !== null && endSeq !== null && endSeq <= forkedFrom.at + 1;
}

/** Describes a step in one line. For a model call, this is the beginning of its answer. */
export function stepName(step: StepView, view: RunView | null): string {
  return visibleLine(wordsOf(step, view));
}

function wordsOf({ kind, name, about, isAgain, outcome }: StepView, view: RunView | null): string {
  switch (kind) {
    case "model": {
      if (outcome === "refused") return `a call of ${shortModel(name)} that was not made`;
      const model = `${shortModel(name)}${isAgain ? ", asked again" : ""}`;
      return about === "" ? model : `${about} · ${model}`;
    }
    case "tool":
      return `${toolTitle(name, view)} ${about}`.trimEnd();
    case "person":
      return `waits for you: ${askedWith(name)}`;
    case "paused":
      return "paused, its seat is taken";
    case "seat":
      return "waits for a seat";
    default:
      return name;
  }
}

/** Whether a step ended without what it was made for. */
export function isBadEnd({ outcome }: StepView): boolean {
  return outcome === "lost" || outcome === "error" || outcome === "refused";
}

const shortOutcomes: Readonly<Record<string, string>> = { cut: "stopped", error: "failed" };

/** How a step ended, or what it cost, in one or two words. */
export function stepResult(step: StepView, view: Pick<RunView, "forkedFrom">): string {
  const { kind, outcome, costUsd } = step;
  if (outcome === "refused") return "not made";
  if (isFree(step, view)) return "free";
  if (outcome === null) return isHandOff(step) ? "works" : "in flight";
  if (kind === "model" || (kind === "step" && costUsd !== 0))
    return outcome === "lost" ? `unreported ${usd(costUsd)}` : usd(costUsd);
  return shortOutcomes[outcome] ?? outcome;
}

/** How a step ended, as a sentence. */
export function outcomeWords(step: StepView, view: Pick<RunView, "forkedFrom">): string {
  const { kind, outcome, costUsd } = step;
  if (isFree(step, view) && outcome !== "refused")
    return outcome === "cut"
      ? "in flight in the origin, made again"
      : "shared with the origin, which paid for it";
  switch (outcome) {
    case "lost":
      return "no answer because of the crash, charged in full";
    case "refused":
      return "not made: the budget did not cover it";
    case "cut":
      return kind === "model" && costUsd !== 0
        ? "stopped before it answered, charged in full"
        : "stopped before it ended";
    case "ok":
      return "done";
    case "error":
      return "failed";
    default:
      return outcome ?? "in flight";
  }
}

/** Describes why a model call was repeated. `null` if it was not repeated. */
export function againWords(
  { kind, isAgain, startSeq }: StepView,
  { recoveries, forkedFrom }: Pick<RunView, "recoveries" | "forkedFrom">,
): { readonly title: string; readonly text: string } | null {
  if (!isAgain || kind !== "model") return null;
  const recovery = recoveries.find(({ seq, lost }) => seq < startSeq && startSeq <= seq + lost);
  if (recovery?.isCrash === true)
    return {
      title: "Asked again after the crash",
      text: `The first call was in flight when ${recovery.lostOwner ?? "a worker"} died. No answer was recorded, so it was charged in full and asked again.`,
    };
  if (recovery !== undefined)
    return {
      title: "Asked again by another worker",
      text: `The first call was in flight when ${recovery.owner ?? "another worker"} took over. No answer was recorded, so it was charged in full and asked again.`,
    };
  if (forkedFrom !== null && startSeq === forkedFrom.at + 1)
    return {
      title: "Asked again in the fork",
      text: "The call was in flight in the origin at the last shared event. The fork makes it itself.",
    };
  return { title: "Asked again after a failure", text: "The call before failed, and was retried." };
}
