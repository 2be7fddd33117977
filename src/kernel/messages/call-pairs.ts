import { toolCallsOf, type ChatMessage } from "./chat-message.ts";

/**
 * S1, S3: the first thing in a conversation that no provider takes: a call without its result right after it, or a result without its
 * call. The calls of the last message may still be open.
 */
export function findUnpaired(messages: readonly ChatMessage[]): string | undefined {
  let open: readonly string[] = [];
  for (const [index, message] of messages.entries()) {
    const answered = message.role === "tool" ? message.content.map(({ callId }) => callId) : [];
    const missing = open.find((callId) => !answered.includes(callId));
    if (missing !== undefined) return `call ${missing} of message ${index - 1} has no result`;
    const stray = answered.find((callId) => !open.includes(callId));
    if (stray !== undefined) return `the result of ${stray} in message ${index} has no call`;
    open = message.role === "assistant" ? toolCallsOf(message).map(({ callId }) => callId) : [];
  }
  return undefined;
}
