import type { ChatMessage } from "../messages/chat-message.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { ToolSpec } from "../messages/model.ts";
import type { ModelReference, SessionEntry } from "../sessions/session-entry.ts";
import type { ThinkingLevel } from "../messages/thinking-level.ts";
import type { Transcript } from "../messages/transcript.ts";

/** What `ctx.turn` passes to its `plan` function when an invocation starts. */
export interface TurnOpening {
  /** The input as it was submitted. */
  readonly input: JsonValue;
  /** Channel that the run's input came from. `null` if the submission named none. */
  readonly channel: string | null;
  /** Id of the session that stores the task's history. `null` if the task has no history. */
  readonly sessionId: SessionId | null;
  /**
   * The visible session entries before this invocation, oldest first. If the session was compacted, the path starts with
   * the first entry that the newest compaction keeps.
   */
  readonly path: readonly SessionEntry[];
}

/** What an invocation uses from start to end, even if prompt files, tools or the session change meanwhile. */
export interface TurnPlan {
  /** The input after all transformations. */
  readonly input: JsonValue;
  /** The system prompt. */
  readonly instructions: string;
  /** Whether the system prompt was built for an earlier invocation. Default: `false`. */
  readonly fromCache?: boolean;
  /** The tools that the model sees, in this order. */
  readonly tools: readonly ToolSpec[];
  /**
   * Messages that replace the history of the session path. They are stored in full; a session path is stored by its
   * leaf.
   */
  readonly history?: readonly ChatMessage[];
  /**
   * Messages that earlier tasks of this run said in the session of this task, or with which the run was submitted.
   * Stored in full. Default: none.
   */
  readonly earlier?: readonly ChatMessage[];
  /**
   * Maximum number of tool calls that are executed after one model call. Each further call gets an error result at its own position. If
   * absent, all calls are executed.
   */
  readonly maxToolCallsPerTurn?: number;
  /** Data that the agent has read from the session path and uses when the invocation ends. Default: `null`. */
  readonly carried?: JsonValue;
  /** Events that are emitted with the step, such as what was recalled from a memory. Default: none. */
  readonly events?: readonly EmittableEvent[];
  /** Whether an extension replaced the user's message; `input` is then the replacement. Default: `false`. */
  readonly isTransformed?: boolean;
  /** Present if an extension has handled the input: the invocation ends with this reply and calls no model. */
  readonly handled?: HandledInput;
}

/** How an extension has handled an input. */
export interface HandledInput {
  /** The answer to the user. `null` if there is none; the session then keeps neither the input nor an answer. */
  readonly reply: string | null;
}

/** J4: the frozen plan of an invocation. */
export interface Turn {
  /** The input after all transformations. */
  readonly input: JsonValue;
  /** The system prompt. */
  readonly instructions: string;
  /** Hash of `instructions`. */
  readonly instructionsHash: string;
  /** The tools that the model sees, in this order. */
  readonly tools: readonly ToolSpec[];
  /** The history as the model sees it. A separate digest chain that the invocation appends to. */
  readonly history: Transcript;
  /** Messages that earlier tasks of this run said in the session of this task, as planned. */
  readonly earlier: readonly ChatMessage[];
  /** Data from the session path, as planned. */
  readonly carried: JsonValue;
  /** Id of the session that stores the task's history. `null` if the task has no history. */
  readonly sessionId: SessionId | null;
  /** Id of the entry that the first message of this invocation follows. `null` for the first message of a session. */
  readonly leafId: string | null;
  /** Role whose model the invocation calls. `main`, except for a task that shares the prompt of a call in another role. */
  readonly role: string;
  /** The model that replaces the agent's main model. `null` if the session path sets none. */
  readonly model: ModelReference | null;
  /** The thinking level of the main model. `null` if the session path sets none. */
  readonly thinkingLevel: ThinkingLevel | null;
  /** Context window of the main model, in tokens. `null` if it is unknown. */
  readonly contextWindow: number | null;
  /** Time at which the invocation started, in epoch milliseconds. */
  readonly at: number;
  /** Whether an extension replaced the user's message; `input` is then the replacement. */
  readonly isTransformed: boolean;
  /** How an extension has handled the input. `null` if none has. */
  readonly handled: HandledInput | null;
  /** Whether steering waited when the invocation began. The main loop then reads it before its first model call. */
  readonly isSteered: boolean;
  /**
   * How often the task was resumed after a stop. Distinguishes the session entries that each end of the task writes.
   */
  readonly resumeCount: number;
}
