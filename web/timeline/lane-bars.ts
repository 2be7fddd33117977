import { shortModel } from "../parts/format.ts";
import type { StepView } from "../../src/surfaces/view/step-log.ts";
import type { TimeScale } from "./time-scale.ts";

export type BarKind = "model" | "tool" | "open" | "lost" | "person" | "paused" | "seat";

const narrowest = 3;

/** How a step looks at an event: in flight, lost, or what it is. `null` if it does not exist yet. */
export function barKind({ kind, startSeq, endSeq, outcome }: StepView, seq: number): BarKind | null {
  if (startSeq > seq) return null;
  if (kind === "person" || kind === "paused" || kind === "seat") return kind;
  if (endSeq === null || endSeq > seq) return "open";
  if (outcome === "lost") return "lost";
  return kind === "model" ? "model" : "tool";
}

/** Left edge and width of a step's bar, at least 3 px. */
export function barOf(
  { startAt, endAt, endSeq }: StepView,
  scale: TimeScale,
  at: { readonly seq: number; readonly until: number },
): { readonly x: number; readonly width: number } {
  const end = endAt === null || endSeq === null || endSeq > at.seq ? at.until : endAt;
  const x = scale.x(startAt);
  return { x, width: Math.max(narrowest, scale.x(Math.max(end, startAt)) - x) };
}

const shapes: Readonly<Record<BarKind, { readonly y: number; readonly height: number }>> = {
  model: { y: 8, height: 12 },
  tool: { y: 8, height: 12 },
  open: { y: 8, height: 12 },
  lost: { y: 8, height: 12 },
  person: { y: 12, height: 4 },
  paused: { y: 13, height: 2 },
  seat: { y: 13, height: 2 },
};

function isOpenAt({ endSeq }: StepView, seq: number): boolean {
  return endSeq === null || endSeq > seq;
}

function isHandOff({ kind, name }: StepView): boolean {
  return kind === "tool" && name.startsWith("handoff_");
}

/** One path per kind of bar, so that a lane with thousands of steps is a handful of elements. */
export function barPaths(
  steps: readonly StepView[],
  scale: TimeScale,
  at: { readonly seq: number; readonly until: number },
): readonly (readonly [BarKind, string])[] {
  const paths = new Map<BarKind, string>();
  const isAsking = steps.some(
    (step) => step.kind === "person" && barKind(step, at.seq) !== null && isOpenAt(step, at.seq),
  );
  for (const step of steps) {
    const kind = barKind(step, at.seq);
    // A hand-off is the work of the report, and a call that asks a person does nothing meanwhile.
    if (kind === null || isHandOff(step) || (kind === "open" && step.kind === "tool" && isAsking)) continue;
    const { x, width } = barOf(step, scale, at);
    const { y, height } = shapes[kind];
    const path =
      kind === "paused" || kind === "seat"
        ? `M${x.toFixed(1)} ${y}h${width.toFixed(1)}`
        : `M${x.toFixed(1)} ${y}h${(width - 0.5).toFixed(1)}v${height}H${x.toFixed(1)}z`;
    paths.set(kind, (paths.get(kind) ?? "") + path);
  }
  return [...paths];
}

/** What a step is, in words. */
export function stepName({ kind, name }: StepView): string {
  switch (kind) {
    case "model":
      return shortModel(name);
    case "person":
      return `waits for you: ${name}`;
    case "paused":
      return "paused, its seat is taken";
    case "seat":
      return "waits for a seat";
    default:
      return name;
  }
}
