import { toolCallsOf, toolMessage, type ChatMessage } from "./chat-message.ts";

/** S1: a conversation that stopped with calls unanswered, with an answer for each: `[not executed: reason]`. */
export function closeOpenCalls(messages: readonly ChatMessage[], reason: string): readonly ChatMessage[] {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return messages;
  const open = toolCallsOf(last);
  if (open.length === 0) return messages;
  const output = { type: "text", text: `[not executed: ${reason}]` } as const;
  const results = open.map(({ callId, toolName }) => ({
    type: "tool_result" as const,
    callId,
    toolName,
    output,
    isError: true,
  }));
  return [...messages, toolMessage(results)];
}
