import type { Event } from "../../src/kernel/index.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { get } from "../api/client.ts";
import { useRead } from "../api/use-read.ts";
import { DeadLetterCard } from "../parts/dead-letter-card.tsx";
import { clock, counted, oneLine } from "../parts/format.ts";
import { Icon } from "../parts/icon.tsx";
import type { RunModel } from "./run-model.ts";
import { inputText } from "./thread.ts";

/** What agents and people sent to each other in a run, and messages that could not be delivered. */
export function Messages({ model }: { readonly model: RunModel }): JSX.Element {
  void model.version.value;
  const view = model.view.value;
  if (view === null) return <></>;
  const sent = model.log
    .between(model.log.first, model.shownSeq)
    .flatMap((event) => messageOf(event, view) ?? [])
    .toReversed();
  return (
    <div class="canvas messages">
      <DeadLetters view={view} />
      {sent.length === 0 ? (
        <p class="dim">No agent and no person has sent a message yet.</p>
      ) : (
        <ol class="message-list">
          {sent.map(({ seq, at, from, to, text }) => (
            <li key={seq}>
              <span class="dim">{clock(at - view.startedAt)}</span>
              <span>
                <b>{from}</b> <Icon name="open" /> <b>{to}</b>
              </span>
              <span class="mid">{text}</span>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

interface Sent {
  readonly seq: number;
  readonly at: number;
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

function messageOf(event: Event, view: RunView): Sent | null {
  const { seq, at, agentId } = event;
  switch (event.type) {
    case "handoff":
      return { seq, at, from: agentId, to: event.data.target, text: oneLine(event.data.task) };
    case "run_steer":
      return { seq, at, from: event.data.by, to: agentId, text: oneLine(inputText(event.data.input)) };
    case "task_signal":
      return { seq, at, from: event.data.by, to: agentId, text: `signal ${event.data.name}` };
    case "mail_receive":
      return {
        seq,
        at,
        from: event.data.from ?? "a caller",
        to: agentId,
        text: `message ${event.data.messageId}`,
      };
    case "task_end": {
      const parent = event.parentId === null ? undefined : view.tasks.get(event.parentId);
      if (parent === undefined || event.data.output === undefined) return null;
      return { seq, at, from: agentId, to: parent.agentId, text: oneLine(inputText(event.data.output)) };
    }
    default:
      return null;
  }
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
