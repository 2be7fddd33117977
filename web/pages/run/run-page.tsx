import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import type { RequestError } from "../../api/client.ts";
import { place, runTabs, type RunTab } from "../../base/route.ts";
import { Chart } from "./chart/chart.tsx";
import { Conversation } from "./conversation.tsx";
import { RunFrame } from "./run-frame.tsx";
import { rootId } from "../../model/money.ts";
import { isGateway, isWorkflow, RunModel } from "../../model/run-model.ts";
import { refusalWords } from "../../model/words/refusal-words.ts";

interface RunViewProps {
  readonly model: RunModel;
}

type TabView = (props: RunViewProps) => JSX.Element;
type FirstTab = "chart" | "conversation";
/** The views that replace the conversation in runs without one. */
type OwnView = "steps" | "requests";

/** The views with which a run opens. */
const views: Readonly<Record<FirstTab, TabView>> = {
  chart: Chart,
  conversation: Conversation,
};

/** The views of a run that are rarely shown first, and are loaded after the page has drawn its first view. */
export type LaterTabs = Readonly<Record<Exclude<RunTab, FirstTab> | OwnView, TabView>>;

/**
 * The views of the runs that were shown last. They are kept so that nothing disappears when the server does not
 * answer.
 */
const lastViews = new Map<string, RunView>();
const mostViews = 8;

function keepView({ runId, live }: RunModel): void {
  const view = live.peek();
  if (view === null) return;
  lastViews.delete(runId);
  lastViews.set(runId, view);
  const [oldest] = lastViews.keys();
  if (lastViews.size > mostViews && oldest !== undefined) lastViews.delete(oldest);
}

/** One run. It is followed for as long as one of its views is open. */
export function RunPage({
  runId,
  later,
}: {
  readonly runId: string;
  /** The other views of a run, or an element that is shown in their place until they are loaded. */
  readonly later: LaterTabs | JSX.Element;
}): JSX.Element {
  const model = useMemo(() => new RunModel(runId, lastViews.get(runId) ?? null), [runId]);
  useEffect(() => {
    const close = model.open();
    return () => {
      close();
      keepView(model);
    };
  }, [model]);
  const first = useFirstTab(model);
  const tab = runTabs.find((each) => each === place.value.parts[2]) ?? first;
  const tabs = "money" in later ? { ...views, ...later } : views;
  const isOfRoot = (place.value.query.get("task") ?? rootId) === rootId;
  const own = isWorkflow(model) ? "steps" : isGateway(model) ? "requests" : tab;
  const name = tab === "conversation" && isOfRoot ? own : tab;
  const View: TabView | undefined = (tabs as Partial<Record<RunTab | OwnView, TabView>>)[name];
  const refusal = model.refusal.value;
  if (refusal !== null && model.live.value === null) return <Refused runId={runId} refusal={refusal} />;
  return (
    <RunFrame model={model} tab={tab}>
      {View === undefined ? (later as JSX.Element) : <View model={model} />}
    </RunFrame>
  );
}

function Refused({
  runId,
  refusal,
}: {
  readonly runId: string;
  readonly refusal: RequestError;
}): JSX.Element {
  const { title, what, todo } = refusalWords(runId, refusal);
  return (
    <main class="empty" id="main">
      <h1>{title}</h1>
      <p class="prose">
        {what} {todo}
      </p>
      <p>
        <code>{refusal.code}</code>
      </p>
      <p class="actions">
        <a class="button primary" href="/runs">
          All runs
        </a>
        <a class="button" href={`/find?text=${encodeURIComponent(runId)}`}>
          Find {runId}
        </a>
      </p>
    </main>
  );
}

/**
 * Returns the tab that is shown first: the chart for a company, the conversation for a single agent. It is decided
 * only once, so that nothing jumps.
 */
function useFirstTab({ live }: RunModel): RunTab {
  const decided = useRef<RunTab | null>(null);
  const view = live.value;
  if (view !== null) decided.current ??= view.tasks.size > 1 ? "chart" : "conversation";
  return decided.current ?? "conversation";
}
