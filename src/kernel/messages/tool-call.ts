import type { JsonObject } from "../base/json-value.ts";
import { type ChatMessage, toolCallsOf } from "./chat-message.ts";
import type { ToolCallPart, ToolOutput } from "./content.ts";

/** A tool call as the model made it. */
export type ToolCall = Omit<ToolCallPart, "type">;

/** The result of a tool call. */
export interface ToolResult {
  /** What the model sees. */
  readonly output: ToolOutput;
  /** Whether the call failed. */
  readonly isError: boolean;
  /** Data that is stored with the event. The model does not see it. */
  readonly metadata?: JsonObject;
  /**
   * Asks the loop to end without another model call. `true` has an effect only if all calls of the batch ask for
   * it. `"always"` ends the loop in any case, after the other calls of the batch were executed. `"answer"` ends it
   * like `"always"`, and the output of the first such result is the answer.
   */
  readonly terminate?: boolean | "always" | "answer";
}

/**
 * S1, S3: finds the first tool call without its result, or result without its call, in a conversation, and returns
 * a description of it. Providers refuse such conversations. The results of a call must follow directly; the calls
 * of the last message may be without results. Returns `undefined` if all pairs are complete.
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
