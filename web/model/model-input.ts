import { messageText, type Event } from "../../src/kernel/index.ts";
import { isHandOff, targetOf } from "./words/task-words.ts";
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

/** A share of the input tokens of a call. */
export interface SeenShare {
  readonly name: string;
  readonly tokens: number;
}

const bytesPerToken = 4;
const shareNames = {
  brief: "Brief",
  person: "Messages",
  agent: "Own answers",
  result: "Tool results",
} as const;

/**
 * Splits the input tokens of a call by what they were. Providers report only the sum: each part is estimated from the length
 * of its text, and the rest is instructions, tools and earlier messages.
 */
export function sharesOf(seen: readonly SeenMessage[], inputTokens: number): readonly SeenShare[] {
  const lengths = new Map<SeenMessage["kind"], number>();
  for (const { kind, text } of seen)
    lengths.set(kind, (lengths.get(kind) ?? 0) + text.length / bytesPerToken);
  const sum = [...lengths.values()].reduce((total, each) => total + each, 0);
  const scale = sum > inputTokens ? inputTokens / sum : 1;
  const shares = [...lengths].map(([kind, tokens]) => ({
    name: shareNames[kind],
    tokens: Math.round(tokens * scale),
  }));
  const rest = inputTokens - shares.reduce((total, { tokens }) => total + tokens, 0);
  return [{ name: "Instructions, tools", tokens: Math.max(0, rest) }, ...shares];
}
