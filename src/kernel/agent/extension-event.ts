import type { ChatMessage } from "../messages/chat-message.ts";
import type { ToolOutput } from "../messages/content.ts";
import type { Event, EventType } from "../events/event.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { ToolResult } from "../messages/tool-result.ts";

/**
 * The events that an extension may answer: what its handler receives (`event`) and what it may return (`result`).
 * Handlers run one after another; a handler that returns nothing changes nothing. J7: the final result is journaled, so
 * no handler runs again on replay.
 */
export interface ExtensionEvents {
  /**
   * Sent before an invocation starts. `transform` replaces the input. `handled` ends the invocation without a model
   * call.
   */
  input: {
    readonly event: { readonly input: JsonValue; readonly channel?: string };
    readonly result:
      | { readonly action: "transform"; readonly input: JsonValue }
      | { readonly action: "handled" };
  };
  /** Sent when the system prompt is built. A handler may replace the prompt; the last handler wins. */
  before_agent_start: {
    readonly event: { readonly systemPrompt: string };
    readonly result: { readonly systemPrompt: string };
  };
  /** Sent when the history is loaded. A handler may replace the messages; the next handler receives the replacement. */
  context: {
    readonly event: { readonly messages: readonly ChatMessage[] };
    readonly result: { readonly messages: readonly ChatMessage[] };
  };
  /** Sent before a tool call. A handler may block the call; the model then receives a tool error with the reason. */
  tool_call: {
    readonly event: ToolCall;
    readonly result: { readonly block: true; readonly reason: string };
  };
  /** Sent after a tool call. A handler may patch the result; the next handler receives the patched result. */
  tool_result: {
    readonly event: { readonly call: ToolCall; readonly result: ToolResult };
    readonly result: {
      readonly output?: ToolOutput;
      readonly isError?: boolean;
      readonly terminate?: ToolResult["terminate"];
    };
  };
  /** Sent before a compaction. A handler may cancel the compaction or provide the summary. */
  session_before_compact: {
    readonly event: { readonly messages: readonly ChatMessage[]; readonly instructions?: string };
    readonly result:
      | { readonly cancel: true }
      | { readonly summary: string; readonly firstKeptEntryId: string };
  };
}

/** A type of event that an extension can handle: an event that it may answer, or any event of the run's log. */
export type ExtensionEventType = keyof ExtensionEvents | EventType;

/**
 * What a handler of this event type receives: the answerable form from `ExtensionEvents` if there is one, else the
 * event of the log.
 */
export type ExtensionEvent<Type extends ExtensionEventType> = Type extends keyof ExtensionEvents
  ? ExtensionEvents[Type]["event"]
  : Type extends EventType
    ? Event<Type>
    : never;

/** What a handler of this event type may return. Only the events of `ExtensionEvents` accept a result. */
export type ExtensionResult<Type extends ExtensionEventType> = Type extends keyof ExtensionEvents
  ? ExtensionEvents[Type]["result"] | undefined | void
  : void;
