import type { TaskId } from "../../src/kernel/index.ts";
import type { RunView, TaskView } from "../../src/surfaces/view/run-view.ts";
import type { StepView } from "../../src/surfaces/view/step-log.ts";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { now } from "../app/now.ts";
import { place, setQuery } from "../app/route.ts";
import { capUsd, clock, counted, grouped, span, usd } from "../parts/format.ts";
import { Glyph } from "../parts/glyph.tsx";
import { Name } from "../parts/name.tsx";
import { hasEnded, lookOfTask } from "../parts/status.ts";
import { useSize } from "../parts/use-size.ts";
import { rowsIn, useBand } from "../parts/use-window.ts";
import { rootId } from "../run/money.ts";
import type { RunModel } from "../run/run-model.ts";
import { useTreeOrder } from "../run/use-tree-order.ts";
import { barKind, barOf, barPaths, stepName } from "./lane-bars.ts";
import { StepDetails } from "./step-details.tsx";
import { timeScale, type Fold, type TimeScale } from "./time-scale.ts";

const laneHeight = 28;
const narrowLaneHeight = 56;
const mostSteps = 200;
const nameWidth = 224;
const moneyWidth = 88;
const phone = 720;
/** Room that the label of a time needs, so that the last one ends before the column of money. */
const tickWidth = 48;

/** What happened when: money and seats on top, then one lane per agent. */
export function Timeline({ model }: { readonly model: RunModel }): JSX.Element {
  void model.version.value;
  const view = model.view.value;
  const { ref, width } = useSize<HTMLDivElement>();
  const [step, setStep] = useState<StepView | null>(null);
  if (view === null) return <></>;
  const isReplay = model.playhead.value !== null;
  const until = view.endedAt ?? (isReplay || hasEnded(view.status) ? view.at : Math.max(now.value, view.at));
  const isNarrow = width < phone;
  const plot = Math.max(120, isNarrow ? width - 32 : width - nameWidth - moneyWidth);
  const scale = timeScale(view, Math.max(until, view.startedAt + 1), plot, isNarrow ? 0.12 : 0.07);
  const open = (place.value.query.get("task") ?? rootId) as TaskId;
  const lane = { model, view, scale, plot, until, step, onStep: setStep };
  return (
    <div class="with-inspector">
      <div class="canvas timeline" ref={ref}>
        {width > 0 && (
          <div class="lanes" style={{ "--plot": `${plot}px` }}>
            <div class="lane axis">
              <span class="lane-name dim">
                {counted(view.tasks.size, "agent")}, {counted(model.steps.size, "step")}
              </span>
              <span class="plot">
                {scale.ticks
                  .filter((tick) => tickX(scale, view, tick) < plot - tickWidth)
                  .map((tick) => (
                    <span key={tick} class="tick" style={{ left: `${tickX(scale, view, tick)}px` }}>
                      {clock(tick)}
                    </span>
                  ))}
                {scale.folds.map((fold) => (
                  <span
                    key={fold.seq}
                    class="tick bad"
                    style={{ left: `${fold.x}px`, width: `${fold.width}px` }}
                  >
                    {span(fold.toAt - fold.fromAt)}
                  </span>
                ))}
              </span>
              <span class="lane-money dim">Own spend</span>
            </div>
            <MoneyTrack {...lane} />
            <SeatTrack {...lane} />
            <Lanes {...lane} open={open} height={isNarrow ? narrowLaneHeight : laneHeight} />
            <Seams folds={scale.folds} view={view} left={isNarrow ? 16 : nameWidth} />
          </div>
        )}
      </div>
      <StepDetails model={model} view={view} step={step} onClose={() => setStep(null)} />
    </div>
  );
}

/** The lanes in view. The steps of the open lane count as part of it. */
function Lanes({
  open,
  height,
  ...lane
}: LaneProps & { readonly open: TaskId; readonly height: number }): JSX.Element {
  const { view } = lane;
  const order = useTreeOrder(view, rootId);
  const { ref, ...band } = useBand<HTMLDivElement>();
  const { first, end, above, below } = rowsIn(band, order.length, height);
  return (
    <div ref={ref} style={{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
      {order.slice(first, end).map((taskId) => {
        const task = view.tasks.get(taskId);
        return task === undefined ? null : (
          <Lane key={taskId} {...lane} task={task} isOpen={taskId === open} />
        );
      })}
    </div>
  );
}

interface LaneProps {
  readonly model: RunModel;
  readonly view: RunView;
  readonly scale: TimeScale;
  readonly plot: number;
  readonly until: number;
  readonly step: StepView | null;
  readonly onStep: (step: StepView | null) => void;
}

/** The place of a label: times are counted without the folds. */
function tickX(scale: TimeScale, view: RunView, passed: number): number {
  let at = view.startedAt + passed;
  for (const fold of scale.folds) if (at > fold.fromAt) at += fold.toAt - fold.fromAt;
  return scale.x(at);
}

const moneyHeight = 112;

function MoneyTrack({ model, view, scale, plot, until }: LaneProps): JSX.Element {
  const root = view.tasks.get(rootId);
  const cap = root?.budget?.maxCostUsd ?? null;
  const points = model.trace.spend.filter(({ seq }) => seq <= view.seq);
  const spent = root?.total.costUsd ?? 0;
  const highest = Math.max(cap ?? 0, spent, 1e-9) * 1.25;
  const y = (value: number): number => moneyHeight - (moneyHeight * value) / highest;
  const line = points.map(({ at, value }) => `H${scale.x(at).toFixed(1)}V${y(value).toFixed(1)}`).join("");
  const path = `M0 ${moneyHeight}${line}H${scale.x(until).toFixed(1)}V${moneyHeight}z`;
  return (
    <div class="lane money-track">
      <span class="lane-name">
        <b>Money</b>
        <span class="label">spent, allowance</span>
      </span>
      <span class="plot">
        <svg
          width={plot}
          height={moneyHeight}
          role="img"
          aria-label={`${usd(spent)} spent${cap === null ? "" : ` of ${capUsd(cap)}`}`}
        >
          <path class="area" d={path} />
          {cap !== null && <path class="cap" d={`M0 ${y(cap)}H${plot}`} />}
          {cap !== null && (
            <text x="4" y={y(cap) - 5}>
              allowance {capUsd(cap)}
            </text>
          )}
        </svg>
      </span>
      <span class="lane-money">
        <b>{usd(root?.total.costUsd ?? null)}</b>
      </span>
    </div>
  );
}

function SeatTrack({ model, view, scale, plot, until }: LaneProps): JSX.Element {
  const points = model.trace.seats.filter(({ seq }) => seq <= view.seq);
  const most = Math.max(
    view.maxSeats !== null && view.maxSeats <= 200 ? view.maxSeats : 0,
    ...points.map(({ value }) => value),
    1,
  );
  const tall = 20;
  const path = points
    .map(({ at, value }) => `H${scale.x(at).toFixed(1)}V${(24 - (tall * value) / most).toFixed(1)}`)
    .join("");
  return (
    <div class="lane seat-track">
      <span class="lane-name">
        <b>Seats</b>
      </span>
      <span class="plot">
        <svg width={plot} height={28} role="img" aria-label={`${view.seats} seats are taken`}>
          <path d={`M0 24${path}H${scale.x(until).toFixed(1)}V24z`} />
        </svg>
      </span>
      <span class="lane-money">
        {grouped(view.seats)}
        {view.maxSeats === null || view.maxSeats > 99 ? "" : ` of ${view.maxSeats}`}
      </span>
    </div>
  );
}

function Lane({
  task,
  isOpen,
  ...lane
}: LaneProps & { readonly task: TaskView; readonly isOpen: boolean }): JSX.Element {
  const { model, view, scale, plot, until, step, onStep } = lane;
  const steps = model.steps.of(task.taskId);
  const at = { seq: view.seq, until };
  const end = task.endedAt ?? until;
  return (
    <>
      <button
        class={`lane agent-lane depth-${Math.min(1, task.depth)}`}
        aria-expanded={isOpen}
        onClick={() => setQuery("task", isOpen ? "none" : task.taskId)}
      >
        <span class="lane-name" style={{ paddingLeft: `${24 + Math.min(8, task.depth) * 14}px` }}>
          <Glyph look={lookOfTask(task)} />
          <Name text={task.agentId} />
        </span>
        <span class="plot">
          <svg width={plot} height={28} aria-hidden="true">
            <path
              class="life"
              d={`M${scale.x(task.createdAt)} 13.500H${scale.x(Math.max(end, task.createdAt))}`}
            />
            {barPaths(steps, scale, at).map(([kind, path]) => (
              <path key={kind} class={`bar ${kind}`} d={path} />
            ))}
          </svg>
          {scale.folds.map((fold) => (
            <Free key={fold.seq} fold={fold} steps={steps} task={task} />
          ))}
        </span>
        <span class="lane-money">{usd(task.own.costUsd)}</span>
      </button>
      {isOpen &&
        steps.slice(-mostSteps).map((each) => {
          const kind = barKind(each, view.seq);
          if (kind === null) return null;
          const { x, width } = barOf(each, scale, at);
          return (
            <button
              key={`${each.startSeq} ${each.kind}`}
              class={`lane step-lane ${each === step ? "selected" : ""}`}
              onClick={() => onStep(each === step ? null : each)}
            >
              <span class="lane-name" style={{ paddingLeft: `${38 + Math.min(8, task.depth) * 14}px` }}>
                <span class="cut">{stepName(each)}</span>
              </span>
              <span class="plot">
                <i class={`bar ${kind}`} style={{ left: `${x}px`, width: `${width}px` }} />
              </span>
              <span class={`lane-money ${kind === "lost" ? "bad" : ""}`}>
                {kind === "open" ? "in flight" : each.kind === "model" ? usd(each.costUsd) : "–"}
              </span>
            </button>
          );
        })}
    </>
  );
}

/** The calls that the new owner read from the journal instead of making them again. */
function Free({
  fold,
  steps,
  task,
}: {
  readonly fold: Fold;
  readonly steps: readonly StepView[];
  readonly task: TaskView;
}): JSX.Element | null {
  if (task.endedAt !== null && task.endedAt <= fold.fromAt) return null;
  const count = steps.filter(
    ({ kind, endSeq, outcome }) =>
      (kind === "model" || kind === "tool") && endSeq !== null && endSeq < fold.seq && outcome === "ok",
  ).length;
  return count === 0 ? null : (
    <span class="free" style={{ left: `${fold.x + 4}px`, width: `${Math.max(16, fold.width - 8)}px` }}>
      {fold.width > 52 ? `${count} free` : count}
    </span>
  );
}

/** The torn edges of a crash, over all lanes. */
function Seams({
  folds,
  view,
  left,
}: {
  readonly folds: readonly Fold[];
  readonly view: RunView;
  readonly left: number;
}): JSX.Element {
  return (
    <>
      {folds.map((fold) => {
        const crash = view.recoveries.find(({ seq }) => seq === fold.seq);
        return (
          <div
            key={fold.seq}
            class="seam"
            style={{ left: `${left + fold.x}px`, width: `${fold.width}px` }}
            aria-hidden="true"
          >
            <svg width="6" height="100%">
              <rect width="6" height="100%" fill="url(#torn)" />
            </svg>
            <svg width="6" height="100%">
              <rect width="6" height="100%" fill="url(#torn)" />
            </svg>
            {crash !== undefined && (
              <span class="flag">
                a worker died; another one continued after {span(crash.at - crash.lastAt)}:{" "}
                {counted(crash.replayed, "step")} free
              </span>
            )}
          </div>
        );
      })}
      <svg width="0" height="0" aria-hidden="true">
        <defs>
          <pattern
            id="in-flight"
            width="5"
            height="5"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <rect class="hatch-ground" width="5" height="5" />
            <rect class="hatch-line" width="2" height="5" />
          </pattern>
          <pattern id="torn" width="6" height="12" patternUnits="userSpaceOnUse">
            <path class="torn-edge" d="M1 0 5 3 1 6 5 9 1 12" />
          </pattern>
        </defs>
      </svg>
    </>
  );
}
