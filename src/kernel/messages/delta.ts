import type { RunId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";

/** The types of deltas. */
export const deltaTypes = ["message_update", "message_reset", "tool_execution_update"] as const;

interface DeltaBase {
  readonly runId: RunId;
  readonly taskId: TaskId;
}

/**
 * E2: a piece of a message or of a tool's progress, sent while it is produced. A delta is not an event: it has no `seq`
 * and is deleted by the commit that records the complete message or result. A reader that connects late receives the
 * deltas so far.
 */
export type Delta =
  /** A piece of a message. */
  | (DeltaBase & {
      readonly type: "message_update";
      /** Sequence number of the message's `message_start`. */
      readonly messageSeq: number;
      /** Number of the attempt that produced the piece. */
      readonly attempt: number;
      /** Position of `text` in all text of this kind, in UTF-16 code units. Readers use it to detect overlaps. */
      readonly offset: number;
      /** Kind of the text. */
      readonly kind: "text" | "reasoning" | "tool_input";
      /** The piece of text. */
      readonly text: string;
    })
  /** A new attempt of a message starts. Readers must discard all earlier pieces of the message. */
  | (DeltaBase & { readonly type: "message_reset"; readonly messageSeq: number; readonly attempt: number })
  /** A progress update of a tool. */
  | (DeltaBase & {
      readonly type: "tool_execution_update";
      readonly callId: string;
      readonly update: JsonValue;
    });
