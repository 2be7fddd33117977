import type { ChatMessage } from "../messages/chat-message.ts";
import type { RunId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Usage } from "../messages/usage.ts";

/**
 * How far an entry is from being part of the conversation. S1, S2: a user's entry is `pending` from the submission on;
 * what an invocation adds stays `hidden` until it is closed; only `visible` entries are history. No orphan tool call is
 * ever visible.
 */
export type EntryVisibility = "pending" | "hidden" | "visible";

interface EntryBase {
  readonly id: string;
  /** The entry before it on its branch; `null` for the first. */
  readonly parentId: string | null;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The run that wrote it; `null` for an act outside any run. */
  readonly runId: RunId | null;
  /** The task of that run which wrote it, so that each task's history is kept as long as it is to be. */
  readonly taskId: TaskId | null;
}

/**
 * One node of a session's tree. The conversation is the path from the leaf to the root. Stored entries never change.
 */
export type SessionEntry =
  | (EntryBase & { readonly type: "message"; readonly message: ChatMessage; readonly usage?: Usage })
  /** Before `firstKeptEntryId`, the summary stands in for the path. */
  | (EntryBase & {
      readonly type: "compaction";
      readonly summary: string;
      readonly firstKeptEntryId: string;
      readonly tokensBefore: number;
    })
  /** What was tried on a branch that was left. */
  | (EntryBase & { readonly type: "branch_summary"; readonly summary: string; readonly fromId: string })
  /** The conversation goes on from `targetId`. */
  | (EntryBase & { readonly type: "leaf"; readonly targetId: string | null })
  | (EntryBase & { readonly type: "label"; readonly targetId: string; readonly label: string | null })
  | (EntryBase & { readonly type: "model_change"; readonly provider: string; readonly modelId: string })
  | (EntryBase & { readonly type: "thinking_level_change"; readonly level: string })
  | (EntryBase & { readonly type: "session_info"; readonly name: string })
  /** An extension's own data; not shown to the model. */
  | (EntryBase & { readonly type: "custom"; readonly customType: string; readonly data: JsonValue })
  /** An extension's message; shown to the model. */
  | (EntryBase & {
      readonly type: "custom_message";
      readonly customType: string;
      readonly message: ChatMessage;
    });
