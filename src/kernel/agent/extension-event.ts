import type { ChatMessage } from "../messages/chat-message.ts";
import type { ToolOutput } from "../messages/content.ts";
import type { Event, EventType } from "../events/event.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { ToolResult } from "../messages/tool-result.ts";

/**
 * The events an extension may answer, with what it is given and what it may return. Handlers run one after another;
 * returning nothing leaves things as they are. What comes out is journaled, so none of it runs again on replay (J7).
 */
export interface ExtensionEvents {
  /** `handled`: the extension has answered itself; no model is called. */
  input: {
    readonly event: { readonly input: JsonValue; readonly channel?: string };
    readonly result:
      | { readonly action: "transform"; readonly input: JsonValue }
      | { readonly action: "handled" };
  };
  /** The last one wins. */
  before_agent_start: {
    readonly event: { readonly systemPrompt: string };
    readonly result: { readonly systemPrompt: string };
  };
  /** Each sees what the one before returned. */
  context: {
    readonly event: { readonly messages: readonly ChatMessage[] };
    readonly result: { readonly messages: readonly ChatMessage[] };
  };
  /** The model sees a block as a tool error. */
  tool_call: {
    readonly event: ToolCall;
    readonly result: { readonly block: true; readonly reason: string };
  };
  /** Patches add up: each handler sees the result as patched so far. */
  tool_result: {
    readonly event: { readonly call: ToolCall; readonly result: ToolResult };
    readonly result: {
      readonly output?: ToolOutput;
      readonly isError?: boolean;
      readonly terminate?: ToolResult["terminate"];
    };
  };
  session_before_compact: {
    readonly event: { readonly messages: readonly ChatMessage[]; readonly instructions?: string };
    readonly result:
      | { readonly cancel: true }
      | { readonly summary: string; readonly firstKeptEntryId: string };
  };
}

export type ExtensionEventType = keyof ExtensionEvents | EventType;

/** What a handler of this event is given: the answerable form where there is one, else the event of the log. */
export type ExtensionEvent<Type extends ExtensionEventType> = Type extends keyof ExtensionEvents
  ? ExtensionEvents[Type]["event"]
  : Type extends EventType
    ? Event<Type>
    : never;

export type ExtensionResult<Type extends ExtensionEventType> = Type extends keyof ExtensionEvents
  ? ExtensionEvents[Type]["result"] | undefined | void
  : void;
