import { visibleText } from "../../src/kernel/index.ts";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { errorText, post } from "../api/client.ts";
import { isOffline } from "../api/connection.ts";
import type { DeadLetter } from "../api/types.ts";
import { now } from "../base/now.ts";
import { ago, counted, plain } from "../base/format.ts";
import { Glyph } from "./glyph.tsx";

/** A message that could not be delivered, with the order to send it again. */
export function DeadLetterCard({
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
        <pre class="command">{visibleText(plain(message.body))}</pre>
        {problem !== null && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button class="button primary" disabled={isOffline.value} onClick={() => void send()}>
            Send again
          </button>
        </div>
      </div>
    </section>
  );
}
