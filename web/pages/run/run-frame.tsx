import { visibleLine, type JsonValue } from "../../../src/kernel/index.ts";
import { ownCrashes } from "../../../src/surfaces/view/own-crashes.ts";
import { isUnanswered } from "../../../src/surfaces/view/question-log.ts";
import { runTime, startOfRun } from "../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { errorText } from "../../api/client.ts";
import { isOffline, shownEvent } from "../../api/connection.ts";
import { asking } from "../../api/runs-feed.ts";
import { useKeys } from "../../base/keys.ts";
import { now } from "../../base/now.ts";
import {
  go,
  objectPath,
  place,
  runPath,
  runTabs,
  sessionPath,
  setQuery,
  type RunTab,
} from "../../base/route.ts";
import { Steady } from "../../parts/steady.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { capUsd, clock, counted, grouped, oneLine, shortId, usd } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { Icon } from "../../parts/icon.tsx";
import { shownName } from "../../parts/name.tsx";
import { ScoreChips, Thumbs } from "../../parts/run-scores.tsx";
import { openCancel, openFork, openNewRun, openTopUp } from "../../parts/open-form.tsx";
import { BudgetMeter } from "../../parts/budget-meter.tsx";
import { useCurrentInView } from "../../base/use-current-in-view.ts";
import { endWord, hasEnded, lookOf, runWord, viewWord } from "../../model/status.ts";
import { runCancelWords } from "../../../src/surfaces/view/cancel-words.ts";
import { Dock } from "./dock/dock.tsx";
import { StopCard } from "./stop-card.tsx";
import { budgetUseOf, rootId, spentOf, toneOf } from "../../model/money.ts";
import { idleSince, workedMs } from "../../model/time/idle.ts";
import { hasNoOwner } from "../../model/owner.ts";
import { areOrdersOff, pause, resume } from "../../parts/orders.ts";
import { hasAgents, isGateway, isWorkflow, mayFork, type RunModel } from "../../model/run-model.ts";
import { raisable, useTopUp } from "../../model/top-up-left.ts";
import { inputText } from "../../model/words/input-text.ts";

/** The path of a view. The views that show one agent keep the chosen one. */
function tabPath(runId: string, tab: RunTab): string {
  const task = place.value.query.get("task");
  const isKept = task !== null && (tab === "chart" || tab === "conversation" || tab === "saw");
  return isKept ? runPath(runId, tab, encodeURIComponent(task)) : runPath(runId, tab);
}

interface FrameProps {
  readonly model: RunModel;
  readonly tab: RunTab;
  readonly children: ComponentChildren;
}

/** What all views of a run share: title, orders, the line of facts, tabs. */
export function RunFrame({ model, tab, children }: FrameProps): JSX.Element {
  const view = model.view.value;
  const seq = view?.seq ?? null;
  useLayoutEffect(() => {
    shownEvent.value = seq;
    return () => {
      shownEvent.value = null;
    };
  }, [seq]);
  useKeptPlayhead(model);
  const [problem, setProblem] = useState<string | null>(null);
  const order = (action: Promise<void>): void => {
    setProblem(null);
    action.catch((error: unknown) => setProblem(errorText(error)));
  };
  useKeys(
    Object.fromEntries(runTabs.map((each) => [String(tabKeys[each]), () => go(tabPath(model.runId, each))])),
  );
  // Before the first view there is no event to fork at.
  useKeys({
    f: () =>
      isOffline.value || !mayFork(model) ? false : openFork(model, model.playhead.value ?? model.lastSeq),
  });
  const tabs = useCurrentInView(`${tab} ${view === null}`);
  return (
    <main class="run" id="main">
      <header class="run-head">
        <nav class="crumbs" aria-label="Path">
          <a href="/runs">Runs</a>
          <span aria-hidden="true">/</span>
          <code>{model.runId}</code>
          <CopyButton text={model.runId} label="Copy the id of the run" />
        </nav>
        <div class="run-title">
          <h1 class="cut">{titleOf(model)}</h1>
          <Orders model={model} onOrder={order} />
        </div>
        {view === null ? <FirstFacts model={model} /> : <FactLine model={model} view={view} />}
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <nav class="tabs" ref={tabs} aria-label="Views of the run">
          {runTabs.map((each) => (
            <a key={each} href={tabPath(model.runId, each)} aria-current={each === tab ? "page" : undefined}>
              <Steady text={tabName(each, model)} />
              {view !== null && <TabCount tab={each} model={model} view={view} />}
            </a>
          ))}
        </nav>
      </header>
      {view !== null && hasStopCard(model, view) && (
        <StopCard model={model} view={view} isShort={isShortStop(tab)} onOrder={order} />
      )}
      {view === null ? <p class="loading">Reading the log of the run</p> : children}
      {model.live.value !== null && <Dock model={model} live={model.live.value} />}
    </main>
  );
}

/** Time without a move after which the playhead is written to the address. Browsers refuse many changes per second. */
const settleMs = 250;

/** Keeps the playhead in the address, so that a reload and a link show the run at the same event. */
function useKeptPlayhead(model: RunModel): void {
  const wanted = useRef(place.peek().query.get("at"));
  const isRead = model.live.value !== null;
  useEffect(() => {
    if (!isRead || wanted.current === null) return;
    const seq = Number(wanted.current);
    wanted.current = null;
    if (Number.isInteger(seq) && seq >= 0) void model.seek(seq);
  }, [model, isRead]);
  const at = model.playhead.value;
  // Another view of the run has another address.
  const path = place.value.parts.join("/");
  useEffect(() => {
    if (!isRead) return;
    const timer = setTimeout(() => {
      const text = model.playhead.peek() === null ? null : String(model.playhead.peek());
      if (place.peek().query.get("at") !== text) setQuery("at", text);
    }, settleMs);
    return () => clearTimeout(timer);
  }, [model, isRead, at, path]);
}

/** Whether the card below the tabs says how the run ended. The line of facts then does not say it too. */
function hasStopCard({ playhead }: RunModel, { status }: RunView): boolean {
  return playhead.value === null && hasEnded(status) && status !== "completed" && status !== "cancelled";
}

/** A run that stopped opens with what happened and where its money went. A chosen view has the room, except Money. */
function isShortStop(tab: RunTab): boolean {
  return place.value.parts[2] !== undefined && tab !== "money";
}

const tabNames: Readonly<Record<RunTab, string>> = {
  chart: "Org chart",
  timeline: "Timeline",
  conversation: "Conversation",
  saw: "What it saw",
  money: "Money",
  events: "Events",
  messages: "Messages",
};
function tabName(tab: RunTab, model: RunModel): string {
  if (tab !== "conversation") return tabNames[tab];
  return isWorkflow(model) ? "Steps" : isGateway(model) ? "Requests" : tabNames[tab];
}

const tabKeys: Readonly<Record<RunTab, number>> = {
  chart: 1,
  timeline: 2,
  conversation: 3,
  saw: 4,
  money: 5,
  events: 6,
  messages: 7,
};

function TabCount({
  tab,
  model,
  view,
}: {
  readonly tab: RunTab;
  readonly model: RunModel;
  readonly view: RunView;
}): JSX.Element | null {
  void model.version.value;
  const count = countsOf(view)[tab];
  return count === undefined || model.lastSeq < 0 ? null : <span class="count">{grouped(count)}</span>;
}

/** What the tabs count. That of the events is the number of the newest one, as in their list and under the playhead. */
function countsOf({ tasks, results, seq, messages }: RunView): Partial<Record<RunTab, number>> {
  return { chart: tasks.size, timeline: results, events: seq, messages };
}

/** The input of the run as a title. An input that is not a text follows the name of its workflow. */
function titleOf(model: RunModel): string {
  const { value: view } = model.live;
  const { value: summary } = model.summary;
  const name = summary?.agentId ?? view?.agentId ?? model.runId;
  if (isGateway(model)) return shownName(name);
  const input = view === null || isEmpty(view.input) ? null : view.input;
  if (input === null) return visibleLine(summary?.title ?? name);
  if (summary?.flow?.object !== undefined) return visibleLine(callTitle(name, input));
  const text = oneLine(inputText(input));
  return visibleLine(isWorkflow(model) && typeof input !== "string" ? `${name} ${text}` : text);
}

function isEmpty(input: JsonValue): boolean {
  return input === null || input === "" || (typeof input === "object" && Object.keys(input).length === 0);
}

/** A call of an object: its name, the handler and the input. The key is in the line of facts. */
function callTitle(name: string, input: JsonValue): string {
  const { handler, input: given = null } = input as Readonly<Record<string, JsonValue | undefined>>;
  const called = typeof handler === "string" ? handler : "call";
  return `${name}.${called} ${isEmpty(given) ? "" : oneLine(given, 400)}`.trimEnd();
}

function Orders({
  model,
  onOrder,
}: {
  readonly model: RunModel;
  readonly onOrder: (action: Promise<void>) => void;
}): JSX.Element | null {
  const view = model.live.value;
  const budget = view?.tasks.get(rootId)?.budget;
  const right = useTopUp(model.runId, { status: view?.status, budget });
  if (view === null) return null;
  const isOff = areOrdersOff(model);
  const isOver = hasEnded(view.status);
  const isPaused = view.status === "paused";
  const mayTopUp = raisable(budget, right).length > 0;
  return (
    <div class="orders">
      {mayTopUp && (!isOver || right.lacks !== null) && (
        <button class="button" disabled={isOff} onClick={() => openTopUp(model)}>
          Top up
        </button>
      )}
      {mayFork(model) && (
        <button
          class="button"
          disabled={isOffline.value}
          onClick={() => openFork(model, model.playhead.value ?? model.lastSeq)}
        >
          <Icon name="fork" /> Fork
        </button>
      )}
      {mayFork(model) && <Again model={model} view={view} />}
      {isOver && mayFork(model) && (
        <a class="button" href={`/schedules?from=${model.runId}`}>
          Schedule
        </a>
      )}
      {!isOver && (
        <button
          class="button"
          disabled={isOff}
          onClick={() => onOrder(isPaused ? resume(model) : pause(model))}
        >
          {isPaused ? "Resume" : "Pause"}
        </button>
      )}
      {!isOver && (
        <button class="button deny" disabled={isOff} onClick={() => openCancel(model)}>
          Cancel run
        </button>
      )}
    </div>
  );
}

/** Starts the task again: a workflow with its input in the form, other runs beside their variants. */
function Again({ model, view }: { readonly model: RunModel; readonly view: RunView }): JSX.Element {
  // A link opens in another tab, too. Without the server there is nothing that it could open.
  if (!isWorkflow(model) && !isOffline.value)
    return (
      <a class="button" href={`/again?run=${model.runId}`}>
        Run again
      </a>
    );
  const start = (): void => openNewRun({ agent: view.agentId, input: view.input });
  return (
    <button class="button" disabled={isOffline.value} onClick={start}>
      Run again
    </button>
  );
}

/** What the summary says until the events are read. */
function FirstFacts({ model }: { readonly model: RunModel }): JSX.Element | null {
  const summary = model.summary.value;
  return summary === null ? null : (
    <div class="facts-line">
      <span class={`status ${lookOf(summary.status)}`}>
        <Glyph look={lookOf(summary.status)} status={summary.status} />
        <span>{endWord(summary.status, null)}</span>
      </span>
    </div>
  );
}

const elsewhereWords =
  "The run has left files on this machine, and no worker there executes it. Start one there, or cancel the run.";

function FactLine({ model, view }: { readonly model: RunModel; readonly view: RunView }): JSX.Element {
  const root = view.tasks.get(rootId);
  const isReplay = model.playhead.value !== null;
  const summary = model.summary.value;
  const use = root === undefined ? null : budgetUseOf(root, model.held);
  const until = view.endedAt ?? (isReplay ? view.at : Math.max(now.value, view.at));
  const words = runCancelWords(view);
  // A cancel that comes too late does not change how the run ended.
  const cancelled = view.status === "cancelled" || !hasEnded(view.status) ? words : null;
  const isStopping = cancelled !== null && view.status !== "cancelled";
  const isAway =
    !isReplay &&
    summary?.endedAt === null &&
    summary.waitsFor.some((cause) => cause === "worker" || cause === "host");
  const isElsewhere = isAway && summary.waitsFor.includes("host");
  return (
    <div class="facts-line">
      {hasNoOwner(model, view) ? (
        <span class="status failed">
          <Glyph look="failed" />
          No worker owns it
        </span>
      ) : hasStopCard(model, view) ? null : isStopping ? (
        <span class="status cancelled">
          <Glyph look="cancelled" />
          <span>Cancelling</span>
          <span class="dim cut" title={cancelled}>
            {cancelled}
          </span>
        </span>
      ) : (
        <span class={`status ${lookOf(view.status, view.questions)}`}>
          <Glyph look={isAway ? "pending" : lookOf(view.status, view.questions)} status={view.status} />
          <span {...(isElsewhere && { title: elsewhereWords })}>
            {isAway && summary !== null ? runWord(summary, asking.value) : viewWord(view)}
          </span>
          {cancelled !== null && (
            <span class="dim cut" title={cancelled}>
              {cancelled}
            </span>
          )}
          {view.questions > 0 && <a href={`/inbox?run=${view.runId}`}>{questionWords(view)}</a>}
        </span>
      )}
      {isReplay && (
        <span>
          <span class="chip hold">Replay, as of {clock(runTime(view, view.at))}</span>
        </span>
      )}
      {summary?.flow?.object !== undefined && (
        <span class="key-of">
          <span class="dim">Key</span>
          <a
            class="cut"
            title="State of the key"
            href={objectPath(summary.flow.object.name, {
              key: summary.flow.object.key,
              tenantId: summary.tenantId,
            })}
          >
            {shownName(summary.flow.object.key)}
          </a>
        </span>
      )}
      {use !== null && (
        <span>
          <b>{root?.total.costUsd === null ? "unpriced" : usd(spentOf(use))}</b>
          {use.cap !== null && (
            <>
              <BudgetMeter values={use} {...(root !== undefined && { tone: toneOf(root) })} />
              <span class="dim">of {capUsd(use.cap)}</span>
            </>
          )}
        </span>
      )}
      {hasAgents(model) && !hasEnded(view.status) && (
        <span>
          <b>{grouped(view.seats)}</b>
          <span class="dim">{view.maxSeats === null ? "seats" : `of ${counted(view.maxSeats, "seat")}`}</span>
        </span>
      )}
      <span>
        {clock(until - startOfRun(view))}
        {restWords(view, until)}
      </span>
      <Crashes view={view} />
      <Owner view={view} />
      {hasAgents(model) && (
        <span class="wide-only">
          <a href={sessionPath(view.sessionId)}>Session</a>
        </span>
      )}
      {summary !== null && !isReplay && (
        <span class="scores">
          <ScoreChips scores={summary.scores} />
          {hasEnded(view.status) && <Thumbs run={summary} onScored={(run) => (model.summary.value = run)} />}
        </span>
      )}
      {view.forkedFrom !== null && (
        <span class="wide-only">
          <a href={runPath(view.forkedFrom.runId)}>Fork of {view.forkedFrom.runId}</a>
          <span class="dim">
            after event {grouped(view.forkedFrom.at)}, {usd(view.forkedFrom.inherited.costUsd)} not paid again
          </span>
          <a href={`/compare?a=${view.forkedFrom.runId}&b=${view.runId}`}>Compare</a>
        </span>
      )}
    </div>
  );
}

/** Describes which part of its time the run worked, if it waited for a minute or longer. */
function restWords(view: RunView, until: number): JSX.Element | null {
  const start = startOfRun(view);
  const worked = workedMs(view, start, until, idleSince(view));
  if (until - start - worked < 60_000) return null;
  return <span class="dim">{clock(worked)} at work</span>;
}

/** Describes how many questions wait. Questions about tool calls are called approvals. */
function questionWords(view: RunView): string {
  const open = [...view.asked].filter((question) => isUnanswered(question, view));
  return counted(
    view.questions,
    open.every(({ request }) => request.kind === "tool_call") ? "approval" : "question",
  );
}

/** Shows the epoch of the run, and its present owner. The log of a run that was never taken over contains neither. */
function Owner({ view: { recoveries, status } }: { readonly view: RunView }): JSX.Element | null {
  const last = recoveries.at(-1);
  if (last === undefined) return null;
  const isOwned = last.owner !== null && !hasEnded(status);
  return (
    <span class="wide-only dim" {...(isOwned && { title: visibleLine(last.owner ?? "") })}>
      epoch {last.epoch}
      {isOwned && `, ${visibleLine(shortId(last.owner ?? ""))}`}
    </span>
  );
}

function Crashes({ view }: { readonly view: RunView }): JSX.Element | null {
  const crashes = ownCrashes(view);
  if (crashes.length === 0) return null;
  const replayed = crashes.reduce((sum, each) => sum + each.replayed, 0);
  const saved = crashes.reduce((sum, each) => sum + each.savedUsd, 0);
  return (
    <span class="wide-only">
      <span class="bad">{counted(crashes.length, "crash", "crashes")} survived</span>
      {replayed > 0 && (
        <span class="dim">
          {counted(replayed, "step")} replayed free, {usd(saved)} not paid again
        </span>
      )}
    </span>
  );
}
