import type { ChatMessage } from "../messages/chat-message.ts";
import type { ToolOutput } from "../messages/content.ts";
import type { Event, EventType } from "./event.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { Delta } from "../messages/delta.ts";
import type { ToolCall, ToolResult } from "../messages/tool-call.ts";

/** A handler returns it to refuse a change of the session. `reason` is part of the error that the caller receives. */
export interface RefusedNavigation {
  readonly cancel: true;
  readonly reason?: string;
}

/**
 * The events that an extension may answer: what its handler receives (`event`) and what the handler may return
 * (`result`). Handlers run one after another, in the order of the extensions; a handler that returns nothing
 * changes nothing. J7: the final result is journaled, so that no handler runs again on replay.
 */
export interface ExtensionEvents {
  /**
   * Sent when an invocation starts. `input` is the submitted input, or what the previous handler made of it, and
   * `text` is its text. A result `transform` replaces the user's message. A result `handled` ends the invocation
   * without a model call. If it has a `reply`, the message and the reply become part of the session; otherwise the
   * session stores neither.
   */
  input: {
    readonly event: { readonly input: JsonValue; readonly text: string; readonly channel: string | null };
    readonly result:
      | { readonly action: "continue" }
      | { readonly action: "transform"; readonly input: JsonValue }
      | { readonly action: "handled"; readonly reply?: string };
  };
  /** Sent when the system prompt is built. A handler may replace the prompt; the next handler receives the replacement. */
  before_agent_start: {
    readonly event: { readonly systemPrompt: string; readonly text: string };
    readonly result: { readonly systemPrompt: string };
  };
  /**
   * Sent when the history is loaded, without the user's new message. A handler may replace the messages for this
   * invocation; the session does not change. The next handler receives the replacement.
   */
  context: {
    readonly event: { readonly messages: readonly ChatMessage[] };
    readonly result: { readonly messages: readonly ChatMessage[] };
  };
  /**
   * Sent before a tool call. A handler may block the call; the model then receives a tool error with the reason. A
   * handler that fails blocks the call.
   */
  tool_call: {
    readonly event: ToolCall;
    readonly result: { readonly block: true; readonly reason: string };
  };
  /**
   * Sent after a tool call. A handler may patch the result; the next handler receives the patched result. If a
   * handler returns a text as `output`, it replaces the whole output. If a handler fails, the model receives an
   * error in place of the result.
   */
  tool_result: {
    readonly event: { readonly call: ToolCall; readonly result: ToolResult };
    readonly result: {
      readonly output?: ToolOutput | string;
      readonly isError?: boolean;
      readonly terminate?: ToolResult["terminate"];
    };
  };
  /** Sent before a compaction. A handler may cancel the compaction or provide the summary; the first answer counts. */
  session_before_compact: {
    readonly event: { readonly messages: readonly ChatMessage[]; readonly instructions?: string };
    readonly result:
      | { readonly cancel: true }
      | { readonly summary: string; readonly firstKeptEntryId: string };
  };
  /**
   * Sent before a surface continues in another session. `targetSessionId` is `null` for a new session. A handler may
   * refuse; the first refusal counts.
   */
  session_before_switch: {
    readonly event: { readonly sessionId: SessionId; readonly targetSessionId: SessionId | null };
    readonly result: RefusedNavigation;
  };
  /** Sent before a session is copied up to an entry. A handler may refuse; the first refusal counts. */
  session_before_fork: {
    readonly event: { readonly sessionId: SessionId; readonly entryId: string | null };
    readonly result: RefusedNavigation;
  };
  /** Sent before a session continues after another entry. A handler may refuse; the first refusal counts. */
  session_before_tree: {
    readonly event: {
      readonly sessionId: SessionId;
      readonly leafId: string | null;
      readonly targetId: string | null;
    };
    readonly result: RefusedNavigation;
  };
}

/** A type of event that an extension may answer. */
export type AnswerableEventType = keyof ExtensionEvents;

/** A change of a session that extensions may refuse. */
export type SessionNavigation = {
  readonly [Type in "session_before_switch" | "session_before_fork" | "session_before_tree"]: {
    readonly type: Type;
    readonly event: ExtensionEvents[Type]["event"];
  };
}["session_before_switch" | "session_before_fork" | "session_before_tree"];

/**
 * A type of event that an extension can handle: an event that it may answer, any event of the run's log, or a
 * delta, which is only streamed (E2).
 */
export type ExtensionEventType = AnswerableEventType | EventType | Delta["type"];

/**
 * What a handler of this event type receives: the form in `ExtensionEvents` for an event that it may answer,
 * otherwise the event of the log, or the delta.
 */
export type ExtensionEvent<Type extends ExtensionEventType> = Type extends AnswerableEventType
  ? ExtensionEvents[Type]["event"]
  : Type extends EventType
    ? Event<Type>
    : Extract<Delta, { readonly type: Type }>;

/** What a handler of this event type may return. Only the events of `ExtensionEvents` accept a result. */
export type ExtensionResult<Type extends ExtensionEventType> = Type extends AnswerableEventType
  ? ExtensionEvents[Type]["result"] | undefined | void
  : void;
