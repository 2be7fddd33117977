import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import { stepAt, type StepView } from "../../../../src/surfaces/view/step-log.ts";
import { isFree, isHandOff } from "../../../model/words/step-words.ts";
import type { Moment, Piece, TimeScale } from "../../../model/time/time-scale.ts";

export type BarKind =
  | "model"
  | "tool"
  | "free"
  | "open"
  | "lost"
  | "refused"
  | "person"
  | "paused"
  | "seat"
  | "report";

const narrowest = 3;
/** An unreported call ends at the torn edge of a crash, which covers 3 px of it. */
const narrowestLost = 9;

/** Returns the look of a step at the shown event. A call without an answer that was charged is shown as lost. */
function barKind(step: StepView, view: Pick<RunView, "forkedFrom">): BarKind {
  const { kind, outcome, costUsd } = step;
  if (kind === "person" || kind === "paused" || kind === "seat") return kind;
  if (isHandOff(step)) return "report";
  if (isFree(step, view)) return "free";
  if (outcome === null) return "open";
  if (outcome === "refused") return "refused";
  // A step with a cost is a call that a program made itself.
  if (kind === "step" && costUsd !== 0) return "model";
  if (kind !== "model") return "tool";
  return outcome === "lost" || (outcome === "cut" && costUsd !== 0) ? "lost" : "model";
}

/** One step with its bar. */
export interface Bar {
  readonly step: StepView;
  readonly kind: BarKind;
  readonly pieces: readonly Piece[];
}

/**
 * Returns the bars of a task's steps in their state at a moment. While a call asks a person or is paused, it has no
 * bar.
 */
export function barsOf(
  steps: readonly StepView[],
  scale: TimeScale,
  until: Moment,
  view: Pick<RunView, "forkedFrom">,
): readonly Bar[] {
  const shown = steps.flatMap((step) => stepAt(step, until.seq) ?? []);
  const waits = shown.filter(({ kind }) => kind === "person" || kind === "paused");
  return shown.map((step) => {
    const spans = workingSpans(step, waits, until);
    const isWaiting = step.outcome === null && spans.at(-1)?.[1] !== until;
    const kind = barKind(step, view);
    return {
      step,
      kind: kind === "open" && isWaiting ? "tool" : kind,
      pieces: spans.flatMap(([from, to]) =>
        scale.pieces(from, to, kind === "lost" ? narrowestLost : narrowest),
      ),
    };
  });
}

type Span = readonly [from: Moment, to: Moment];

function spanOf({ startAt, startSeq, endAt, endSeq, outcome }: StepView, until: Moment): Span {
  const start = { at: startAt, seq: startSeq };
  if (endAt === null || endSeq === null) return [start, until];
  // An unreported call ends when its worker died, before the event that says so.
  return [start, { at: endAt, seq: outcome === "lost" ? startSeq : endSeq }];
}

/** Returns the time of a step without the time in which its tool waits for a person or its task has no seat. */
function workingSpans(step: StepView, waits: readonly StepView[], until: Moment): readonly Span[] {
  const whole = spanOf(step, until);
  if ((step.kind !== "tool" && step.kind !== "model") || isHandOff(step)) return [whole];
  const spans: Span[] = [];
  let [from] = whole;
  const [, to] = whole;
  for (const wait of waits) {
    // Only a tool asks a person. A model call that was about to start when its task gave up the seat starts after the pause.
    if (wait.kind === "person" && (step.kind === "model" || wait.name !== step.name)) continue;
    const [start, end] = spanOf(wait, until);
    if (end.seq <= from.seq || start.seq >= to.seq || end === from) continue;
    if (start.seq > from.seq) spans.push([from, start]);
    from = end;
  }
  return from.seq < to.seq || spans.length === 0 ? [...spans, [from, to]] : spans;
}

const shapes: Readonly<Record<BarKind, { readonly y: number; readonly height: number }>> = {
  model: { y: 8, height: 12 },
  tool: { y: 8, height: 12 },
  open: { y: 8, height: 12 },
  lost: { y: 8, height: 12 },
  free: { y: 8.5, height: 11 },
  refused: { y: 8.5, height: 11 },
  person: { y: 12, height: 4 },
  paused: { y: 14, height: 0 },
  seat: { y: 14, height: 0 },
  report: { y: 14, height: 0 },
};

/** Returns one SVG path for each kind of bar, so that a lane with thousands of steps needs only a few elements. */
export function barPaths(bars: readonly Bar[]): readonly (readonly [BarKind, string])[] {
  const paths = new Map<BarKind, string>();
  for (const { kind, pieces } of bars) {
    // A hand-off is the work of the report, which has a lane.
    if (kind === "report") continue;
    for (const piece of pieces) paths.set(kind, (paths.get(kind) ?? "") + pathOf(kind, piece));
  }
  return [...paths];
}

/** Returns the path of bars. Neighbouring bars have a gap of half a pixel, but no bar is narrower than its minimum. */
function pathOf(kind: BarKind, { x, width }: Piece): string {
  const { y, height } = shapes[kind];
  const left = x.toFixed(1);
  if (height === 0) return `M${left} ${y}h${width.toFixed(1)}`;
  return `M${left} ${y}h${Math.max(narrowest, width - 0.5).toFixed(1)}v${height}H${left}z`;
}
