import { Fragment, type JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { errorText, get, post, RequestError } from "../../api/client.ts";
import { asking, changedRun } from "../../api/runs-feed.ts";
import type { Run, SessionTree } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { place, runPath, setQuery } from "../../base/route.ts";
import { capUsd, counted, timeOfDay, usd } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { shownName } from "../../parts/name.tsx";
import { Prose } from "../../parts/prose.tsx";
import { BudgetMeter } from "../../parts/budget-meter.tsx";
import { hasEnded, lookOfRun, runWord } from "../../model/status.ts";
import { ToolCall } from "../../parts/tool-call.tsx";
import { rootId } from "../../model/money.ts";
import { steer } from "../../parts/orders.ts";
import { RunModel } from "../../model/run-model.ts";
import { editsIn, threadOf, type CallEdit } from "../../model/thread.ts";
import { useConversation } from "../../model/use-events.ts";
import { ThreadView } from "../../parts/thread-view.tsx";
import { useStickToEnd } from "../../base/use-stick-to-end.ts";
import { figures, useFigures } from "../../model/run-figures.ts";
import { Composer } from "./composer.tsx";
import { EndedRun } from "./ended-run.tsx";
import { callingRuns, historyOf, interruptedWords, type HistoryItem } from "./history.ts";
import { inputOf, type Attached } from "../../model/attached.ts";
import { entryWords, sessionRows, type SessionRow } from "./session-rows.ts";

interface ChatBarProps {
  readonly name: string;
  /** Whether the tree is shown in place of the chat. */
  readonly isTree: boolean;
}

/** Names the session on a narrow screen, where its tree and its chat take turns. */
function ChatBar({ name, isTree }: ChatBarProps): JSX.Element {
  return (
    <div class="chat-bar">
      <a class="dim" href="/sessions">
        Sessions /
      </a>
      <h1 class="cut grow" title={name}>
        {name}
      </h1>
      <button class="button" onClick={() => setQuery("show", isTree ? null : "tree")}>
        {isTree ? "Chat" : "Entries"}
      </button>
    </div>
  );
}

/** One conversation: its tree, and the chat with its agent. */
export function SessionPage({ sessionId }: { readonly sessionId: string }): JSX.Element {
  const leaf = place.value.query.get("leaf");
  const isTree = place.value.query.get("show") === "tree";
  const changed = changedRun.value?.sessionId === sessionId ? changedRun.value : null;
  const edits = useRef<KnownEdits>(new Map());
  const { value, problem, again } = useRead(
    () => readSession(sessionId, leaf, edits.current),
    [sessionId, leaf, changed?.status, changed?.runId, changed?.endedAt],
  );
  if (value === null)
    return (
      <main class="page" id="main">
        <p class="dim">{problem ?? "Reading the conversation"}</p>
      </main>
    );
  const { session, tree, runs } = value;
  const { agentId } = session;
  const newest = runs[0];
  const rows = sessionRows(tree);
  const isWorking = newest?.endedAt === null;
  const spent = runs.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0);
  const branches = rows.filter(({ isBranch }) => isBranch).length;
  return (
    <main class={`session has-choice ${isTree ? "shows-tree" : ""}`} id="main">
      <ChatBar name={shownName(session.name ?? session.title ?? agentId)} isTree={isTree} />
      <div class="session-tree">
        <div class="session-head">
          <p class="row between crumbs">
            <a href="/sessions">Sessions</a>
            <a class="button small" href="/sessions?new=1">
              New session
            </a>
          </p>
          <h1 class="cut">{shownName(session.name ?? session.title ?? agentId)}</h1>
          <p class="dim">
            {entryWords(session.entries, rows.length)}, {counted(branches + 1, "branch", "branches")},{" "}
            {usd(spent)} over {counted(runs.length, "run")}
          </p>
        </div>
        {rows.map((row, at) => (
          <TreeLine
            key={row.entry.id}
            row={row}
            isFirst={at === 0}
            isContinued={isWorking && at === rows.length - 1}
            isChosen={row.entry.id === (leaf ?? session.leafId)}
            agentId={agentId}
          />
        ))}
        {isWorking && newest !== undefined && <WorkingLine run={newest} isFirst={rows.length === 0} />}
      </div>
      <Chat
        key={newest?.runId ?? "none"}
        sessionId={sessionId}
        agentId={agentId}
        items={value.items}
        runs={runs}
        unsent={leaf === null ? unsentRuns(runs, tree) : []}
        leaf={leaf}
        onChanged={again}
      />
    </main>
  );
}

/** The runs that ended without a word in the session, the oldest first: they failed before their message was stored. */
function unsentRuns(runs: readonly Run[], { nodes }: SessionTree): readonly Run[] {
  const written = new Set<string | null>(nodes.map(({ entry }) => entry.runId));
  return runs.filter((run) => hasFailed(run) && !written.has(run.runId)).toReversed();
}

/** Whether a run ended without completing. */
function hasFailed({ status }: Run): boolean {
  return hasEnded(status) && status !== "completed";
}

/** What people changed in the runs that have ended, which stays as it is. */
type KnownEdits = Map<string, readonly CallEdit[]>;

async function readSession(sessionId: string, leaf: string | null, known: KnownEdits) {
  const params = { sessionId };
  const [session, tree, { entries }, { runs }] = await Promise.all([
    get("/api/sessions/{sessionId}", { params }),
    get("/api/sessions/{sessionId}/tree", { params }),
    get("/api/sessions/{sessionId}/path", { params, query: leaf === null ? {} : { leafId: leaf } }),
    get("/api/runs", { query: { sessionId, limit: 50 } }),
  ]);
  const edits = await Promise.all([...callingRuns(entries)].map((runId) => readEdits(runId, runs, known)));
  return { session, tree, runs, items: historyOf(entries, edits.flat()) };
}

/** Reads what people changed in the calls of a run. A run that was removed has no such record. */
async function readEdits(
  runId: string,
  runs: readonly Run[],
  known: KnownEdits,
): Promise<readonly CallEdit[]> {
  const found = known.get(runId);
  if (found !== undefined) return found;
  try {
    const { events } = await get("/api/runs/{runId}/events", {
      params: { runId },
      query: {
        types: ["approval_request", "approval_decision"],
        taskId: rootId,
        limit: mostQuestions,
        last: true,
      },
    });
    const edits = editsIn(events);
    if (runs.some((run) => run.runId === runId && run.endedAt !== null)) known.set(runId, edits);
    return edits;
  } catch (error) {
    if (error instanceof RequestError && error.code === "not_found") return [];
    throw error;
  }
}

/** Number of questions and decisions of a run that are read. */
const mostQuestions = 1_000;

/** Continues at an entry. On a narrow screen the chat takes the place of the tree. */
function choose(entryId: string): void {
  setQuery("leaf", entryId);
  setQuery("show", null);
}

const railGap = 16;

/** Filled dots are people, rings are agents. */
function TreeLine({
  row,
  isFirst,
  isContinued,
  isChosen,
  agentId,
}: {
  readonly row: SessionRow;
  readonly isFirst: boolean;
  /** Whether the run at work follows, on the main line. */
  readonly isContinued: boolean;
  readonly isChosen: boolean;
  readonly agentId: string;
}): JSX.Element {
  const { entry, text, who, label, rail, isBranch, below } = row;
  const isTop = rail === 0 && isFirst;
  const x = 26 + Math.min(2, rail) * railGap;
  const rails = [...below].filter((each) => each !== rail).map((each) => 26 + Math.min(2, each) * railGap);
  return (
    <button class="tree-line" aria-current={isChosen} onClick={() => choose(entry.id)}>
      <svg viewBox="0 0 72 40" width="72" height="40" aria-hidden="true">
        {rails.map((at) => (
          <path key={at} class="rail" d={`M${at} 0V40`} />
        ))}
        {isBranch ? (
          <path class="rail branch" d={`M${x - railGap} 0c0 14 ${railGap} 6 ${railGap} 20`} />
        ) : (
          !isTop && <path class={`rail ${rail > 0 ? "branch" : ""}`} d={`M${x} 0V20`} />
        )}
        {isContinued && <path class="rail" d={rail === 0 ? "M26 20V40" : "M26 0V40"} />}
        {below.has(rail) && <path class={`rail ${rail > 0 ? "branch" : ""}`} d={`M${x} 20V40`} />}
        <circle
          class={`${who} ${isChosen ? "chosen" : ""}`}
          cx={x}
          cy="20"
          r={who === "person" ? 4.5 : 3.5}
        />
      </svg>
      <span class="tree-text">
        <span class="cut">{text}</span>
        <span class="sub">
          <span>{who === "person" ? "You" : who === "agent" ? agentId : "note"}</span>
          {label !== null && <span>{label}</span>}
        </span>
      </span>
      <span class="label">{timeOfDay(entry.at)}</span>
    </button>
  );
}

/** The run at work. What it writes joins the tree when it ends. */
function WorkingLine({ run, isFirst }: { readonly run: Run; readonly isFirst: boolean }): JSX.Element {
  return (
    <a class="tree-line" href={runPath(run.runId)}>
      <svg viewBox="0 0 72 40" width="72" height="40" aria-hidden="true">
        {!isFirst && <path class="rail" d="M26 0V20" />}
        <circle class="person" cx="26" cy="20" r="4.5" />
      </svg>
      <span class="tree-text">
        <span class="cut">{shownName(run.title ?? run.agentId)}</span>
        <span class="sub">
          <span>{runWord(run, asking.value)}</span>
        </span>
      </span>
      <span class="label">{timeOfDay(run.createdAt)}</span>
    </a>
  );
}

interface ChatProps {
  readonly sessionId: string;
  readonly agentId: string;
  readonly items: readonly HistoryItem[];
  readonly runs: readonly Run[];
  /** The runs that left no entry. */
  readonly unsent: readonly Run[];
  readonly leaf: string | null;
  readonly onChanged: () => void;
}

function Chat({ sessionId, agentId, items, runs, unsent, leaf, onChanged }: ChatProps): JSX.Element {
  const newest = runs[0];
  const live = useLiveRun(newest);
  const [problem, setProblem] = useState<string | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const view = live?.view.value ?? null;
  const text = live?.textOf(rootId);
  const thread = threadOf(useConversation(live, rootId), Infinity);
  const isBusy = live !== null && (view === null || !hasEnded(view.status));
  useStickToEnd(scroller, items.length + thread.length + (text?.text.length ?? 0));
  // What the live run wrote becomes entries when it is closed. Until then its own log shows it.
  const closed = items.filter(({ runId }) => live === null || runId !== live.runId);
  const sent = thread.flatMap((item) => (item.kind === "note" ? (item.text.split(" sent: ")[1] ?? []) : []));
  const read = thread.filter((item) => item.kind === "input" && item.from === "Steering").length;
  const waiting = sent.slice(read);
  const run = async (action: () => Promise<void>): Promise<boolean> => {
    setProblem(null);
    try {
      await action();
      return true;
    } catch (error) {
      setProblem(errorText(error));
      return false;
    }
  };
  const send = (words: string, attached: readonly Attached[]): Promise<boolean> =>
    run(async () => {
      if (isBusy && live !== null && attached.length === 0) return steer(live, words);
      if (leaf !== null)
        await post("/api/sessions/{sessionId}/move", { params: { sessionId }, body: { entryId: leaf } });
      await post("/api/runs", { body: { agent: agentId, input: inputOf(words, attached), sessionId } });
      setQuery("leaf", null);
      onChanged();
    });
  const stop = (): void =>
    void run(async () => {
      if (live !== null)
        await post("/api/runs/{runId}/cancel", {
          params: { runId: live.runId },
          body: { reason: "stopped in the chat" },
        });
    });
  return (
    <div class="chat">
      <div
        class="thread grow"
        ref={scroller}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Conversation"
      >
        {between(unsent, -Infinity, closed[0]?.at).map((each) => (
          <EndedRun key={each.runId} run={each} isUnsent onChanged={onChanged} />
        ))}
        {closed.map((item, at) => {
          const next = closed[at + 1];
          const own = next?.runId === item.runId ? undefined : runs.find(({ runId }) => runId === item.runId);
          return (
            <Fragment key={item.id}>
              <Entry item={item} agentId={agentId} run={own} />
              {own !== undefined && hasFailed(own) && (
                <EndedRun run={own} isUnsent={false} onChanged={onChanged} />
              )}
              {between(unsent, item.at, next?.at).map((each) => (
                <EndedRun key={each.runId} run={each} isUnsent onChanged={onChanged} />
              ))}
            </Fragment>
          );
        })}
        {live !== null && view !== null && (
          <>
            <ThreadView
              items={thread}
              view={view}
              model={live}
              agentId={agentId}
              taskId={rootId}
              live={text}
              time={timeOfDay}
            />
            {newest !== undefined && <RunCard run={newest} />}
          </>
        )}
      </div>
      <Composer agentId={agentId} onSend={send} isBusy={isBusy} {...(isBusy && { onStop: stop })}>
        {leaf !== null && (
          <p class="composer-note">
            <span class="chip hold">Another branch</span>
            <span class="mid">What you send continues after the chosen entry.</span>
            <button class="button small quiet" onClick={() => setQuery("leaf", null)}>
              Back to the newest
            </button>
          </p>
        )}
        {isBusy && waiting.length > 0 && (
          <p class="composer-note">
            <span class="chip hold">
              Steering, {waiting.length} {waiting.length === 1 ? "waits" : "wait"}
            </span>
            <span class="mid cut" title={waiting.join("\n")}>
              {waiting.map((words) => `“${words}”`).join(", ")}, read before the next turn
            </span>
          </p>
        )}
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
      </Composer>
    </div>
  );
}

/** The runs that were created after one entry and before the next. */
function between(runs: readonly Run[], from: number, until = Infinity): readonly Run[] {
  return runs.filter(({ createdAt }) => createdAt >= from && createdAt < until);
}

/** Follows the newest run of the session while it has not ended. */
function useLiveRun(newest: Run | undefined): RunModel | null {
  const isLive = newest !== undefined && newest.endedAt === null;
  const runId = isLive ? newest.runId : null;
  const model = useMemo(() => (runId === null ? null : new RunModel(runId)), [runId]);
  useEffect(() => model?.open(), [model]);
  return model;
}

function Entry({
  item,
  agentId,
  run,
}: {
  readonly item: HistoryItem;
  readonly agentId: string;
  readonly run: Run | undefined;
}): JSX.Element {
  switch (item.kind) {
    case "person":
      return (
        <div class="say">
          <div>
            <Prose text={item.text} />
          </div>
        </div>
      );
    case "note":
      return <p class="note">{item.text}</p>;
    case "agent":
      return (
        <article class="message">
          <span class="when">{timeOfDay(item.at)}</span>
          <div class="content">
            <p class="who">
              <b>{agentId}</b>
              {item.costUsd !== null && <span class="label">{usd(item.costUsd)}</span>}
            </p>
            {item.text !== "" && <Prose text={item.text} />}
            {item.interrupted !== null && <p class="note bad">{interruptedWords(item.interrupted)}</p>}
            {item.calls.map((call) => (
              <ToolCall key={call.callId} item={call} />
            ))}
            {run !== undefined && <RunCard run={run} />}
          </div>
        </article>
      );
  }
}

function RunCard({ run }: { readonly run: Run }): JSX.Element {
  useFigures([run]);
  const known = figures.value.get(run.runId);
  const cost = known === undefined || known.agents === 0 ? run.costUsd : known.costUsd;
  const lost = known?.lostUsd ?? 0;
  const cap = known?.maxCostUsd ?? null;
  const held = hasEnded(run.status) ? 0 : (known?.heldUsd ?? 0);
  const values = { own: Math.max(0, (cost ?? 0) - lost), team: 0, lost, held, cap };
  return (
    <a class="hired run-card" href={runPath(run.runId)}>
      <span class="row">
        <Glyph look={lookOfRun(run, asking.value)} status={run.status} />
        <b class="cut">{shownName(run.title ?? run.runId)}</b>
        <span class="label">{known === undefined ? "" : counted(known.agents, "agent")}</span>
      </span>
      <span class="row">
        {cap !== null && <BudgetMeter values={values} tone={hasEnded(run.status) ? "done" : "live"} />}
        <span class="run-spent">
          {usd(cost)}
          {cap !== null && ` of ${capUsd(cap)}`}
        </span>
      </span>
    </a>
  );
}
