import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../app/keys.ts";
import { clock } from "../parts/format.ts";
import { Glyph } from "../parts/glyph.tsx";
import { Icon } from "../parts/icon.tsx";
import { hasEnded } from "../parts/status.ts";
import type { RunModel } from "./run-model.ts";

/** Number of frames of a whole playback, and the time between two of them. */
const frames = 240;
const frameMs = 80;

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
        <b>{shown}</b>
        <span class="wide-only dim"> of {last}</span>
      </span>
      <button class="live-button" aria-pressed={isLive} onClick={() => void model.seek(null)}>
        <Glyph look={hasEnded(live.status) ? "completed" : "running"} />
        {hasEnded(live.status) ? "End" : "Live"}
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
    else timer.current = setTimeout(() => void step(), frameMs);
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

const height = 32;

/** The events over time: their density, crashes in red, handovers of seats in violet, waiting in amber. */
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
  const { density } = trace;
  const duration = Math.max(1, trace.durationMs);
  const highest = Math.max(1, ...density);
  const x = (time: number): number =>
    (1_000 * Math.max(0, Math.min(duration, time - live.startedAt))) / duration;
  const barWidth = 1_000 / Math.max(1, density.length);
  const bars = density.map((count, index) => {
    if (count === 0) return "";
    const tall = 2 + (22 * Math.sqrt(count)) / Math.sqrt(highest);
    return `M${(index * barWidth).toFixed(1)} ${height}v${-tall}h${(barWidth * 0.75).toFixed(1)}v${tall}z`;
  });
  const shown = Math.round((x(at) * density.length) / 1_000);
  return (
    <div class="scrubber">
      <svg viewBox={`0 0 1000 ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {live.recoveries
          .filter(({ isCrash }) => isCrash)
          .map((crash) => (
            <rect
              key={crash.seq}
              class="crash"
              x={x(crash.lastAt)}
              y="0"
              width={Math.max(4, x(crash.at) - x(crash.lastAt))}
              height={height}
            />
          ))}
        <path class="density" d={bars.slice(0, shown + 1).join("")} />
        <path class="density later" d={bars.slice(shown + 1).join("")} />
        {trace.handovers.map((handover) => (
          <rect key={handover.seq} class="handover" x={x(handover.at)} y="0" width="2" height="8" />
        ))}
        {[...live.asked].map(({ request, askedAt, decidedAt }) => (
          <rect
            key={request.approvalId}
            class="waiting"
            x={x(askedAt)}
            y="0"
            width={Math.max(2, x(decidedAt ?? live.endedAt ?? live.at) - x(askedAt))}
            height="3"
          />
        ))}
      </svg>
      <input
        type="range"
        aria-label="Playhead"
        aria-valuetext={`event ${model.shownSeq}, ${clock(at - live.startedAt)}`}
        min={0}
        max={duration}
        step="any"
        value={Math.min(duration, at - live.startedAt)}
        onInput={(event) => void model.seek(seqAtTime(model, live, Number(event.currentTarget.value)))}
      />
    </div>
  );
}

/** The last event at or before a time after the start. */
function seqAtTime(model: RunModel, live: RunView, passedMs: number): number {
  const { log, trace } = model;
  if (passedMs >= live.at - live.startedAt) return model.lastSeq;
  const near = trace.seqAt(passedMs);
  if (near < log.first) return near;
  const wanted = live.startedAt + passedMs;
  let [low, high] = [log.first, log.last];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((log.at(middle)?.at ?? 0) <= wanted) low = middle;
    else high = middle - 1;
  }
  return low;
}
