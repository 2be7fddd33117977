import { runTime } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { get } from "../../../api/client.ts";
import { useRead } from "../../../api/use-read.ts";
import { DeadLetterCard } from "../../../parts/dead-letter-card.tsx";
import { clock, counted } from "../../../base/format.ts";
import { Icon } from "../../../parts/icon.tsx";
import { rowsIn, useBand } from "../../../base/use-window.ts";
import { isMessage, messageTypes, type MessageEvent } from "../../../../src/surfaces/view/message-events.ts";
import type { EventFilter } from "../../../model/event-filter.ts";
import { messageWords } from "../../../model/words/message-words.ts";
import type { RunModel } from "../../../model/run-model.ts";
import { agentOf } from "../../../../src/surfaces/view/task-words.ts";
import { useEvents } from "../../../model/use-events.ts";

const messages: EventFilter = { types: messageTypes };
const nothing = "No agent and no person has sent a message yet.";
/** Height of the lowest message, in pixels. */
const leastHeight = 32;

/** What agents and people sent to each other in a run, and messages that could not be delivered. */
export function Messages({ model }: { readonly model: RunModel }): JSX.Element {
  const view = model.view.value;
  const { events, isReading, problem } = useEvents(model, messages);
  const { ref, bottom } = useBand<HTMLOListElement>();
  if (view === null) return <></>;
  const sent = events
    .filter(isMessage)
    .filter(({ seq }) => seq <= model.shownSeq)
    .toReversed();
  const note = problem ?? (isReading ? "Reading messages" : null);
  // Messages differ in height. Those above the viewport are drawn too, so that the ones in view keep their place.
  const rows = rowsIn({ top: 0, bottom }, sent.length, leastHeight);
  return (
    <div class="canvas messages">
      <DeadLetters view={view} />
      <p class="dim">{note ?? (sent.length === 0 ? nothing : counted(sent.length, "message"))}</p>
      <ol class="message-list" ref={ref} style={{ paddingBottom: `${rows.below}px` }}>
        {sent.slice(0, rows.end).map((event) => (
          <Message key={event.seq} event={event} view={view} />
        ))}
      </ol>
    </div>
  );
}

function Message({ event, view }: { readonly event: MessageEvent; readonly view: RunView }): JSX.Element {
  const { from, to, text } = messageWords(event, (taskId) => agentOf(taskId, view));
  return (
    <li tabIndex={-1}>
      <span class="dim">{clock(runTime(view, event.at))}</span>
      <span>
        <b>{from}</b> <Icon name="open" /> <b>{to}</b>
      </span>
      <span class="mid">{text}</span>
    </li>
  );
}

function DeadLetters({ view }: { readonly view: RunView }): JSX.Element | null {
  const { value, again } = useRead(() => get("/api/dead-letters"), [view.status]);
  const agents = new Set([...view.tasks].map(({ agentId }) => agentId));
  const letters = (value?.deadLetters ?? []).filter(
    ({ runId, message }) => runId === view.runId || (runId === undefined && agents.has(message.to)),
  );
  if (letters.length === 0) return null;
  return (
    <section>
      <h2>{counted(letters.length, "message")} could not be delivered</h2>
      {letters.map((letter) => (
        <DeadLetterCard key={letter.message.id} letter={letter} onSent={again} />
      ))}
    </section>
  );
}
