import { messageText, type AssistantMessage, type ChatMessage } from "../messages/chat-message.ts";
import type { RunStatus } from "../run/run-result.ts";

/** The status of an invocation that was closed before it completed. */
export type InterruptedStatus = Exclude<RunStatus, "completed">;

/**
 * S1: creates the text with which an interrupted invocation ends in its session: what the model had said, followed by
 * `[interrupted: REASON]`, or the marker alone. The model sees it in the next invocation and knows that the answer is
 * not complete. The reason is the status, or `guardrail: NAME` if a guardrail stopped the invocation. Reasoning and ids
 * of the provider are dropped, because they belong to the text as it was given.
 */
export function interruptedMessage(
  status: InterruptedStatus,
  { by, said }: { readonly by?: string | undefined; readonly said?: AssistantMessage | undefined } = {},
): AssistantMessage {
  const guardrail = by === undefined ? "guardrail" : `guardrail: ${by}`;
  const interrupted = status === "guardrail_tripped" ? guardrail : status;
  const marker = `[interrupted: ${interrupted}]`;
  const text = said === undefined ? "" : messageText(said).trimEnd();
  const files = said?.content.filter(({ type }) => type === "file") ?? [];
  return {
    role: "assistant",
    content: [{ type: "text", text: text === "" ? marker : `${text} ${marker}` }, ...files],
    providerMetadata: { reeve: { ...said?.providerMetadata?.["reeve"], interrupted } },
  };
}

/** Whether `interruptedMessage` created the message. The text alone does not count, because a model can write it. */
export function isInterruptedMessage({ role, providerMetadata }: ChatMessage): boolean {
  return role === "assistant" && typeof providerMetadata?.["reeve"]?.["interrupted"] === "string";
}
