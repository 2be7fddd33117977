import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { capUsd, counted, grouped, usd } from "../../../base/format.ts";
import { rootId } from "../../../model/money.ts";
import type { RunModel } from "../../../model/run-model.ts";
import type { TracePoint } from "../../../../src/surfaces/view/run-trace.ts";
import { type TimeScale, clearOfFolds, isClear } from "../../../model/time/time-scale.ts";
import { areaPath, heldPath, linePath } from "./track-paths.ts";

/** A label of the line of the budget, which stands where the line has this value. */
interface BudgetLabel {
  readonly left: number;
  readonly text: string;
  readonly value: number;
}

const labelWidth = 104;
const indent = 4;

function label(value: number, left: number): BudgetLabel {
  return { left, text: `budget ${capUsd(value)}`, value };
}

/** The first place at or after `x` at which a label covers no fold. Without one, before `x`, or the right end of the plot. */
function placeFor(x: number, scale: TimeScale): number {
  const ends = scale.folds.map((fold) => fold.x + fold.width + indent);
  const places = [x, ...ends.filter((end) => end > x), x - 2 * indent - labelWidth];
  const clear = places.find((place) => isClear(scale, place, labelWidth));
  return clear ?? Math.max(0, Math.min(x, scale.width - labelWidth));
}

/**
 * Returns the labels of the first budget, at the start, and of the newest budget, after the last top-up if there is
 * room.
 */
export function budgetLabels(
  cap: number | null,
  topUps: readonly TracePoint[],
  scale: TimeScale,
): readonly BudgetLabel[] {
  if (cap === null) return [];
  const first = topUps.reduce((sum, { value }) => sum - value, cap);
  const start = placeFor(indent, scale);
  const last = topUps.at(-1);
  if (last === undefined) return [label(cap, start)];
  const newest = label(cap, placeFor(scale.x(last) + indent, scale));
  const [next] = topUps;
  const hasRoom = next !== undefined && scale.x(next) >= start + labelWidth;
  return hasRoom ? [label(first, start), newest] : [newest];
}

export interface TrackProps {
  readonly model: RunModel;
  readonly view: RunView;
  readonly scale: TimeScale;
  readonly plot: number;
  readonly until: number;
}

const moneyHeight = 112;

/** Shows the spent and reserved amounts over time, below the line of the budget. */
export function MoneyTrack({ model, view, scale, plot, until }: TrackProps): JSX.Element {
  const { trace } = model;
  const root = view.tasks.get(rootId);
  const cap = root?.budget?.maxCostUsd ?? null;
  const points = trace.spend.filter(({ seq }) => seq <= view.seq);
  const spent = root?.total.costUsd ?? 0;
  const isLive = model.playhead.value === null;
  const held = view.endedAt === null ? model.held(rootId) : 0;
  // In replay the height is that of the whole run too.
  const whole = model.live.value?.tasks.get(rootId);
  const highest =
    Math.max(cap ?? 0, whole?.budget?.maxCostUsd ?? 0, whole?.total.costUsd ?? 0, spent + held, 1e-9) * 1.25;
  const y = (value: number): number => moneyHeight - (moneyHeight * value) / highest;
  const end = { at: until, seq: view.seq };
  const topUps = trace.topUpsOf(rootId).filter(({ seq, value }) => seq <= view.seq && value > 0);
  const openCalls = isLive ? [...model.steps.open()].filter(({ kind }) => kind === "model") : [];
  const curve = points.map(({ at, value }) => ({ activeMs: trace.activeMs(at), value }));
  const hatched = heldPath(
    trace.held(openCalls, isLive ? held : 0),
    (activeMs) => curve.findLast((each) => each.activeMs <= activeMs)?.value ?? 0,
    scale,
    { endMs: trace.activeMs(isLive ? until : view.at), y },
  );
  return (
    <div class="lane money-track">
      <span class="lane-name">
        <b>Money</b>
        <span class="label">spent, held, budget</span>
      </span>
      <span class="plot">
        <svg
          width={plot}
          height={moneyHeight}
          role="img"
          aria-label={`${usd(spent)} spent${held > 0 ? `, ${usd(held)} held` : ""}${cap === null ? "" : ` of ${capUsd(cap)}`}`}
        >
          <path class="area" d={areaPath(points, scale, { until: end, y, ground: moneyHeight })} />
          <path class="held" d={hatched} />
          {cap !== null && <path class="cap" d={capLine(topUps, scale, cap, y)} />}
        </svg>
        {budgetLabels(cap, topUps, scale).map(({ left, text, value }) => (
          <span
            key={text}
            class="budget label"
            style={{ left: `${left}px`, top: `${Math.max(0, y(value) - 18)}px` }}
          >
            {text}
          </span>
        ))}
        {cap === null && spent > 0 && (
          <span
            class="budget label"
            style={{ left: `${clearOfFolds(scale.folds, 4, 160)}px`, top: `${Math.max(0, y(spent) - 18)}px` }}
          >
            no limit; {usd(spent)} at the top
          </span>
        )}
      </span>
      <span class="lane-money">
        <b>{usd(root?.total.costUsd ?? null)}</b>
        {held > 0 && <span class="dim">+{usd(held)} held</span>}
      </span>
    </div>
  );
}

/** The budget over time: it rises at every top-up. */
function capLine(
  topUps: readonly TracePoint[],
  scale: TimeScale,
  cap: number,
  y: (value: number) => number,
): string {
  const first = topUps.reduce((sum, { value }) => sum - value, cap);
  let budget = first;
  const points = topUps.map((each) => ({ ...each, value: (budget += each.value) }));
  return linePath(first, points, scale, y);
}

/** The seats that are taken, and how many there are. */
export function seatWords(seats: number, maxSeats: number | null): string {
  return maxSeats === null ? grouped(seats) : `${grouped(seats)} of ${grouped(maxSeats)}`;
}

/** The seats that are taken over time. */
export function SeatTrack({ model, view, scale, plot, until }: TrackProps): JSX.Element {
  const points = model.trace.seats.filter(({ seq }) => seq <= view.seq);
  const most = Math.max(
    view.maxSeats !== null && view.maxSeats <= 200 ? view.maxSeats : 0,
    ...points.map(({ value }) => value),
    1,
  );
  const y = (value: number): number => 24 - (20 * value) / most;
  const end = { at: until, seq: view.seq };
  return (
    <div class="lane seat-track">
      <span class="lane-name">
        <b>Seats</b>
      </span>
      <span class="plot">
        <svg
          width={plot}
          height={28}
          role="img"
          aria-label={`${counted(view.seats, "seat")} ${view.seats === 1 ? "is" : "are"} taken`}
        >
          <path d={areaPath(points, scale, { until: end, y, ground: 24 })} />
        </svg>
      </span>
      <span class="lane-money">{view.endedAt === null ? seatWords(view.seats, view.maxSeats) : ""}</span>
    </div>
  );
}
