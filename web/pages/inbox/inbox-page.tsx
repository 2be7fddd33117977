import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { visibleLine } from "../../../src/kernel/index.ts";
import { errorText, post } from "../../api/client.ts";
import { isOffline } from "../../api/connection.ts";
import { inbox, refresh, refreshSoon, waiting, wantInbox, type InboxQuery } from "../../api/runs-feed.ts";
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
  itemsOf,
  placeOf,
  sectionsOf,
  snoozeTimes,
  type InboxItem,
} from "../../model/inbox-items.ts";
import { useFigures } from "../../model/run-figures.ts";

/** Number of items of each kind that are read at first, and with each step. */
const step = 100;
/** The most that the server reads at once. */
const most = 1_000;

/** The part of the inbox that the address names. */
function wantedOf(query: URLSearchParams, limit: number): InboxQuery {
  const [agent, runId] = [query.get("agent"), query.get("run")];
  const kind = (["question", "run", "letter"] as const).find((each) => each === query.get("kind"));
  return {
    ...(query.get("view") === "away" && { view: "away" as const }),
    ...(kind !== undefined && { kind }),
    ...(agent !== null && { agent }),
    ...(runId !== null && { runId }),
    ...(limit > step && { limit }),
  };
}

/** Everything that waits for a person, over all runs: questions, stopped runs, crash loops and messages that were not delivered. */
export function InboxPage(): JSX.Element {
  const { query } = place.value;
  const wanted = query.get("item");
  const isByAgent = query.get("group") === "agent";
  const [limit, setLimit] = useState(step);
  const part = wantedOf(query, limit);
  const isAway = part.view === "away";
  useEffect(() => wantInbox(part), [JSON.stringify(part)]);
  useEffect(() => () => wantInbox({}), []);
  const all = itemsOf(part);
  const sections = sectionsOf(all ?? [], isByAgent);
  const items = sections.flatMap((section) => section.items);
  // The headline of a stopped run names the limit that its figures tell.
  useFigures(items.flatMap((item) => (item.kind === "stopped" ? [item.run] : [])));
  const before = useRef<Choice<InboxItem>>(noChoice);
  const shownPart = useRef("");
  /** What the person has closed or snoozed here. It is not answered: it does not stay as an answer. */
  const moved = useRef(new Set<string>());
  const [closed, setClosed] = useState<readonly InboxItem[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  // In another part nothing was answered, and neither before the items are read.
  const partName = JSON.stringify({ ...part, limit: 0 });
  if (shownPart.current !== partName) before.current = noChoice;
  shownPart.current = partName;
  if (all !== null) before.current = nextChoice(before.current, items, wanted);
  const { chosen, at } = before.current;
  const { answered: last } = before.current;
  const isOver = last !== null && !moved.current.has(last.id) && items.every(({ id }) => id !== last.id);
  const answered = isOver && !isAway ? last : null;
  const move = (by: number): void => {
    const next = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (next !== undefined) choose(next);
  };
  const change = async (order: Promise<unknown>): Promise<boolean> => {
    try {
      await order;
      setProblem(null);
      await refresh();
      return true;
    } catch (error) {
      setProblem(errorText(error));
      return false;
    }
  };
  const hide = async (some: readonly InboxItem[], until: number | null): Promise<void> => {
    const hidden = some.map((item) => ({ id: item.id, change: String(item.at) }));
    for (const { id } of some) moved.current.add(id);
    if (await change(post("/api/inbox/hidden", { body: { items: hidden, until } }))) setClosed(some);
  };
  const restore = async (some: readonly InboxItem[]): Promise<void> => {
    const ids = some.map(({ id }) => id);
    if (!(await change(post("/api/inbox/restore", { body: { ids } })))) return;
    for (const id of ids) moved.current.delete(id);
    setClosed([]);
  };
  const onList = chosen !== undefined && !isAway ? chosen : undefined;
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(onList !== undefined && {
      x: ({ repeat }: KeyboardEvent) => (repeat ? false : void hide([onList], null)),
      h: ({ repeat }: KeyboardEvent) =>
        repeat ? false : void hide([onList], snoozeTimes(new Date(now.value))[0].at),
    }),
    ...(closed.length > 0 && { u: () => void restore(closed) }),
  });
  const isRead = all !== null;
  const isNarrowed = part.runId !== undefined || part.agent !== undefined || part.kind !== undefined;
  if (isRead && chosen === undefined && answered === null && closed.length === 0 && !isAway && !isNarrowed)
    return <NothingWaits />;
  return (
    <main class={`inbox ${wanted === null ? "" : "has-choice"}`} id="main">
      <div class="inbox-list">
        <div class="row between inbox-head">
          <h1>Inbox</h1>
          <span class="dim">{isRead ? waitWords() : "Reading"}</span>
        </div>
        <Filters part={part} count={items.length} isRead={isRead} isByAgent={isByAgent} />
        {part.runId !== undefined && (
          <p class="inbox-filter dim">
            Items of one run.{" "}
            <a class="link" href="/inbox">
              Show all
            </a>
          </p>
        )}
        {closed.length > 0 && (
          <p class="inbox-filter" role="status">
            {closedWords(closed)}{" "}
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
            {lines.length > 1 && (
              <button
                class="link inbox-all"
                disabled={isOffline.value}
                onClick={() => void (isAway ? restore(lines) : hide(lines, null))}
              >
                {isAway ? `Put all ${lines.length} back` : `Close all ${lines.length}`}
              </button>
            )}
            {lines.map((item) => (
              <Line key={item.id} item={item} isChosen={item.id === chosen?.id} isAway={isAway} />
            ))}
          </details>
        ))}
        {hasMore() && limit < most && (
          <button class="inbox-all link" onClick={() => setLimit(Math.min(most, limit + step))}>
            Show more
          </button>
        )}
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
              <button class="button small" disabled={isOffline.value} onClick={() => void restore([chosen])}>
                Put back on the list
              </button>
            ) : (
              <Orders onHide={(until) => void hide([onList], until)} />
            )}
          </div>
        )}
        {/* Beside the answered one, so that an item keeps what was written and sent when it becomes that. */}
        {chosen !== undefined && <InboxDetail key={chosen.id} item={chosen} onChanged={refreshSoon} />}
        {chosen === undefined && isRead && (
          <p class="dim">
            {Object.keys(part).length === 0 ? "Nothing else waits for you." : "Nothing else in this list."}
          </p>
        )}
      </div>
    </main>
  );
}

/** Whether the server has more items of some kind than it has sent. */
function hasMore(): boolean {
  const read = inbox.value;
  return read !== null && [read.questions, read.runs, read.letters].some(({ isMore }) => isMore);
}

function closedWords(closed: readonly InboxItem[]): string {
  const [first] = closed;
  if (first === undefined) return "";
  if (closed.length === 1) return `${headlineOf(first)} is off your list. Nothing was decided.`;
  return `${closed.length} items are off your list. Nothing was decided.`;
}

function waitWords(): string {
  const count = waiting.value ?? 0;
  return `${counted(count, "decision")} ${count === 1 ? "waits" : "wait"} for you`;
}

interface FiltersProps {
  readonly part: InboxQuery;
  /** How many items are listed. */
  readonly count: number;
  readonly isRead: boolean;
  readonly isByAgent: boolean;
}

const kindNames = { question: "Decisions", run: "Stopped", letter: "Not delivered" } as const;

/** Which part of the inbox is listed. */
function Filters({ part, count, isRead, isByAgent }: FiltersProps): JSX.Element {
  const isAway = part.view === "away";
  const away = inbox.value?.away;
  const open = isRead && !isAway ? `${count}${hasMore() ? "+" : ""}` : "";
  return (
    <div class="row wrap inbox-filter">
      <div class="segments whole" role="group" aria-label="Items">
        <button aria-pressed={!isAway} onClick={() => setQuery("view", null)}>
          Open {open}
        </button>
        <button aria-pressed={isAway} onClick={() => setQuery("view", "away")}>
          Closed and snoozed {isRead ? away : ""}
        </button>
      </div>
      <Agents isRead={isRead} chosen={part.agent ?? null} />
      <select
        class="select"
        aria-label="Kind"
        value={part.kind ?? ""}
        onChange={(event) => setQuery("kind", event.currentTarget.value || null)}
      >
        <option value="">All kinds</option>
        {Object.entries(kindNames).map(([kind, name]) => (
          <option key={kind} value={kind}>
            {name}
          </option>
        ))}
      </select>
      <label class="check">
        <input
          type="checkbox"
          checked={isByAgent}
          onChange={() => setQuery("group", isByAgent ? null : "agent")}
        />
        By agent
      </label>
    </div>
  );
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

/** The agents of the list. They stay while the list is narrowed to one of them. */
function Agents({
  isRead,
  chosen,
}: {
  readonly isRead: boolean;
  readonly chosen: string | null;
}): JSX.Element | null {
  const known = useRef<readonly string[]>([]);
  const { questions, runs, letters } = inbox.value ?? {};
  if (isRead && chosen === null)
    known.current = [
      ...new Set(
        [
          ...(questions?.items ?? []).map(({ agentId }) => agentId),
          ...(runs?.items ?? []).map(({ agentId }) => agentId),
          ...(letters?.items ?? []).map(({ message }) => message.to),
        ].map((agentId) => agentId.replace(/\/.*$/u, "")),
      ),
    ].toSorted();
  const names = [...new Set([...known.current, ...(chosen === null ? [] : [chosen])])];
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
          {visibleLine(name)}
        </option>
      ))}
    </select>
  );
}

function choose(item: InboxItem): void {
  setQuery("item", item.id);
}

function NothingWaits(): JSX.Element {
  const away = inbox.value?.away ?? 0;
  return (
    <main class="empty" id="main">
      <h1>Nothing waits for you</h1>
      <p>
        Approvals and questions of all runs appear here and where they happened, and so do runs that stopped
        at their budget, runs that end their processes, and messages that could not be delivered.
      </p>
      {away > 0 && (
        <p class="actions">
          <a class="button" href="/inbox?view=away">
            Closed and snoozed: {away}
          </a>
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
