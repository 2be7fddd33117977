import { visibleLine } from "../../../src/kernel/index.ts";
import { crashLoopHeadline, crashLoopLines } from "../../../src/surfaces/view/crash-loop-words.ts";
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { errorText, get, post } from "../../api/client.ts";
import { isOffline } from "../../api/connection.ts";
import type { Approval, Run } from "../../api/types.ts";
import { titles } from "../../api/runs-feed.ts";
import { useRead } from "../../api/use-read.ts";
import { runPath } from "../../base/route.ts";
import { topUp } from "../../parts/orders.ts";
import { endWord } from "../../model/status.ts";
import { ApprovalCard } from "../../parts/approval-card.tsx";
import { DeadLetterCard } from "../../parts/dead-letter-card.tsx";
import { counted, usd } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { ToolCall } from "../../parts/tool-call.tsx";
import { failureWords } from "../../model/words/failure-words.ts";
import { threadOf, type ToolItem } from "../../model/thread.ts";
import { figures, useFigures } from "../../model/run-figures.ts";
import { topUpWords, useTopUp } from "../../model/top-up-left.ts";
import { amountWords } from "../../../src/surfaces/view/top-up-offer.ts";
import type { InboxItem } from "../../model/inbox-items.ts";

/** One thing that waits, with what to do about it. */
export function InboxDetail({
  item,
  isOver = false,
  onChanged,
}: {
  readonly item: InboxItem;
  /** Whether it was answered. It shrinks to what happened. */
  readonly isOver?: boolean;
  readonly onChanged: () => void;
}): JSX.Element {
  switch (item.kind) {
    case "question":
      return <Asked approval={item.approval} isOver={isOver} />;
    case "stopped":
      return <Stopped run={item.run} onChanged={onChanged} />;
    case "looping":
      return <Looping run={item.run} onChanged={onChanged} />;
    case "letter":
      return (
        <Detail runId={item.letter.runId ?? null} names={[item.letter.message.to]}>
          <DeadLetterCard letter={item.letter} onSent={onChanged} />
        </Detail>
      );
  }
}

interface DetailProps {
  readonly runId: string | null;
  readonly task?: string;
  readonly names: readonly string[];
  readonly children: ComponentChildren;
}

function Detail({ runId, task, names, children }: DetailProps): JSX.Element {
  const [first, ...rest] = names.map(visibleLine);
  return (
    <div class="inbox-entry">
      <nav class="crumbs" aria-label="Path">
        <a class="narrow-only" href="/inbox">
          Inbox /
        </a>
        {runId === null ? (
          <span>{first}</span>
        ) : (
          <a href={runPath(runId, task === undefined ? undefined : "conversation", task)}>{first}</a>
        )}
        {rest.map((name) => (
          <span key={name}>/ {name}</span>
        ))}
      </nav>
      {children}
    </div>
  );
}

function Asked({ approval, isOver }: { readonly approval: Approval; readonly isOver: boolean }): JSX.Element {
  const { runId, agentId, requestedAt, rootAgentId, taskId } = approval;
  const question = {
    runId,
    agentId,
    askedAt: requestedAt,
    request: approval,
    decision: null,
    decidedAt: null,
  };
  const { value } = useRead(() => callsBefore(approval), [approval.approvalId]);
  const names = [titles.value.get(runId) ?? rootAgentId, agentId];
  return (
    <Detail runId={runId} task={taskId} names={names}>
      <ApprovalCard question={question} hasKeys={!isOver} />
      {!isOver && value !== null && value.length > 0 && (
        <section class="before">
          <h2>What {agentId} did before it asked</h2>
          {value.map((call) => (
            <ToolCall key={call.seq} item={call} />
          ))}
        </section>
      )}
    </Detail>
  );
}

const mostCalls = 3;
/** Number of events that contain the last calls, also of a turn that made many at once. */
const mostEvents = 500;

/** The last calls of the task that asks, without the one that asks, with what people changed. */
async function callsBefore({ runId, taskId, callId }: Approval): Promise<readonly ToolItem[]> {
  const types = ["tool_execution_start", "tool_execution_end", "approval_request", "approval_decision"];
  const { events } = await get("/api/runs/{runId}/events", {
    params: { runId },
    query: { types, taskId, limit: mostEvents, last: true },
  });
  return threadOf(events, Infinity)
    .filter((item): item is ToolItem => item.kind === "tool" && item.callId !== callId)
    .slice(-mostCalls);
}

function Stopped({ run, onChanged }: { readonly run: Run; readonly onChanged: () => void }): JSX.Element {
  const [state, setState] = useState<string | null>(null);
  useFigures([run]);
  const figure = figures.value.get(run.runId);
  const failure = figure?.failure ?? null;
  const right = useTopUp(run.runId, { status: run.status, budget: figure });
  const { lacks } = right;
  const who = lacks === null ? "" : topUpWords(lacks.name, right);
  const stopWords = endWord(run.status, failure);
  const add = async ({ name, amount, taskId }: NonNullable<typeof lacks>): Promise<void> => {
    try {
      await topUp(run, { [name]: amount }, taskId);
      setState("Topped up. The run continues.");
      onChanged();
    } catch (error) {
      setState(errorText(error));
    }
  };
  return (
    <Detail runId={run.runId} names={[run.title ?? run.agentId]}>
      <section class="fault letter" aria-label={stopWords}>
        <header>
          <Glyph look="failed" status={run.status} />
          {stopWords}
          <code>{run.status}</code>
        </header>
        <div class="letter-body">
          <p class="lead">
            {run.agentId} {spentWords(run)}{" "}
            {failure === null ? "It stopped before the next call." : failureWords(failure)}
          </p>
          <p class="mid">
            What is recorded is kept. A top-up continues from there and pays for none of it again.
          </p>
          {who !== "" && <p class="mid">{who}</p>}
          {state !== null && <p role="status">{state}</p>}
          <div class="actions">
            {lacks !== null && lacks.amount > 0 && (
              <button class="button primary" disabled={isOffline.value} onClick={() => void add(lacks)}>
                Top up {amountWords(lacks.name, lacks.amount)} and continue
              </button>
            )}
            <a class="button" href={runPath(run.runId)}>
              Open the run
            </a>
          </div>
        </div>
      </section>
    </Detail>
  );
}

/** What a run has spent. Calls without an answer are no turns. */
function spentWords({ costUsd, turns }: Run): string {
  if (turns > 0) return `spent ${usd(costUsd)} in ${counted(turns, "turn")}.`;
  return costUsd === 0 ? "spent nothing." : `spent ${usd(costUsd)} and got no answer.`;
}

/** A run that is paused as a crash loop, with what is known about its processes and what is not. */
function Looping({ run, onChanged }: { readonly run: Run; readonly onChanged: () => void }): JSX.Element {
  const { runId } = run;
  const [state, setState] = useState<string | null>(null);
  const { value } = useRead(() => get("/api/runs/{runId}/tasks", { params: { runId } }), [runId]);
  const crashLoop = value?.crashLoop ?? null;
  const resume = async (): Promise<void> => {
    try {
      await post("/api/runs/{runId}/resume", { params: { runId } });
      setState("Resumed. The run continues where it stood.");
      onChanged();
    } catch (error) {
      setState(errorText(error));
    }
  };
  return (
    <Detail runId={runId} names={[run.title ?? run.agentId]}>
      <section class="fault letter" aria-label="Paused as a crash loop">
        <header>
          <Glyph look="paused" />
          Paused as a crash loop
          <code>crash_loop</code>
        </header>
        <div class="letter-body">
          {crashLoop !== null && (
            <>
              <p class="lead">{crashLoopHeadline(crashLoop)}.</p>
              {crashLoopLines(crashLoop).map((line) => (
                <p class="mid" key={line}>
                  {line}
                </p>
              ))}
            </>
          )}
          <p class="mid">
            No task has ended. Correct the tool or the code that ends the process, then let the run continue.
          </p>
          {state !== null && <p role="status">{state}</p>}
          <div class="actions">
            <button class="button primary" disabled={isOffline.value} onClick={() => void resume()}>
              Continue where it stood
            </button>
            <a class="button" href={runPath(runId)}>
              Open the run
            </a>
          </div>
        </div>
      </section>
    </Detail>
  );
}
