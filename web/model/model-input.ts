import { messageText, type Event } from "../../src/kernel/index.ts";
import { isHandOff, targetOf } from "../../src/surfaces/view/task-words.ts";
import { outputText } from "./thread.ts";
import { inputText } from "./words/input-text.ts";

/** One message that a model read. */
export interface SeenMessage {
  readonly seq: number;
  readonly kind: "brief" | "person" | "agent" | "result";
  readonly title: string;
  readonly text: string;
}

/**
 * What the model of a task read in the call that starts with the event `until`: brief, messages and results of its task before.
 * The instructions are not part of the log, and neither are earlier messages of the session.
 */
export function seenBefore(events: Iterable<Event>, until: number): readonly SeenMessage[] {
  const seen: SeenMessage[] = [];
  for (const event of events) {
    if (event.seq >= until) break;
    const message = messageOf(event);
    if (message !== null && message.text !== "") seen.push({ seq: event.seq, ...message });
  }
  return seen;
}

function messageOf(event: Event): Omit<SeenMessage, "seq"> | null {
  switch (event.type) {
    case "agent_start":
      return { kind: "brief", title: "Brief", text: inputText(event.data.input) };
    case "user_message":
      return { kind: "person", title: "Message", text: messageText(event.data.message) };
    case "message_end":
      return { kind: "agent", title: event.agentId, text: messageText(event.data.message) };
    case "tool_execution_end":
      return {
        kind: "result",
        title: isHandOff(event.data.toolName)
          ? `Report of ${targetOf(event.data.toolName, null)}`
          : `Result of ${event.data.toolName}`,
        text: outputText(event.data.result.output),
      };
    default:
      return null;
  }
}
