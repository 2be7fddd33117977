import type { RunId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";

interface DeltaBase {
  readonly runId: RunId;
  readonly taskId: TaskId;
}

/**
 * E2: what is shown while a message is being written or a tool is at work. Not an event: it has no seq, and is gone
 * once the commit that records the whole is there. A watcher that comes late reads what there is so far.
 */
export type Delta =
  | (DeltaBase & {
      readonly type: "message_update";
      /** The seq of the message's `message_start`. */
      readonly messageSeq: number;
      readonly attempt: number;
      /** Where `text` begins, in UTF-16 units of this kind's text, so that overlaps can be told. */
      readonly offset: number;
      readonly kind: "text" | "reasoning" | "tool_input";
      readonly text: string;
    })
  /** A new attempt begins: what was shown of the message is void. */
  | (DeltaBase & { readonly type: "message_reset"; readonly messageSeq: number; readonly attempt: number })
  | (DeltaBase & {
      readonly type: "tool_execution_update";
      readonly callId: string;
      readonly update: JsonValue;
    });
