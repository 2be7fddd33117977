import type { ChatMessage, UserMessage } from "../messages/chat-message.ts";
import type { ErrorKind } from "../base/error-kind.ts";
import type { Failure } from "../base/fault.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { StopReason } from "../messages/stop-reason.ts";
import type { ToolResult } from "../messages/tool-result.ts";
import type { Usage } from "../messages/usage.ts";

/** Who added a message in the name of the user: a caller, or code of the agent. */
export type UserMessageSource = "steering" | "follow_up" | "prepare_step" | "stop_hook" | "repair";

/** Events while an architecture drives an invocation. Streamed text is sent as deltas, not as events (E2). */
export interface EngineEvents {
  /** An invocation started. */
  agent_start: {
    readonly input: JsonValue;
    readonly architecture: string;
    readonly instructionsHash?: string;
  };
  /** The invocation failed for good. Not emitted for a cancel (trap O8). */
  agent_error: { readonly failure: Failure; readonly kind?: ErrorKind };
  /**
   * A turn started. `turn` is its number. `modelRole` is the role that `prepareStep` chose for the turn; its model then
   * speaks for the agent. Absent for `main`.
   */
  turn_start: { readonly turn: number; readonly modelRole?: string };
  /** A turn ended. `toolCalls` is the number of its tool calls. */
  turn_end: { readonly turn: number; readonly stopReason: StopReason; readonly toolCalls: number };
  /** A message was added to the conversation in the name of the user. The input of the run is not such a message. */
  user_message: { readonly message: UserMessage; readonly source: UserMessageSource };
  /** A model starts to write a message. The deltas of the message refer to the `seq` of this event. */
  message_start: {
    readonly role: ChatMessage["role"];
    readonly attempt: number;
    /** The model that the request is meant for. Middleware may call another model. */
    readonly model?: { readonly provider: string; readonly modelId: string };
    /**
     * Role whose model is called. Absent for `main`. The text of another role, such as a summary, is not the agent's
     * answer, except in a turn that `turn_start` gives to that role.
     */
    readonly modelRole?: string;
  };
  /** A message is complete. */
  message_end: {
    readonly message: ChatMessage;
    readonly model?: { readonly provider: string; readonly modelId: string };
    /** As in `message_start`. */
    readonly modelRole?: string;
    readonly stopReason?: StopReason;
    readonly usage?: Usage;
    /** Duration of the successful attempt, in milliseconds. */
    readonly durationMs?: number;
  };
  /** A tool call started. */
  tool_execution_start: { readonly callId: string; readonly toolName: string; readonly input: JsonValue };
  /** A tool call has a result. */
  tool_execution_end: {
    readonly callId: string;
    readonly toolName: string;
    readonly result: ToolResult;
    readonly durationMs: number;
    /** Outcome of the call. `denied` means that the call was not executed. */
    readonly status?: "ok" | "error" | "denied";
    readonly metadata?: JsonObject;
  };
}
