import type { ChatMessage } from "../messages/chat-message.ts";
import type { SessionId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { ToolSpec } from "../messages/model.ts";
import type { SessionEntry } from "../sessions/session-entry.ts";
import type { Transcript } from "../messages/transcript.ts";

/** What an invocation finds when it begins. */
export interface TurnOpening {
  /** As it came in. */
  readonly input: JsonValue;
  /** Where the run's input came from; `null`: nobody said. */
  readonly channel: string | null;
  /** What keeps the task's history; `null`: nothing does. */
  readonly sessionId: SessionId | null;
  /** The visible path, root first: what was said before this invocation. */
  readonly path: readonly SessionEntry[];
}

/** What an invocation is to go by until it ends, whatever happens to prompt files, tools and the session meanwhile. */
export interface TurnPlan {
  /** After whoever may transform it. */
  readonly input: JsonValue;
  readonly instructions: string;
  /** The instructions were not built for this invocation. */
  readonly fromCache?: boolean;
  /** What the model is told of, in this order. */
  readonly tools: readonly ToolSpec[];
  /** In place of what the path says; kept whole, where a path is kept by its leaf. */
  readonly history?: readonly ChatMessage[];
}

/** J4: a plan as it was frozen. */
export interface Turn {
  readonly input: JsonValue;
  readonly instructions: string;
  readonly instructionsHash: string;
  readonly tools: readonly ToolSpec[];
  /** What was said before, as the model is to see it; a chain of its own, to append to. */
  readonly history: Transcript;
  readonly sessionId: SessionId | null;
  /** The entry that what is said now comes after; `null` for the first words of a session. */
  readonly leafId: string | null;
  /** Epoch milliseconds. */
  readonly at: number;
  /** How often its task had ended, stopped by somebody, and was resumed: what is said at each end is told apart by it. */
  readonly resumeCount: number;
}
