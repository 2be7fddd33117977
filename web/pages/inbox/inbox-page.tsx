import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { errorText, post } from "../../api/client.ts";
import { isOffline } from "../../api/connection.ts";
import { hidden, refreshSoon } from "../../api/runs-feed.ts";
import { useKeys } from "../../base/keys.ts";
import { now } from "../../base/now.ts";
import { place, setQuery } from "../../base/route.ts";
import { counted, span, timeOfDay } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { nextChoice, noChoice, type Choice } from "./inbox-choice.ts";
import { InboxDetail } from "./inbox-detail.tsx";
import {
  headlineOf,
  hiddenUntil,
  inbox,
  placeOf,
  putAway,
  sectionsOf,
  snoozeTimes,
  waitsForYou,
  type InboxItem,
} from "../../model/inbox-items.ts";
import { useFigures } from "../../model/run-figures.ts";

/** Everything that waits for a person, over all runs: questions, stopped runs, crash loops and messages that were not delivered. */
export function InboxPage(): JSX.Element {
  const { query } = place.value;
  const run = query.get("run");
  const wanted = query.get("item");
  const agent = query.get("agent");
  const isAway = query.get("view") === "away";
  const isByAgent = query.get("group") === "agent";
  const all = isAway ? putAway.value : inbox.value;
  const ofRun = (all ?? []).filter((item) => run === null || isOf(item, run));
  const shown = ofRun.filter((item) => agent === null || placeOf(item)[0] === agent);
  const sections = sectionsOf(shown, isByAgent);
  const items = sections.flatMap((section) => section.items);
  // The headline of a stopped run names the limit that its figures tell.
  useFigures(items.flatMap((item) => (item.kind === "stopped" ? [item.run] : [])));
  const before = useRef<Choice<InboxItem>>(noChoice);
  const [closed, setClosed] = useState<InboxItem | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  // Until the items are read, nothing was answered.
  if (all !== null) before.current = nextChoice(before.current, items, wanted);
  // What was closed is not answered: it does not stay as an answer.
  const { chosen, at } = before.current;
  const answered = isOnList(before.current.answered) ? null : before.current.answered;
  const move = (by: number): void => {
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (next !== undefined) choose(next);
  };
  const change = async (order: Promise<{ readonly hidden: typeof hidden.value }>): Promise<void> => {
    try {
      hidden.value = (await order).hidden;
      setProblem(null);
    } catch (error) {
      setProblem(errorText(error));
    }
  };
  const hide = async (item: InboxItem, until: number | null): Promise<void> => {
    await change(post("/api/inbox/hidden", { body: { id: item.id, change: String(item.at), until } }));
    setClosed(item);
  };
  const restore = async ({ id }: InboxItem): Promise<void> => {
    await change(post("/api/inbox/restore", { body: { id } }));
    setClosed(null);
  };
  const onList = chosen !== undefined && !isAway ? chosen : undefined;
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(onList !== undefined && {
      x: ({ repeat }: KeyboardEvent) => (repeat ? false : void hide(onList, null)),
      h: ({ repeat }: KeyboardEvent) =>
        repeat ? false : void hide(onList, snoozeTimes(new Date(now.value))[0].at),
    }),
    ...(closed !== null && { u: () => void restore(closed) }),
  });
  const isRead = all !== null;
  const isNarrowed = run !== null || agent !== null;
  if (isRead && chosen === undefined && answered === null && closed === null && !isAway)
    return <NothingWaits isFiltered={isNarrowed} />;
  return (
    <main class={`inbox ${wanted === null ? "" : "has-choice"}`} id="main">
      <div class="inbox-list">
        <div class="row between inbox-head">
          <h1>Inbox</h1>
          <span class="dim">{isRead ? waitWords() : "Reading"}</span>
        </div>
        <div class="row wrap inbox-filter">
          <div class="segments" role="group" aria-label="Items">
            <button aria-pressed={!isAway} onClick={() => setQuery("view", null)}>
              Open {inbox.value?.length ?? ""}
            </button>
            <button aria-pressed={isAway} onClick={() => setQuery("view", "away")}>
              Closed and snoozed {putAway.value.length}
            </button>
          </div>
          <Agents items={ofRun} chosen={agent} />
          <label class="check">
            <input
              type="checkbox"
              checked={isByAgent}
              onChange={() => setQuery("group", isByAgent ? null : "agent")}
            />
            By agent
          </label>
        </div>
        {run !== null && (
          <p class="inbox-filter dim">
            Items of one run.{" "}
            <a class="link" href="/inbox">
              Show all
            </a>
          </p>
        )}
        {closed !== null && (
          <p class="inbox-filter" role="status">
            {headlineOf(closed)} is off your list. Nothing was decided.{" "}
            <button class="link" onClick={() => void restore(closed)}>
              Undo
            </button>{" "}
            <kbd>U</kbd>
          </p>
        )}
        {problem !== null && (
          <p class="inbox-filter problem" role="alert">
            {problem}
          </p>
        )}
        {sections.map(({ title, items: lines }) => (
          <details key={title} class="inbox-section" open>
            <summary>
              {title} <span class="dim">{lines.length}</span>
            </summary>
            {lines.map((item) => (
              <Line key={item.id} item={item} isChosen={item.id === chosen?.id} isAway={isAway} />
            ))}
          </details>
        ))}
        {isRead && items.length === 0 && <p class="inbox-filter dim">Nothing here.</p>}
        <p class="dim inbox-keys wide-only">
          <kbd>J</kbd> <kbd>K</kbd> move, <kbd>A</kbd> approve, <kbd>E</kbd> edit, <kbd>D</kbd> deny,{" "}
          <kbd>X</kbd> close, <kbd>H</kbd> snooze. The first answer counts.
        </p>
      </div>
      <div class="inbox-detail">
        {answered !== null && (
          <InboxDetail key={answered.id} item={answered} isOver onChanged={refreshSoon} />
        )}
        {chosen !== undefined && (
          <div key="orders" class="row wrap inbox-orders">
            {onList === undefined ? (
              <button class="button small" disabled={isOffline.value} onClick={() => void restore(chosen)}>
                Put back on the list
              </button>
            ) : (
              <Orders onHide={(until) => void hide(onList, until)} />
            )}
          </div>
        )}
        {/* Beside the answered one, so that an item keeps what was written and sent when it becomes that. */}
        {chosen !== undefined && <InboxDetail key={chosen.id} item={chosen} onChanged={refreshSoon} />}
        {chosen === undefined && isRead && <p class="dim">Nothing else waits for you.</p>}
      </div>
    </main>
  );
}

function isOnList(item: InboxItem | null): boolean {
  return [...(inbox.value ?? []), ...putAway.value].some(({ id }) => id === item?.id);
}

function waitWords(): string {
  const count = waitsForYou.value?.length ?? 0;
  return `${counted(count, "decision")} ${count === 1 ? "waits" : "wait"} for you`;
}

/** Takes the chosen item off the list. */
function Orders({ onHide }: { readonly onHide: (until: number | null) => void }): JSX.Element {
  return (
    <fieldset class="row wrap" disabled={isOffline.value}>
      <button class="button small" title="Off your list until it changes" onClick={() => onHide(null)}>
        Close <kbd>X</kbd>
      </button>
      <span class="label">Snooze</span>
      {snoozeTimes(new Date(now.value)).map(({ name, at }, index) => (
        <button key={name} class="button small quiet" onClick={() => onHide(at)}>
          {name} {index === 0 && <kbd>H</kbd>}
        </button>
      ))}
    </fieldset>
  );
}

function Agents({
  items,
  chosen,
}: {
  readonly items: readonly InboxItem[];
  readonly chosen: string | null;
}): JSX.Element | null {
  const names = [...new Set(items.map((item) => placeOf(item)[0] ?? ""))].toSorted();
  if (names.length < 2 && chosen === null) return null;
  return (
    <select
      class="select"
      aria-label="Agent"
      value={chosen ?? ""}
      onChange={(event) => setQuery("agent", event.currentTarget.value || null)}
    >
      <option value="">All agents</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
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
  const away = putAway.value.length;
  return (
    <main class="empty" id="main">
      <h1>Nothing waits for you</h1>
      <p>
        Approvals and questions of all runs appear here and where they happened, and so do runs that stopped
        at their allowance, runs that end their processes, and messages that could not be delivered.
      </p>
      {(isFiltered || away > 0) && (
        <p class="actions">
          {isFiltered && (
            <a class="button" href="/inbox">
              All runs
            </a>
          )}
          {away > 0 && (
            <a class="button" href="/inbox?view=away">
              Closed and snoozed: {away}
            </a>
          )}
        </p>
      )}
    </main>
  );
}

interface LineProps {
  readonly item: InboxItem;
  readonly isChosen: boolean;
  readonly isAway: boolean;
}

function Line({ item, isChosen, isAway }: LineProps): JSX.Element {
  const [who, where] = placeOf(item);
  const look = lookOf(item);
  const until = isAway ? hiddenUntil(item) : null;
  return (
    <button class="inbox-item" aria-current={isChosen} onClick={() => choose(item)}>
      <Glyph look={look} />
      <span class="cut strong">{headlineOf(item)}</span>
      <span class="label">{span(now.value - item.at)}</span>
      <span class="sub">
        <span class="agent">{who}</span>
        <span class="cut">{until === null ? where : `until ${untilWords(until)}`}</span>
      </span>
    </button>
  );
}

function untilWords(at: number): string {
  const day = new Date(at).toLocaleDateString("en", { weekday: "long" });
  return `${day} ${timeOfDay(at)}`;
}

function lookOf(item: InboxItem): "letter" | "stopped" | "paused" | "waits" | "question" {
  switch (item.kind) {
    case "letter":
      return "letter";
    case "stopped":
      return "stopped";
    case "looping":
      return "paused";
    case "question":
      return item.approval.kind === "tool_call" ? "waits" : "question";
  }
}
