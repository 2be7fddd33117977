import type { TaskId } from "../../../../src/kernel/index.ts";
import type { RunView, TaskView } from "../../../../src/surfaces/view/run-view.ts";
import { stepAt, type StepView } from "../../../../src/surfaces/view/step-log.ts";
import type { JSX } from "preact";
import { now } from "../../../base/now.ts";
import { useKeys } from "../../../base/keys.ts";
import { place, setQuery } from "../../../base/route.ts";
import { columnUsd, counted, usd } from "../../../base/format.ts";
import { Glyph } from "../../../parts/glyph.tsx";
import { Name } from "../../../parts/name.tsx";
import { hasEnded, lookOfTask } from "../../../model/status.ts";
import { useSize } from "../../../base/use-size.ts";
import { rowsIn, useBand } from "../../../base/use-window.ts";
import { rootId } from "../../../model/money.ts";
import { isPastRead } from "../../../model/live-past.ts";
import { hasNoOwner, noOwnerWords } from "../../../model/owner.ts";
import { idleSince } from "../../../model/time/idle.ts";
import { hasAgents, type RunModel } from "../../../model/run-model.ts";
import { useSteps } from "../../../model/use-steps.ts";
import { useTreeOrder } from "../../../model/use-tree-order.ts";
import { placeOf } from "../dock/dock-paths.ts";
import { stepName, stepResult } from "../../../model/words/step-words.ts";
import { scaleAt, timeScale } from "../../../model/time/time-scale.ts";
import { barPaths, barsOf, type Bar } from "./lane-bars.ts";
import { AxisLabels, Free, GridLines, Seams } from "./seams.tsx";
import { StepDetails } from "./step-details.tsx";
import { TopUps } from "./top-ups.tsx";
import { MoneyTrack, SeatTrack, seatWords, type TrackProps } from "./tracks.tsx";

const laneHeight = 28;
const narrowLaneHeight = 56;
const mostSteps = 200;
const wide = 1000;
const phone = 720;

/** Chooses a step, or none. */
function setStep(step: StepView | null): void {
  setQuery("step", step === null ? null : keyOf(step));
}

/** Switches between waits that are drawn with their real length and folded waits. */
function unfold(): void {
  setQuery("waits", place.peek().query.get("waits") === "full" ? null : "full");
}

/**
 * Returns the width of the right column, which must have room for the reserved amounts and the seats of a large
 * company.
 */
function moneyWidth({ seats, maxSeats }: RunView): number {
  return Math.max(112, 36 + 7 * seatWords(seats, maxSeats).length);
}

/** Shows a run over time: money and seats at the top, then one lane per agent. */
export function Timeline({ model }: { readonly model: RunModel }): JSX.Element {
  void model.version.value;
  const view = model.view.value;
  const { ref, width } = useSize<HTMLDivElement>();
  // In the address, so that a reload and a link show the same step.
  const chosen = place.value.query.get("step");
  const taskOfChosen = /^t\d{1,9}(?=\.)/u.exec(chosen ?? "")?.[0] as TaskId | undefined;
  const stepsOfChosen = useSteps(model, taskOfChosen === undefined ? [] : [taskOfChosen]);
  useKeys({ u: unfold });
  if (view === null) return <></>;
  const isReplay = model.playhead.value !== null;
  const isDead = hasNoOwner(model, view);
  const isStill = isReplay || isDead || hasEnded(view.status);
  const until = view.endedAt ?? (isStill ? view.at : Math.max(now.value, view.at));
  // In replay the axis is that of the whole run, so that nothing moves while the playhead does.
  const whole = isReplay ? (model.live.value ?? view) : view;
  const wholeUntil = isReplay ? (whole.endedAt ?? Math.max(until, whole.at)) : until;
  const isNarrow = width < phone;
  const money = moneyWidth(view);
  const nameWidth = width < wide ? 200 : 280;
  const plot = Math.max(120, isNarrow ? width - 32 : width - nameWidth - money);
  const share = isNarrow ? 0.12 : 0.07;
  // While no worker owns the run, its fold is open: it takes the right end of the plot.
  const isOpenFold = isDead && !isReplay;
  const worked = isOpenFold ? plot * (1 - share) : plot;
  const isUnfolded = place.value.query.get("waits") === "full";
  const axis = timeScale(whole, Math.max(wholeUntil, view.startedAt + 1), worked, share, {
    isUnfolded,
    waitsSince: isReplay ? null : idleSince(view),
  });
  const scale = scaleAt(axis, view.seq, isDead);
  const open = (place.value.query.get("task") ?? rootId) as TaskId;
  const lane = { model, view, scale, plot, until, chosen, isDead, onStep: setStep };
  const left = isNarrow ? 16 : nameWidth;
  const steps = taskOfChosen === undefined ? [] : stepsOfChosen(taskOfChosen);
  const step = shownStep(steps, chosen, view.seq);
  return (
    <div class="with-inspector">
      <div class="canvas timeline" ref={ref}>
        {width > 0 && (
          <div
            class={`lanes ${isDead ? "dead" : ""}`}
            style={{ "--plot": `${plot}px`, "--money": `${money}px`, "--name": `${nameWidth}px` }}
          >
            <div class="lane axis">
              <span class="lane-name dim">
                {counted(view.tasks.size, "agent")}, {counted(view.results, "step")}
              </span>
              <span class="plot">
                <AxisLabels scale={scale} seq={view.seq} />
                {isOpenFold && (
                  <span class="tick bad" style={{ left: `${worked}px`, width: `${plot - worked}px` }}>
                    no owner
                  </span>
                )}
              </span>
              <span class="lane-money dim">Own spend</span>
            </div>
            {!isPastRead(model, view) && (
              <p class="reading" role="status">
                Reading the log of the run. Steps, money and seats over time are not complete yet.
              </p>
            )}
            <GridLines scale={scale} left={left} />
            <MoneyTrack {...lane} />
            {hasAgents(model) && <SeatTrack {...lane} />}
            <Lanes {...lane} open={open} height={isNarrow ? narrowLaneHeight : laneHeight} />
            <Seams
              ownerless={noOwnerWords(model)}
              scale={scale}
              view={view}
              left={left}
              plot={plot}
              isDead={isOpenFold}
              onUnfold={unfold}
            />
            {isReplay && (
              <i
                class="playhead"
                style={{ left: `${left + scale.x({ at: until, seq: view.seq })}px` }}
                aria-hidden="true"
              />
            )}
          </div>
        )}
      </div>
      <StepDetails
        model={model}
        view={view}
        step={step}
        first={steps.find((each) => each.kind === "model" && each.endSeq === step?.startSeq)}
        onClose={() => setStep(null)}
      />
    </div>
  );
}

/** Returns the chosen step in its state at the shown event. `null` if it has not started there. */
function shownStep(steps: readonly StepView[], chosen: string | null, seq: number): StepView | null {
  const known = steps.find((step) => keyOf(step) === chosen);
  return known === undefined ? null : stepAt(known, seq);
}

/**
 * Returns the key of a step for the address. The sequence number alone is not sufficient, because a fork starts
 * several steps again with the same event.
 */
function keyOf({ taskId, startSeq, kind, id }: StepView): string {
  return [taskId, startSeq, kind, ...(id === "" ? [] : [id])].join(".");
}

/** The lanes in view. The steps of the open lane count as part of it. */
function Lanes({
  open,
  height,
  ...lane
}: LaneProps & { readonly open: TaskId; readonly height: number }): JSX.Element {
  const { model, view } = lane;
  const order = useTreeOrder(view, rootId);
  const { ref, ...band } = useBand<HTMLDivElement>();
  const { first, end, above, below } = rowsIn(band, order.length, height);
  const shown = order.slice(first, end);
  const stepsOf = useSteps(model, shown);
  return (
    <div ref={ref} style={{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
      {shown.map((taskId) => {
        const task = view.tasks.get(taskId);
        return task === undefined ? null : (
          <Lane key={taskId} {...lane} task={task} steps={stepsOf(taskId)} isOpen={taskId === open} />
        );
      })}
    </div>
  );
}

interface LaneProps extends TrackProps {
  readonly isDead: boolean;
  /** The key of the chosen step. */
  readonly chosen: string | null;
  readonly onStep: (step: StepView | null) => void;
}

function Lane({
  task,
  steps,
  isOpen,
  ...lane
}: LaneProps & {
  readonly task: TaskView;
  readonly steps: readonly StepView[];
  readonly isOpen: boolean;
}): JSX.Element {
  const { model, view, scale, plot, until, chosen, isDead, onStep } = lane;
  const bars = barsOf(steps, scale, { at: until, seq: view.seq }, view);
  const topUps = model.trace.topUpsOf(task.taskId).filter(({ seq }) => seq <= view.seq);
  const lifeEnd = Math.max(task.endedAt ?? until, task.createdAt);
  return (
    <>
      <button
        class={`lane agent-lane depth-${Math.min(1, task.depth)} ${isDead && task.endedAt === null ? "ownerless" : ""}`}
        data-task={task.taskId}
        aria-expanded={isOpen}
        onClick={() => setQuery("task", isOpen ? "none" : task.taskId)}
      >
        <span class="lane-name" style={{ "--depth": Math.min(8, task.depth) }}>
          <Glyph look={lookOfTask(task)} status={task.status} />
          <Name text={task.agentId} />
        </span>
        <span class="plot">
          <svg width={plot} height={28} aria-hidden="true">
            <path class="life" d={`M${placeOf(scale, task.createdAt)} 13.500H${placeOf(scale, lifeEnd)}`} />
            {barPaths(bars).map(([kind, path]) => (
              <path key={kind} class={`bar ${kind}`} d={path} />
            ))}
          </svg>
          {scale.folds.map((fold) => (
            <Free
              key={fold.seq}
              fold={fold}
              count={fold.seq > view.seq ? 0 : model.steps.replayedAt(fold.seq, task.taskId)}
            />
          ))}
          <TopUps points={topUps} scale={scale} />
        </span>
        <span class="lane-money">{columnUsd(task.own.costUsd)}</span>
      </button>
      {isOpen &&
        bars
          .slice(-mostSteps)
          .map((bar) => (
            <StepLane
              key={`${bar.step.startSeq} ${bar.step.kind} ${bar.step.id}`}
              bar={bar}
              view={view}
              depth={task.depth}
              isSelected={keyOf(bar.step) === chosen}
              onStep={onStep}
            />
          ))}
    </>
  );
}

function StepLane({
  bar: { step, kind, pieces },
  view,
  depth,
  isSelected,
  onStep,
}: {
  readonly bar: Bar;
  readonly view: RunView;
  readonly depth: number;
  readonly isSelected: boolean;
  readonly onStep: (step: StepView | null) => void;
}): JSX.Element {
  const isCall =
    kind === "model" || kind === "free" || kind === "lost" || kind === "refused" || kind === "open";
  const name = stepName(step, view);
  return (
    <button
      class={`lane step-lane ${isSelected ? "selected" : ""}`}
      onClick={() => onStep(isSelected ? null : step)}
    >
      <span class="lane-name" style={{ "--depth": 1 + Math.min(8, depth) }}>
        <span class="cut" title={name}>
          {name}
        </span>
      </span>
      <span class="plot">
        {pieces.map(({ x, width }) => (
          <i key={x} class={`bar ${kind}`} style={{ left: `${x}px`, width: `${width}px` }} />
        ))}
      </span>
      <span class={`lane-money ${kind === "lost" || kind === "refused" ? "bad" : ""}`}>
        {!isCall ? "–" : kind === "lost" ? usd(step.costUsd) : stepResult(step, view)}
      </span>
    </button>
  );
}
