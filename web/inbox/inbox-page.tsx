import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { approvals } from "../api/runs-feed.ts";
import type { Approval } from "../api/types.ts";
import { useKeys } from "../app/keys.ts";
import { now } from "../app/now.ts";
import { place, runPath, setQuery } from "../app/route.ts";
import { ApprovalCard, questionText, type Question } from "../parts/approval-card.tsx";
import { counted, span } from "../parts/format.ts";
import { Glyph } from "../parts/glyph.tsx";
import { argumentOf } from "../parts/tool-call.tsx";

/** Everything that waits for a person, over all runs. The oldest need is on top. */
export function InboxPage(): JSX.Element {
  const { query } = place.value;
  const run = query.get("run");
  const all = approvals.value;
  const items = (all ?? []).filter(({ runId }) => run === null || runId === run);
  const wanted = query.get("item");
  // A card that was answered stays in place until the person moves on.
  const [last, setLast] = useState<Approval | null>(null);
  const chosen =
    items.find((item) => keyOf(item) === wanted) ??
    (last !== null && keyOf(last) === wanted ? last : items[0]);
  const choose = (item: Approval): void => {
    setLast(item);
    setQuery("item", keyOf(item));
  };
  const move = (by: number): void => {
    const at = items.findIndex((item) => chosen !== undefined && keyOf(item) === keyOf(chosen));
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (next !== undefined) choose(next);
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
  if (all !== null && items.length === 0 && chosen === undefined)
    return (
      <main class="empty" id="main">
        <h1>Nothing waits for you</h1>
        <p>Approvals and questions of all runs appear here, and where they happened.</p>
        {run !== null && (
          <p>
            <a class="button" href="/inbox">
              All runs
            </a>
          </p>
        )}
      </main>
    );
  return (
    <main class={`inbox ${wanted === null ? "" : "has-choice"}`} id="main">
      <div class="inbox-list">
        <div class="row between inbox-head">
          <h1>Inbox</h1>
          <span class="dim">
            {all === null
              ? "Reading"
              : `${counted(items.length, "question")} ${items.length === 1 ? "waits" : "wait"} for you`}
          </span>
        </div>
        {items.map((item) => (
          <button
            key={keyOf(item)}
            class="inbox-item"
            aria-current={chosen !== undefined && keyOf(item) === keyOf(chosen)}
            onClick={() => choose(item)}
          >
            <Glyph look={item.kind === "tool_call" ? "waits" : "question"} />
            <span class="cut strong">{headline(item)}</span>
            <span class="label">{span(now.value - item.requestedAt)}</span>
            <span class="sub">
              <span class="cut">{item.agentId}</span>
              <code class="cut">{item.runId}</code>
            </span>
          </button>
        ))}
        <p class="dim inbox-keys wide-only">
          <kbd>J</kbd> <kbd>K</kbd> move, <kbd>A</kbd> approve, <kbd>E</kbd> edit, <kbd>D</kbd> deny. The
          first answer counts.
        </p>
      </div>
      {chosen !== undefined && (
        <div class="inbox-detail">
          <nav class="crumbs" aria-label="Path">
            <a class="narrow-only" href="/inbox">
              Inbox
            </a>
            <a href={runPath(chosen.runId, "conversation", chosen.taskId)}>{chosen.rootAgentId}</a>
            <span aria-hidden="true">/</span>
            <span>{chosen.agentId}</span>
          </nav>
          <ApprovalCard key={keyOf(chosen)} question={questionOf(chosen)} hasKeys />
        </div>
      )}
    </main>
  );
}

function keyOf({ runId, approvalId }: Approval): string {
  return `${runId}:${approvalId}`;
}

function headline({ kind, toolName, input }: Approval): string {
  if (kind !== "tool_call") return questionText(input) ?? toolName;
  const about = argumentOf(input);
  return about === "" ? toolName : `${toolName}: ${about}`;
}

function questionOf(approval: Approval): Question {
  const { runId, agentId, requestedAt } = approval;
  return { runId, agentId, askedAt: requestedAt, request: approval, decision: null, decidedAt: null };
}
