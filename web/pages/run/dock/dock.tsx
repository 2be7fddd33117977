import { droppedAt } from "../../../../src/surfaces/view/question-log.ts";
import { runTime } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { isOffline } from "../../../api/connection.ts";
import { useKeys } from "../../../base/keys.ts";
import { now } from "../../../base/now.ts";
import { clock, grouped } from "../../../base/format.ts";
import { Glyph } from "../../../parts/glyph.tsx";
import { Icon } from "../../../parts/icon.tsx";
import { hasEnded, lookOf } from "../../../model/status.ts";
import { idleSince } from "../../../model/time/idle.ts";
import { densityPaths, dockEnd, placeOf } from "./dock-paths.ts";
import type { RunModel } from "../../../model/run-model.ts";
import { timeScale, type TimeScale } from "../../../model/time/time-scale.ts";

/** Number of frames of a whole playback, and the time between two of them. Of a short run, each event stays longer. */
const frames = 240;
const frameMs = 80;
const longestFrameMs = 400;
const shortestPlaybackMs = 10_000;

/** The playhead of a run: it redraws every view of it. */
export function Dock({ model, live }: { readonly model: RunModel; readonly live: RunView }): JSX.Element {
  const { isPlaying, play } = usePlayback(model);
  const last = model.lastSeq;
  const shown = model.shownSeq;
  const isLive = model.playhead.value === null;
  const seek = (seq: number): void => void model.seek(seq);
  useKeys({
    " ": (event) => (event.target instanceof HTMLButtonElement ? false : play()),
    l: () => void model.seek(null),
    ArrowLeft: (event) => (isTree(event) ? false : seek(shown - 1)),
    ArrowRight: (event) => (isTree(event) ? false : seek(shown + 1)),
    "Shift+ArrowLeft": () => void model.step(-1),
    "Shift+ArrowRight": () => void model.step(1),
  });
  const view = model.view.value ?? live;
  return (
    <footer class="dock">
      <button class="icon-button" aria-label={isPlaying ? "Stop" : "Play from here"} onClick={play}>
        <Icon name={isPlaying ? "pause" : "play"} />
      </button>
      <Scrubber model={model} live={live} at={view.at} />
      <span class="position">
        <span class="wide-only">event </span>
        <b>{grouped(Math.max(0, shown))}</b>
        <span class="wide-only dim"> of {grouped(Math.max(0, last))}</span>
      </span>
      <button class="live-button" aria-pressed={isLive} onClick={() => void model.seek(null)}>
        <Glyph
          look={hasEnded(live.status) ? lookOf(live.status) : isOffline.value ? "pending" : "running"}
          status={live.status}
        />
        {hasEnded(live.status) ? "End" : isOffline.value ? "Newest" : "Live"}
      </button>
    </footer>
  );
}

/** In the chart, the arrows move between agents. */
function isTree({ target }: KeyboardEvent): boolean {
  return target instanceof Element && target.closest("[role=tree]") !== null;
}

function usePlayback(model: RunModel): { readonly isPlaying: boolean; readonly play: () => void } {
  const [isPlaying, setPlaying] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const stop = (): void => {
    clearTimeout(timer.current);
    setPlaying(false);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const step = async (): Promise<void> => {
    const next = model.shownSeq + Math.max(1, Math.round(model.lastSeq / frames));
    await model.seek(next);
    if (model.playhead.peek() === null) stop();
    else timer.current = setTimeout(() => void step(), msOfFrame(model.lastSeq));
  };
  const begin = async (): Promise<void> => {
    if (model.playhead.peek() === null) await model.seek(0);
    await step();
  };
  const play = (): void => {
    if (isPlaying) {
      stop();
      return;
    }
    setPlaying(true);
    void begin();
  };
  return { isPlaying, play };
}

function msOfFrame(events: number): number {
  return Math.min(longestFrameMs, Math.max(frameMs, shortestPlaybackMs / Math.max(1, events)));
}

const height = 32;
/** Width of the drawing in its own units, and the share of it that a crash or a wait takes. */
const whole = 1_000;
const foldShare = 0.02;

/** The events over time: their density, crashes in red, folded waits in grey, handovers of seats in violet, waiting in amber. */
function Scrubber({
  model,
  live,
  at,
}: {
  readonly model: RunModel;
  readonly live: RunView;
  readonly at: number;
}): JSX.Element {
  void model.version.value;
  const { trace } = model;
  const until = dockEnd(live, now.value);
  const scale = timeScale(live, until, whole, foldShare, { waitsSince: idleSince(live) });
  const x = (time: number, seq = Infinity): number => scale.x({ at: time, seq });
  const { shown, later } = densityPaths(trace, scale, model.shownSeq);
  return (
    <div class="scrubber">
      <svg viewBox={`0 0 1000 ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {scale.folds.map((fold) => (
          <rect
            key={fold.seq}
            class={fold.kind === "wait" ? "folded" : "crash"}
            x={fold.x}
            y="0"
            width={fold.width}
            height={height}
          />
        ))}
        <path class="density" d={shown} />
        <path class="density later" d={later} />
        {trace.handovers.map((handover) => (
          <rect
            key={handover.seq}
            class="handover"
            x={x(handover.at, handover.seq)}
            y="0"
            width="2"
            height="8"
          />
        ))}
        {[...live.asked].map((question) => (
          <rect
            key={question.request.approvalId}
            class="waiting"
            x={placeOf(scale, question.askedAt)}
            y="0"
            width={Math.max(
              2,
              placeOf(scale, question.decidedAt ?? droppedAt(question, live) ?? live.endedAt ?? until) -
                placeOf(scale, question.askedAt),
            )}
            height="3"
          />
        ))}
      </svg>
      <input
        type="range"
        aria-label="Playhead"
        aria-valuetext={`event ${grouped(Math.max(0, model.shownSeq))}, ${clock(runTime(live, at))}`}
        min={0}
        max={whole}
        step="any"
        value={model.shownSeq >= model.lastSeq ? whole : x(at, model.shownSeq)}
        onInput={(event) => void model.seek(seqAtPlace(model, scale, Number(event.currentTarget.value)))}
      />
    </div>
  );
}

/** The last event at or before a place of the dock. */
function seqAtPlace(model: RunModel, scale: TimeScale, place: number): number {
  if (place <= 0) return 0;
  if (place >= scale.width) return model.lastSeq;
  const { log, trace } = model;
  const wanted = scale.timeAt(place);
  const near = trace.seqAt(wanted);
  if (near < log.first) return near;
  let [low, high] = [log.first, log.last];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((log.at(middle)?.at ?? 0) <= wanted) low = middle;
    else high = middle - 1;
  }
  return low;
}
