import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { errorText, get, post } from "../api/client.ts";
import { changedRun } from "../api/runs-feed.ts";
import type { Run } from "../api/types.ts";
import { useRead } from "../api/use-read.ts";
import { place, runPath, setQuery } from "../app/route.ts";
import { counted, timeOfDay, usd } from "../parts/format.ts";
import { Glyph } from "../parts/glyph.tsx";
import { Prose } from "../parts/prose.tsx";
import { hasEnded, lookOfRun } from "../parts/status.ts";
import { ToolCall } from "../parts/tool-call.tsx";
import { rootId } from "../run/money.ts";
import { steer } from "../run/orders.tsx";
import { RunModel } from "../run/run-model.ts";
import { threadOf } from "../run/thread.ts";
import { ThreadView } from "../run/thread-view.tsx";
import { useStickToEnd } from "../run/use-stick-to-end.ts";
import { Composer, type Attached } from "./composer.tsx";
import { historyOf, type HistoryItem } from "./history.ts";
import { inputOf } from "./input-of.ts";
import { sessionRows, type SessionRow } from "./session-rows.ts";

/** One conversation: its tree, and the chat with its agent. */
export function SessionPage({ sessionId }: { readonly sessionId: string }): JSX.Element {
  const leaf = place.value.query.get("leaf");
  const changed = changedRun.value?.sessionId === sessionId ? changedRun.value : null;
  const { value, problem, again } = useRead(
    () => readSession(sessionId, leaf),
    [sessionId, leaf, changed?.status, changed?.runId, changed?.endedAt],
  );
  if (value === null)
    return (
      <main class="page" id="main">
        <p class="dim">{problem ?? "Reading the conversation"}</p>
      </main>
    );
  const { session, tree, entries, runs } = value;
  const newest = runs[0];
  const rows = sessionRows(tree);
  const spent = runs.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0);
  const branches = rows.filter(({ isBranch }) => isBranch).length;
  return (
    <main class="session has-choice" id="main">
      <div class="session-tree">
        <div class="session-head">
          <p class="crumbs">
            <a href="/sessions">Sessions</a>
          </p>
          <h1 class="cut">{session.name ?? session.title ?? session.agentId}</h1>
          <p class="dim">
            {counted(session.entries, "entry", "entries")}, {counted(branches + 1, "branch", "branches")},{" "}
            {usd(spent)} over {counted(runs.length, "run")}
          </p>
        </div>
        {rows.map((row) => (
          <TreeLine
            key={row.entry.id}
            row={row}
            isChosen={row.entry.id === (leaf ?? session.leafId)}
            agentId={session.agentId}
          />
        ))}
      </div>
      <Chat
        key={newest?.runId ?? "none"}
        sessionId={sessionId}
        agentId={session.agentId}
        items={historyOf(entries)}
        runs={runs}
        leaf={leaf}
        onChanged={again}
      />
    </main>
  );
}

async function readSession(sessionId: string, leaf: string | null) {
  const params = { sessionId };
  const [session, tree, { entries }, { runs }] = await Promise.all([
    get("/api/sessions/{sessionId}", { params }),
    get("/api/sessions/{sessionId}/tree", { params }),
    get("/api/sessions/{sessionId}/path", { params, query: leaf === null ? {} : { leafId: leaf } }),
    get("/api/runs", { query: { sessionId, limit: 50 } }),
  ]);
  return { session, tree, entries, runs };
}

const railGap = 16;

/** Filled dots are people, rings are agents. */
function TreeLine({
  row,
  isChosen,
  agentId,
}: {
  readonly row: SessionRow;
  readonly isChosen: boolean;
  readonly agentId: string;
}): JSX.Element {
  const { entry, text, who, label, rail, isBranch, below } = row;
  const x = 26 + Math.min(2, rail) * railGap;
  const rails = [...below].filter((each) => each !== rail).map((each) => 26 + Math.min(2, each) * railGap);
  return (
    <button class="tree-line" aria-current={isChosen} onClick={() => setQuery("leaf", entry.id)}>
      <svg viewBox="0 0 72 40" width="72" height="40" aria-hidden="true">
        {rails.map((at) => (
          <path key={at} class="rail" d={`M${at} 0V40`} />
        ))}
        {isBranch ? (
          <path class="rail branch" d={`M${x - railGap} 0c0 14 ${railGap} 6 ${railGap} 20`} />
        ) : (
          <path class="rail" d={`M${x} 0V20`} />
        )}
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

interface ChatProps {
  readonly sessionId: string;
  readonly agentId: string;
  readonly items: readonly HistoryItem[];
  readonly runs: readonly Run[];
  readonly leaf: string | null;
  readonly onChanged: () => void;
}

function Chat({ sessionId, agentId, items, runs, leaf, onChanged }: ChatProps): JSX.Element {
  const newest = runs[0];
  const live = useLiveRun(newest);
  const [problem, setProblem] = useState<string | null>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const view = live?.view.value ?? null;
  const text = live?.texts.of(rootId);
  const thread = live === null ? [] : threadOf(live.log.ofTask(rootId), Infinity);
  void live?.version.value;
  const isBusy = live !== null && (view === null || !hasEnded(view.status));
  useStickToEnd(scroller, items.length + thread.length + (text?.text.length ?? 0));
  // What the live run wrote becomes entries when it is closed. Until then its own log shows it.
  const closed = items.filter(({ runId }) => live === null || runId !== live.runId);
  const waiting = thread.filter((item) => item.kind === "note" && item.text.includes(" sent: ")).length;
  const read = thread.filter((item) => item.kind === "input" && item.from === "Steering").length;
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
        {closed.map((item, at) => (
          <Entry
            key={item.id}
            item={item}
            agentId={agentId}
            run={
              closed[at + 1]?.runId === item.runId
                ? undefined
                : runs.find(({ runId }) => runId === item.runId)
            }
          />
        ))}
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
            {view.tasks.size > 1 && (
              <RunCard
                run={newest}
                agents={view.tasks.size}
                costUsd={view.tasks.get(rootId)?.total.costUsd ?? null}
              />
            )}
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
        {isBusy && waiting > read && (
          <p class="composer-note">
            <span class="chip hold">
              Steering, {waiting - read} {waiting - read === 1 ? "waits" : "wait"}
            </span>
            <span class="mid">{agentId} reads it before its next turn.</span>
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
            {item.calls.map((call) => (
              <ToolCall key={call.callId} item={call} />
            ))}
            {run !== undefined && <RunCard run={run} costUsd={run.costUsd} />}
          </div>
        </article>
      );
  }
}

function RunCard({
  run,
  agents,
  costUsd,
}: {
  readonly run: Run | undefined;
  readonly agents?: number;
  readonly costUsd: number | null;
}): JSX.Element | null {
  return run === undefined ? null : (
    <a class="hired run-card" href={runPath(run.runId)}>
      <Glyph look={lookOfRun(run)} />
      <b class="cut">{run.title ?? run.runId}</b>
      <span class="label">
        {agents === undefined ? counted(run.turns, "turn") : counted(agents, "agent")}, {usd(costUsd)}
      </span>
    </a>
  );
}
