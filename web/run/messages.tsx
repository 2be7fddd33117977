import type { Event } from "../../src/kernel/index.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { errorText, get, post } from "../api/client.ts";
import type { DeadLetter } from "../api/types.ts";
import { useRead } from "../api/use-read.ts";
import { now } from "../app/now.ts";
import { ago, clock, counted, oneLine, plain } from "../parts/format.ts";
import { Glyph } from "../parts/glyph.tsx";
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

/** A message that could not be delivered, with the order to send it again. */
function DeadLetterCard({
  letter,
  onSent,
}: {
  readonly letter: DeadLetter;
  readonly onSent: () => void;
}): JSX.Element {
  const { message, deliveries } = letter;
  const [problem, setProblem] = useState<string | null>(null);
  const send = async (): Promise<void> => {
    try {
      await post("/api/dead-letters/redeliver", { body: { agentId: message.to, messageIds: [message.id] } });
      onSent();
    } catch (error) {
      setProblem(errorText(error));
    }
  };
  return (
    <section class="fault letter" aria-label={`A message to ${message.to} could not be delivered`}>
      <header>
        <Glyph look="letter" />A message to {message.to} could not be delivered,{" "}
        {counted(deliveries, "try", "tries")}
        <code>{ago(message.sentAt, now.value)}</code>
      </header>
      <div class="letter-body">
        <pre class="command">{plain(message.body)}</pre>
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button class="button primary" onClick={() => void send()}>
            Send again
          </button>
        </div>
      </div>
    </section>
  );
}
