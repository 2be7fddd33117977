import type { ChatMessage } from "../messages/chat-message.ts";
import type { ErrorKind } from "../base/error-kind.ts";
import type { Failure } from "../base/fault.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { StopReason } from "../messages/stop-reason.ts";
import type { ToolResult } from "../messages/tool-result.ts";
import type { Usage } from "../messages/usage.ts";

/** What happens while an architecture drives an invocation. Its pieces of text are deltas, not events (E2). */
export interface EngineEvents {
  agent_start: {
    readonly input: JsonValue;
    readonly architecture: string;
    readonly instructionsHash?: string;
  };
  /** The invocation failed for good; never sent for a cancel (trap O8). */
  agent_error: { readonly failure: Failure; readonly kind?: ErrorKind };
  turn_start: { readonly turn: number };
  turn_end: { readonly turn: number; readonly stopReason: StopReason; readonly toolCalls: number };
  /** The deltas of this message carry this event's seq. */
  message_start: {
    readonly role: ChatMessage["role"];
    readonly attempt: number;
    /** The one to be asked; middleware may ask another. */
    readonly model?: { readonly provider: string; readonly modelId: string };
    /** In which role it is asked, unless `main`: a summary or a judge's verdict is not the agent's answer. */
    readonly modelRole?: string;
  };
  message_end: {
    readonly message: ChatMessage;
    readonly model?: { readonly provider: string; readonly modelId: string };
    readonly stopReason?: StopReason;
    readonly usage?: Usage;
    /** Of the attempt that was answered. */
    readonly durationMs?: number;
  };
  tool_execution_start: { readonly callId: string; readonly toolName: string; readonly input: JsonValue };
  tool_execution_end: {
    readonly callId: string;
    readonly toolName: string;
    readonly result: ToolResult;
    readonly durationMs: number;
    /** `denied`: it was not executed. */
    readonly status?: "ok" | "error" | "denied";
    readonly metadata?: JsonObject;
  };
}
