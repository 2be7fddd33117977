import type { AssistantMessage, UserMessage } from "../messages/chat-message.ts";
import type { ToolCallPart } from "../messages/content.ts";
import type { ToolChoice } from "../messages/model.ts";
import type { ToolResult } from "../messages/tool-result.ts";
import type { Transcript } from "../messages/transcript.ts";
import type { Usage } from "../messages/usage.ts";
import type { RunFacts } from "../run/run-facts.ts";

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

/** What one turn does differently. A field that is absent changes nothing. */
export interface TurnChanges {
  /** Role whose model answers in this turn: `main` or a key of the agent's option `models`. */
  readonly role?: string;
  /**
   * Names of the tools that the model may call in this turn. A call of another tool gets an error result. An empty list
   * allows no tool.
   */
  readonly tools?: readonly string[];
  /** How the model chooses tools in this turn. */
  readonly toolChoice?: ToolChoice;
  /** User messages that are appended to the conversation before the turn. They stay in it. */
  readonly messages?: readonly (string | UserMessage)[];
}

/**
 * Chooses model, tools and messages of a turn. Its result is a journaled step: a replay uses the recorded one. An error
 * that it throws fails the run.
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
  /** The results of the calls, in their order. */
  readonly results: readonly ToolResult[];
  /** The conversation, with the results. */
  readonly messages: Transcript;
  /** Usage of all turns so far. */
  readonly usage: Usage;
  readonly facts: RunFacts;
}

/**
 * Whether the loop ends after a turn. Its result is a journaled step: a replay uses the recorded one. An error that it
 * throws fails the run.
 */
export type StopCondition = (turn: EndedTurn) => boolean | Promise<boolean>;
