import type { RunId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import { type AssistantMessage, type ChatMessage, messageText } from "../messages/chat-message.ts";
import type { StopReason } from "../messages/llm-reply.ts";
import type { ThinkingLevel } from "../messages/model.ts";
import type { Usage } from "../messages/usage.ts";
import type { RunStatus } from "../run/run-result.ts";

/**
 * Whether an entry is part of the conversation. Only `visible` entries are. S2: a user's entry is `pending` from
 * its submission until the invocation has ended. S1: the other entries of an invocation are `hidden` until it has
 * ended, so that a tool call without a result is never visible.
 *
 * @advanced
 */
export type EntryVisibility = "pending" | "hidden" | "visible";

/** Names a model. */
export interface ModelReference {
  /** Name of the provider. */
  readonly provider: string;
  /** Id of the model at the provider. */
  readonly modelId: string;
}

/** How the model gave a message. */
export interface MessageSource {
  /** The model that answered. */
  readonly model: ModelReference;
  /** Why the model stopped. */
  readonly stopReason: StopReason;
  /** Usage and cost of the call. */
  readonly usage: Usage;
}

interface EntryBase {
  /** Id of the entry, unique in its session. */
  readonly id: string;
  /** Id of the entry before this one on its branch. `null` for the first entry. */
  readonly parentId: string | null;
  /** Time of the entry, in epoch milliseconds. */
  readonly at: number;
  /** Id of the run that wrote the entry. `null` for an entry that was written outside any run. */
  readonly runId: RunId | null;
  /** Id of the task that wrote the entry. The retention of the task says how long its entries are kept. */
  readonly taskId: TaskId | null;
}

/**
 * One node of a session's tree. The conversation is the path from the current entry to the root. A stored entry never changes.
 */
export type SessionEntry =
  /**
   * A message of the conversation. If a model wrote it, the entry also has the model, the stop reason, the usage
   * and the cost.
   */
  | (EntryBase & { readonly type: "message"; readonly message: ChatMessage } & Partial<MessageSource>)
  /** A summary that replaces all entries of the path before `firstKeptEntryId` in what the model sees. */
  | (EntryBase & {
      readonly type: "compaction";
      readonly summary: string;
      readonly firstKeptEntryId: string;
      readonly tokensBefore: number;
      /** The model that applies at this place (`sessionSettings`). Absent if the path sets no model. */
      readonly model?: ModelReference;
      /** The thinking level that applies at this place. Absent if the path sets no level. */
      readonly thinkingLevel?: ThinkingLevel;
    })
  /** A summary of an abandoned branch, whose last entry is `fromId`. */
  | (EntryBase & { readonly type: "branch_summary"; readonly summary: string; readonly fromId: string })
  /**
   * Moves the current entry, so that the conversation continues after the entry `targetId`. `null` starts a new
   * branch at the root.
   */
  | (EntryBase & { readonly type: "leaf"; readonly targetId: string | null })
  /** Sets the label of the entry `targetId`. `null` removes the label. */
  | (EntryBase & { readonly type: "label"; readonly targetId: string; readonly label: string | null })
  /** The conversation continues with another model. */
  | (EntryBase & { readonly type: "model_change"; readonly provider: string; readonly modelId: string })
  /** The conversation continues with another thinking level. */
  | (EntryBase & { readonly type: "thinking_level_change"; readonly level: ThinkingLevel })
  /** Sets the name of the session. */
  | (EntryBase & { readonly type: "session_info"; readonly name: string })
  /** Data of an extension. The model does not see it. */
  | (EntryBase & { readonly type: "custom"; readonly customType: string; readonly data: JsonValue })
  /** A message of an extension. The model sees it. */
  | (EntryBase & {
      readonly type: "custom_message";
      readonly customType: string;
      readonly message: ChatMessage;
    });

/** The status of an invocation that ended before it completed. */
export type InterruptedStatus = Exclude<RunStatus, "completed">;

/**
 * S1: creates the text with which an interrupted invocation ends in its session. It is the text that the model had
 * written, followed by `[interrupted: REASON]`, or only this marker. The marker tells the model of the next
 * invocation that the answer is not complete. The reason is the status, or `guardrail: NAME` if a guardrail stopped
 * the invocation. Reasoning and ids of the provider are removed, because they belong to the unchanged text.
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

/**
 * Whether `interruptedMessage` created the message. It does not compare the text, because a model can write the
 * same text.
 */
export function isInterruptedMessage({ role, providerMetadata }: ChatMessage): boolean {
  return role === "assistant" && typeof providerMetadata?.["reeve"]?.["interrupted"] === "string";
}
