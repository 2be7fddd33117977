import { toolCallsOf, type ChatMessage } from "./chat-message.ts";

/**
 * S1, S3: returns a description of the first tool call without its result, or result without its call, in a
 * conversation. Providers refuse such conversations. The results of a call must follow directly; the calls of the last
 * message may be without results. Returns `undefined` if all pairs are complete.
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
