import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { AssistantMessage, ChatMessage, UserMessage } from "../messages/chat-message.ts";
import type { ToolCallPart } from "../messages/content.ts";
import type { ThinkingLevel, ToolChoice, ToolSpec } from "../messages/model.ts";
import type { ToolResult } from "../messages/tool-call.ts";
import type { Transcript } from "../messages/transcript.ts";
import type { Usage } from "../messages/usage.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { ModelReference, SessionEntry } from "../sessions/session-entry.ts";

/** What `ctx.turn` passes to its `plan` function when an invocation starts. */
export interface TurnOpening {
  /** The input as it was submitted. */
  readonly input: JsonValue;
  /** Channel that the run's input came from. `null` if the submission did not name a channel. */
  readonly channel: string | null;
  /** Id of the session that stores the task's history. `null` if the task has no history. */
  readonly sessionId: SessionId | null;
  /**
   * The visible session entries before this invocation, oldest first. If the session was compacted, the path starts with
   * the first entry that the newest compaction keeps.
   */
  readonly path: readonly SessionEntry[];
}

/**
 * The parts that an invocation uses from start to end, even if prompt files, tools or the session change in this
 * time.
 */
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
   * Messages that replace the history of the session path. They are stored in full, while a session path is stored
   * as a reference to its last entry.
   */
  readonly history?: readonly ChatMessage[];
  /**
   * Messages that came before this task's input in the session of the task: from earlier tasks of this run, or from
   * the submission of the run. They are stored in full. Default: none.
   */
  readonly earlier?: readonly ChatMessage[];
  /**
   * Maximum number of tool calls that are executed after one model call. Each further call gets an error result. If
   * absent, all calls are executed.
   */
  readonly maxToolCallsPerTurn?: number;
  /** Data that the agent has read from the session path and uses when the invocation ends. Default: `null`. */
  readonly carried?: JsonValue;
  /** Events that are emitted with the step, such as what was recalled from a memory. Default: none. */
  readonly events?: readonly EmittableEvent[];
  /** Whether an extension replaced the user's message. If `true`, `input` is the replacement. Default: `false`. */
  readonly isTransformed?: boolean;
  /** Present if an extension has handled the input. The invocation then ends with this reply and calls no model. */
  readonly handled?: HandledInput;
}

/** How an extension has handled an input. */
export interface HandledInput {
  /**
   * The answer to the user. `null` if the extension gives no answer; the session then stores neither the input nor
   * an answer.
   */
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
  /** The history as the model sees it. It starts its own digest chain, to which the invocation appends. */
  readonly history: Transcript;
  /** Messages that came before this task's input in the session of the task, as `TurnPlan.earlier` gave them. */
  readonly earlier: readonly ChatMessage[];
  /** Data from the session path, as planned. */
  readonly carried: JsonValue;
  /** Id of the session that stores the task's history. `null` if the task has no history. */
  readonly sessionId: SessionId | null;
  /** Id of the entry that the first message of this invocation follows. `null` for the first message of a session. */
  readonly leafId: string | null;
  /**
   * Role whose model the invocation calls: `main`, except for a task that shares the prompt of a call in another
   * role.
   */
  readonly role: string;
  /**
   * The model that replaces the agent's main model, as an entry of the session path sets it. `null` if no entry
   * sets one.
   */
  readonly model: ModelReference | null;
  /** The thinking level of the main model, as an entry of the session path sets it. `null` if no entry sets one. */
  readonly thinkingLevel: ThinkingLevel | null;
  /** Context window of the main model, in tokens. `null` if it is unknown. */
  readonly contextWindow: number | null;
  /** Time at which the invocation started, in epoch milliseconds. */
  readonly at: number;
  /** Whether an extension replaced the user's message. If `true`, `input` is the replacement. */
  readonly isTransformed: boolean;
  /** How an extension has handled the input. `null` if no extension has. */
  readonly handled: HandledInput | null;
  /** Whether steering waited when the invocation began. The main loop then reads it before its first model call. */
  readonly isSteered: boolean;
  /**
   * How often the task was resumed after a stop. The number distinguishes the session entries that each end of the
   * task writes.
   */
  readonly resumeCount: number;
}

/** The turn that is about to start, for `prepareStep`. */
export interface TurnStart {
  /** Number of the turn, from 1. */
  readonly turn: number;
  /** The conversation so far. */
  readonly messages: Transcript;
  /** Usage of all turns so far. */
  readonly usage: Usage;
  /** Names of the tools that the turn would offer to the model. */
  readonly toolNames: readonly string[];
  readonly facts: RunFacts;
}

/** Changes for one turn. An absent field changes nothing. */
export interface TurnChanges {
  /** Role whose model answers in this turn: `main` or a key of the agent's option `models`. */
  readonly role?: string;
  /**
   * Names of the tools that the model may call in this turn. A call of another tool gets an error result. With an
   * empty list, the model may call no tool.
   */
  readonly tools?: readonly string[];
  /** How the model chooses tools in this turn. */
  readonly toolChoice?: ToolChoice;
  /** User messages that are appended to the conversation before the turn. They remain in the conversation. */
  readonly messages?: readonly (string | UserMessage)[];
}

/**
 * Chooses model, tools and messages of a turn. The choice is a journaled step: a replay uses the recorded one. An
 * error that the function throws fails the run.
 */
export type PrepareStep = (turn: TurnStart) => TurnChanges | undefined | Promise<TurnChanges | undefined>;

/** A turn that ended with tool results, for `stopWhen`. */
export interface EndedTurn {
  /** Number of the turn, from 1. */
  readonly turn: number;
  /** The model's reply. */
  readonly message: AssistantMessage;
  /** The calls of the reply. */
  readonly toolCalls: readonly ToolCallPart[];
  /** The results of the calls, in the order of the calls. */
  readonly results: readonly ToolResult[];
  /** The conversation, with the results. */
  readonly messages: Transcript;
  /** Usage of all turns so far. */
  readonly usage: Usage;
  readonly facts: RunFacts;
}

/**
 * Decides whether the loop ends after a turn. The decision is a journaled step: a replay uses the recorded one. An
 * error that the function throws fails the run.
 */
export type StopCondition = (turn: EndedTurn) => boolean | Promise<boolean>;
