import type { TaskId } from "../../../../src/kernel/index.ts";
import { runTime } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView, TaskView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { isPlaceKept } from "../../../base/keep-place.ts";
import { useKeys } from "../../../base/keys.ts";
import { place, runPath, setQuery } from "../../../base/route.ts";
import { clock, counted, grouped } from "../../../base/format.ts";
import { eventWords } from "../../../model/words/event-words.ts";
import { rootId } from "../../../model/money.ts";
import { hasNoOwner, noOwnerWords } from "../../../model/owner.ts";
import { hasAgents, type RunModel } from "../../../model/run-model.ts";
import { Cards } from "./cards.tsx";
import { Inspector } from "./inspector.tsx";
import { Rows } from "./rows.tsx";
import { Seats } from "./seats.tsx";

const zooms = ["cards", "rows", "seats"] as const;
type Zoom = (typeof zooms)[number];
const zoomNames: Readonly<Record<Zoom, string>> = { cards: "Cards", rows: "Rows", seats: "Seats" };

/** The company: who hired whom, who may spend what, who has a seat. */
export function Chart({ model }: { readonly model: RunModel }): JSX.Element {
  const view = model.view.value;
  const { query } = place.value;
  const zoom = zoomOf(view, query.get("zoom"));
  const next = zooms[(zooms.indexOf(zoom) + 1) % zooms.length] ?? "cards";
  useKeys({ z: () => setQuery("zoom", next), ArrowUp: enterChart, ArrowDown: enterChart });
  const wanted = query.get("task") as TaskId | null;
  useScrollTo(wanted, zoom);
  const focus = (query.get("root") as TaskId | null) ?? rootId;
  const root = view?.tasks.get(focus) ?? view?.tasks.get(rootId);
  if (view === null || root === undefined) return <></>;
  const selected = wanted !== null && view.tasks.get(wanted) !== undefined ? wanted : root.taskId;
  const isDead = hasNoOwner(model, view);
  // Squares cannot be chosen. Teams have the whole width unless an agent was chosen before.
  const hasInspector = zoom !== "seats" || wanted !== null;
  const level = { model, view, root, selected, isDead, select: (taskId: TaskId) => setQuery("task", taskId) };
  return (
    <div class={hasInspector ? "with-inspector" : "with-inspector alone"}>
      <div class="canvas chart">
        <div class="chart-tools">
          <div class="segments" role="group" aria-label="Zoom">
            {zooms.map((each) => (
              <button key={each} aria-pressed={each === zoom} onClick={() => setQuery("zoom", each)}>
                {zoomNames[each]}
              </button>
            ))}
          </div>
          {hasAgents(model) && <SeatCount view={view} isDead={isDead} />}
          <Ticker model={model} view={view} isDead={isDead} />
        </div>
        {root.taskId !== rootId && <Crumbs model={model} view={view} root={root} />}
        {zoom === "cards" ? (
          <Cards {...level} />
        ) : zoom === "rows" ? (
          <Rows {...level} />
        ) : (
          <Seats {...level} />
        )}
      </div>
      {hasInspector && <Inspector model={model} view={view} taskId={wanted ?? selected} isDead={isDead} />}
    </div>
  );
}

/** Before the chart has the focus, up and down start at the chosen agent. */
function enterChart({ target, key }: KeyboardEvent): boolean {
  if (target instanceof HTMLInputElement) return false;
  const chosen = document.querySelector<HTMLElement>(
    "[role=treeitem][aria-selected=true], .selected .agent-cell",
  );
  if (chosen === null || chosen.contains(document.activeElement)) return false;
  chosen.focus();
  return chosen.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })) || true;
}

/** Scrolls to the chosen agent. After a reload the page stays where it was. */
function useScrollTo(wanted: TaskId | null, zoom: Zoom): void {
  const isKept = useRef(isPlaceKept());
  useEffect(() => {
    const element = wanted === null ? null : document.querySelector(`[data-task="${wanted}"]`);
    // What has the focus was scrolled to when it got it. The person may have scrolled on since.
    const isFocused = element?.contains(document.activeElement) === true;
    if (!isKept.current && !isFocused) element?.scrollIntoView({ block: "nearest", inline: "nearest" });
    isKept.current = false;
  }, [wanted, zoom]);
}

const mostCards = 60;
const mostRows = 400;

function zoomOf(view: RunView | null, chosen: string | null): Zoom {
  const known = zooms.find((each) => each === chosen);
  if (known !== undefined) return known;
  const agents = view?.tasks.size ?? 0;
  return agents <= mostCards ? "cards" : agents <= mostRows ? "rows" : "seats";
}

const mostSeats = 40;

function SeatCount({ view, isDead }: { readonly view: RunView; readonly isDead: boolean }): JSX.Element {
  const { seats, maxSeats } = view;
  const shown = Math.min(mostSeats, maxSeats ?? seats);
  const held = view.status === "paused" ? "paused" : "";
  let [waits, paused, pending] = [0, 0, 0];
  for (const task of view.tasks) {
    if (task.hasSeat && task.questions > 0) waits++;
    if ((task.status === "paused" || task.status === "pausing") && task.endedAt === null) paused++;
    if (task.status === "pending") pending++;
  }
  // No task of a run that has ended holds a seat.
  if (view.endedAt !== null) return <></>;
  return (
    <>
      <span
        class={`seats ${isDead ? "dead" : ""}`}
        role="img"
        aria-label={`${grouped(seats)} of ${maxSeats === null ? "any number of" : grouped(maxSeats)} seats are taken`}
      >
        {shown <= 24 &&
          Array.from({ length: shown }, (_each, at) => (
            <i key={at} class={at >= seats ? "vacant" : at < seats - waits ? held : "waits"} />
          ))}
        <span>
          {grouped(seats)} {maxSeats === null ? "seats" : `of ${counted(maxSeats, "seat")}`}
        </span>
      </span>
      {paused + pending > 0 && (
        <span class="dim wide-only">
          {grouped(paused)} paused, {grouped(pending)} {pending === 1 ? "waits" : "wait"} for a seat
        </span>
      )}
    </>
  );
}

/** The newest event in words. */
function Ticker({
  model,
  view,
  isDead,
}: {
  readonly model: RunModel;
  readonly view: RunView;
  readonly isDead: boolean;
}): JSX.Element | null {
  if (isDead) return <p class="ticker bad cut">{noOwnerWords(model)}</p>;
  const event = model.log.at(view.seq);
  if (event === undefined) return null;
  return (
    <p class="ticker cut">
      <span class="dim">{clock(runTime(view, event.at))}</span> <b>{event.agentId}</b>{" "}
      {eventWords(event, view)}
    </p>
  );
}

function Crumbs({
  model,
  view,
  root,
}: {
  readonly model: RunModel;
  readonly view: RunView;
  readonly root: TaskView;
}): JSX.Element {
  const above: TaskView[] = [];
  for (let task = parentOf(root, view); task !== undefined; task = parentOf(task, view)) above.unshift(task);
  return (
    <nav class="crumbs chart-crumbs" aria-label="Managers">
      {above.map((task) => (
        <>
          <a href={`${runPath(model.runId, "chart")}?root=${task.taskId}`}>{task.agentId}</a>
          <span aria-hidden="true">/</span>
        </>
      ))}
      <span>{root.agentId}</span>
    </nav>
  );
}

function parentOf({ parentId }: TaskView, view: RunView): TaskView | undefined {
  return parentId === null ? undefined : view.tasks.get(parentId);
}
