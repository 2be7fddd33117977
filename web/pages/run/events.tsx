import { visibleText, type Event } from "../../../src/kernel/index.ts";
import { runTime } from "../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../../api/client.ts";
import { useRead } from "../../api/use-read.ts";
import { useKeys } from "../../base/keys.ts";
import { place, runPath, setQuery } from "../../base/route.ts";
import { clock, counted, grouped } from "../../base/format.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Name } from "../../parts/name.tsx";
import { useSize } from "../../base/use-size.ts";
import { eventTone, eventWords } from "../../model/words/event-words.ts";
import type { RunModel } from "../../model/run-model.ts";

const groups = ["all", "money", "seats", "people", "faults"] as const;
type EventGroup = (typeof groups)[number];

const groupNames: Readonly<Record<EventGroup, string>> = {
  all: "All",
  money: "Money",
  seats: "Seats",
  people: "People",
  faults: "Faults",
};

const patterns: Readonly<Record<EventGroup, RegExp>> = {
  all: /./u,
  money: /^budget_|^message_end|^run_end/u,
  seats: /^seat_|^spawn_|^handoff|reprioritize/u,
  people:
    /^approval_|^run_(?:steer|pause|resume|cancel|start)|top_up|^task_(?:signal|cancel)|^input_unread|^input_withdraw|^user_message/u,
  faults: /error|recover|lost|exhausted|overrun|deny|refuse|retry|dead_letter|warning|fallback|guardrail/u,
};

const none: readonly Event[] = [];
const wideRowHeight = 28;
/** On a narrow screen an event has two lines: when and who, then what. */
const narrowRowHeight = 56;
const narrow = 720;
const extraRows = 10;
/** Number of events before the playhead that are read at once, if they are not in memory. */
const mostBefore = 1_000;

/** The log of a run, newest first. Only the rows in view are drawn. */
export function Events({ model }: { readonly model: RunModel }): JSX.Element {
  void model.version.value;
  const { query } = place.value;
  const group = groups.find((each) => each === query.get("show")) ?? "all";
  const text = query.get("find") ?? "";
  const view = model.view.value;
  const older = useOlder(model);
  const { ref, height } = useSize<HTMLDivElement>();
  const [top, setTop] = useState(0);
  const until = model.shownSeq;
  const filter = useMemo(() => matcher(group, text), [group, text]);
  const events = useMatching(model, filter, older.events);
  const scrolled = useRef(0);
  const chosen = chosenSeq(query.get("event"));
  const rowHeight = window.innerWidth < narrow ? narrowRowHeight : wideRowHeight;
  const count = endOf(events, until);
  useScrollTo({ list: ref, events, count, chosen, rowHeight, older });
  useKeys({ Escape: () => (chosen === null ? false : setQuery("event", null)) });
  if (view === null) return <></>;
  const first = Math.max(0, Math.floor(top / rowHeight) - extraRows);
  const last = Math.max(0, count - first);
  const shown = events
    .slice(Math.max(0, last - Math.ceil(height / rowHeight) - 2 * extraRows), last)
    .toReversed();
  return (
    <div class="events">
      <div class="tools">
        <div class="segments" role="group" aria-label="Show">
          {groups.map((each) => (
            <button
              key={each}
              aria-pressed={each === group}
              onClick={() => setQuery("show", each === "all" ? null : each)}
            >
              {groupNames[each]}
            </button>
          ))}
        </div>
        <label class="find">
          <Icon name="find" />
          <input
            type="search"
            aria-label="Filter events"
            placeholder="agent:release kind:tool"
            value={text}
            onInput={(event) => setQuery("find", event.currentTarget.value || null)}
          />
        </label>
        <span class="dim">
          {counted(count, "event")}
          {group === "all" && text === "" && rangeWords(events[0], events[count - 1])}
        </span>
        {older.unread > 0 && (
          <button class="button small" onClick={older.load}>
            Read the {counted(older.unread, "older event")}
          </button>
        )}
      </div>
      <div
        class="event-rows"
        ref={ref}
        tabIndex={0}
        role="region"
        aria-label="Events, newest first"
        onScroll={(event) => {
          scrolled.current = event.currentTarget.scrollTop;
          setTop(scrolled.current);
        }}
      >
        <ol style={{ height: `${count * rowHeight}px` }}>
          {shown.map((event, at) => (
            <EventRow
              key={event.seq}
              event={event}
              view={view}
              top={(first + at) * rowHeight}
              model={model}
              isChosen={event.seq === chosen}
            />
          ))}
        </ol>
        {count === 0 && <p class="dim">No event fits the filter.</p>}
      </div>
      {chosen !== null && <RawEvent key={chosen} model={model} seq={chosen} />}
    </div>
  );
}

/** The numbers of a list of events, which begin at 0. */
function rangeWords(first: Event | undefined, last: Event | undefined): string {
  if (first === undefined || last === undefined) return "";
  return first === last
    ? `, number ${grouped(first.seq)}`
    : `, ${grouped(first.seq)} to ${grouped(last.seq)}`;
}

/** The event that the address names. `null` if it names none. */
function chosenSeq(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/u.test(text) ? Number(text) : null;
}

interface ScrollTarget {
  readonly list: { readonly current: HTMLDivElement | null };
  readonly events: readonly Event[];
  readonly count: number;
  readonly chosen: number | null;
  readonly rowHeight: number;
  readonly older: OlderEvents;
}

/** Brings the event that the address names into view, once. Events that are not in memory are read first. */
function useScrollTo({ list, events, count, chosen, rowHeight, older }: ScrollTarget): void {
  const done = useRef<number | null>(null);
  const known = useRef(0);
  useLayoutEffect(() => {
    const added = count - known.current;
    known.current = count;
    if (chosen === null || count === 0) return;
    if (done.current === chosen) {
      // New events come on top. The chosen one stays where the person reads it.
      if (added > 0 && list.current !== null) list.current.scrollTop += added * rowHeight;
      return;
    }
    const at = endOf(events, chosen) - 1;
    if (events[at]?.seq !== chosen) {
      if (older.unread > chosen) older.load();
      return;
    }
    done.current = chosen;
    const element = list.current;
    if (element === null) return;
    const top = (count - 1 - at) * rowHeight;
    const isInView = top >= element.scrollTop && top + rowHeight <= element.scrollTop + element.clientHeight;
    if (!isInView) element.scrollTop = top - element.clientHeight / 3;
  });
}

/** Number of characters of an event that are drawn. Copy has all of them. */
const mostRaw = 200_000;

/** One event as it is stored, with copy and a link that opens it. */
function RawEvent({ model, seq }: { readonly model: RunModel; readonly seq: number }): JSX.Element {
  const { runId } = model;
  const { value, problem } = useRead(
    (signal) =>
      get("/api/runs/{runId}/events", { params: { runId }, query: { from: seq, limit: 1 }, signal }),
    [runId, seq],
  );
  const event = value?.events[0];
  const isFound = event?.seq === seq;
  const raw = isFound ? JSON.stringify(event, null, 2) : "";
  const shown = visibleText(raw.slice(0, mostRaw));
  const rest = raw.length - mostRaw;
  return (
    <section class="raw-event" aria-label={`Event ${grouped(seq)}`}>
      <header class="row">
        <h2 class="grow">Event {grouped(seq)}</h2>
        {isFound && <CopyButton text={raw} label="Copy the event" />}
        <CopyButton
          text={`${location.origin}${runPath(runId, "events")}?event=${seq}`}
          label="Copy a link to the event"
          icon="clip"
        />
        {isFound && event.type === "message_start" && (
          <a class="button small" href={`${runPath(runId, "saw", event.taskId)}&call=${seq}`}>
            What it saw
          </a>
        )}
        <button class="icon-button small" aria-label="Close" onClick={() => setQuery("event", null)}>
          <Icon name="close" />
        </button>
      </header>
      {isFound ? (
        <pre tabIndex={0}>
          {shown}
          {rest > 0 && `\n… ${grouped(rest)} more characters`}
        </pre>
      ) : (
        <p class="dim">{problem ?? (value === null ? "Reading the event" : "The run has no such event.")}</p>
      )}
    </section>
  );
}

interface RowProps {
  readonly event: Event;
  readonly view: RunView;
  readonly model: RunModel;
  readonly top: number;
  readonly isChosen: boolean;
}

function EventRow({ event, view, model, top, isChosen }: RowProps): JSX.Element {
  const words = eventWords(event, view);
  return (
    <li class={`event-row ${isChosen ? "chosen" : ""}`} style={{ top: `${top}px` }}>
      <button
        class="dim number"
        aria-label={`Show the run at event ${grouped(event.seq)}`}
        title="Show the run at this event"
        onClick={() => void model.seek(event.seq)}
      >
        {grouped(event.seq)}
      </button>
      <span class="mid">{clock(runTime(view, event.at))}</span>
      <span>
        <button
          class="raw-open"
          aria-label={`${event.type}, event ${grouped(event.seq)} as it is stored`}
          aria-pressed={isChosen}
          onClick={() => setQuery("event", isChosen ? null : String(event.seq))}
        >
          <code class={`chip ${eventTone(event)}`}>{event.type}</code>
        </button>
      </span>
      <Name text={event.agentId} />
      <span class="cut mid" title={words}>
        {words}
      </span>
    </li>
  );
}

/** The events that fit a filter, oldest first. An event is compared once, however often the list is drawn. */
function useMatching(
  model: RunModel,
  filter: (event: Event) => boolean,
  older: readonly Event[],
): readonly Event[] {
  const cache = useMemo(() => ({ events: older.filter(filter), last: -1 }), [model, filter, older]);
  const { log } = model;
  for (const event of log.between(Math.max(log.first, cache.last + 1), log.last)) {
    cache.last = event.seq;
    if (filter(event)) cache.events.push(event);
  }
  // The log drops old events, and so does the list, unless the person has asked for all.
  if (older.length === 0 && (cache.events[0]?.seq ?? 0) < log.first)
    cache.events = cache.events.filter(({ seq }) => seq >= log.first);
  return cache.events;
}

/** How many of the events are at or before a position. */
function endOf(events: readonly Event[], seq: number): number {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle]?.seq ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface OlderEvents {
  readonly events: readonly Event[];
  /** Number of events before those. */
  readonly unread: number;
  /** Reads them. */
  readonly load: () => void;
}

/** The events before those in memory: all if a person asks for them, else the last ones before the playhead. */
function useOlder(model: RunModel): OlderEvents {
  const { log, shownSeq } = model;
  const [asked, setAsked] = useState(-1);
  const to = shownSeq < log.first ? Math.max(asked, shownSeq) : asked;
  const from = to > asked ? Math.max(0, to + 1 - mostBefore) : 0;
  const { value } = useRead(async () => (to < 0 ? none : model.events.between(from, to)), [model, from, to]);
  const events = value ?? none;
  return { events, unread: events[0]?.seq ?? log.first, load: () => setAsked(log.first - 1) };
}

/** Reads a filter: `agent:` and `kind:` with parts of a name, and words that type, agent or data contain. */
function matcher(group: EventGroup, text: string): (event: Event) => boolean {
  const words = text
    .toLowerCase()
    .split(/\s+/u)
    .filter((word) => word !== "");
  return (event) => patterns[group].test(event.type) && words.every((word) => fits(event, word));
}

function fits(event: Event, word: string): boolean {
  if (word.startsWith("agent:")) return event.agentId.toLowerCase().includes(word.slice(6));
  if (word.startsWith("kind:")) return event.type.includes(word.slice(5));
  return `${event.type} ${event.agentId} ${JSON.stringify(event.data)}`.toLowerCase().includes(word);
}
