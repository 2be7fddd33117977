import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { refreshSoon } from "../../api/runs-feed.ts";
import { useKeys } from "../../base/keys.ts";
import { now } from "../../base/now.ts";
import { place, setQuery } from "../../base/route.ts";
import { counted, span } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { nextChoice, noChoice, type Choice } from "./inbox-choice.ts";
import { InboxDetail } from "./inbox-detail.tsx";
import { headlineOf, inbox, placeOf, type InboxItem } from "../../model/inbox-items.ts";

/** Everything that waits for a person, over all runs: questions, stopped runs, crash loops and messages that were not delivered. */
export function InboxPage(): JSX.Element {
  const { query } = place.value;
  const run = query.get("run");
  const wanted = query.get("item");
  const all = inbox.value;
  const items = (all ?? []).filter((item) => run === null || isOf(item, run));
  const before = useRef<Choice<InboxItem>>(noChoice);
  // Until the items are read, nothing was answered.
  if (all !== null) before.current = nextChoice(before.current, items, wanted);
  const { chosen, answered, at } = before.current;
  const move = (by: number): void => {
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (next !== undefined) choose(next);
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
  const isRead = all !== null;
  if (isRead && chosen === undefined && answered === null) return <NothingWaits isFiltered={run !== null} />;
  return (
    <main class={`inbox ${wanted === null ? "" : "has-choice"}`} id="main">
      <div class="inbox-list">
        <div class="row between inbox-head">
          <h1>Inbox</h1>
          <span class="dim">
            {isRead
              ? `${counted(items.length, "item")} ${items.length === 1 ? "waits" : "wait"} for you`
              : "Reading"}
          </span>
        </div>
        {run !== null && (
          <p class="inbox-filter dim">
            Items of one run.{" "}
            <a class="link" href="/inbox">
              Show all
            </a>
          </p>
        )}
        {items.map((item) => (
          <Line key={item.id} item={item} isChosen={item.id === chosen?.id} />
        ))}
        <p class="dim inbox-keys wide-only">
          <kbd>J</kbd> <kbd>K</kbd> move, <kbd>A</kbd> approve, <kbd>E</kbd> edit, <kbd>D</kbd> deny. The
          first answer counts.
        </p>
      </div>
      <div class="inbox-detail">
        {answered !== null && (
          <InboxDetail key={answered.id} item={answered} isOver onChanged={refreshSoon} />
        )}
        {chosen !== undefined && <InboxDetail key={chosen.id} item={chosen} onChanged={refreshSoon} />}
        {chosen === undefined && isRead && <p class="dim">Nothing else waits for you.</p>}
      </div>
    </main>
  );
}

function choose(item: InboxItem): void {
  setQuery("item", item.id);
}

function isOf(item: InboxItem, runId: string): boolean {
  if (item.kind === "question") return item.approval.runId === runId;
  return item.kind === "letter" ? item.letter.runId === runId : item.run.runId === runId;
}

function NothingWaits({ isFiltered }: { readonly isFiltered: boolean }): JSX.Element {
  return (
    <main class="empty" id="main">
      <h1>Nothing waits for you</h1>
      <p>
        Approvals and questions of all runs appear here and where they happened, and so do runs that stopped
        at their allowance, runs that end their processes, and messages that could not be delivered.
      </p>
      {isFiltered && (
        <p>
          <a class="button" href="/inbox">
            All runs
          </a>
        </p>
      )}
    </main>
  );
}

interface LineProps {
  readonly item: InboxItem;
  readonly isChosen: boolean;
}

function Line({ item, isChosen }: LineProps): JSX.Element {
  const [who, where] = placeOf(item);
  const look = lookOf(item);
  return (
    <button class="inbox-item" aria-current={isChosen} onClick={() => choose(item)}>
      <Glyph look={look} />
      <span class="cut strong">{headlineOf(item)}</span>
      <span class="label">{span(now.value - item.at)}</span>
      <span class="sub">
        <span class="agent">{who}</span>
        <span class="cut">{where}</span>
      </span>
    </button>
  );
}

function lookOf(item: InboxItem): "letter" | "failed" | "paused" | "waits" | "question" {
  switch (item.kind) {
    case "letter":
      return "letter";
    case "stopped":
      return "failed";
    case "looping":
      return "paused";
    case "question":
      return item.approval.kind === "tool_call" ? "waits" : "question";
  }
}
