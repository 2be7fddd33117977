import type { Failure } from "../base/fault.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { Transcript } from "../messages/transcript.ts";
import type { CompactionSkip } from "../run/compaction-skip.ts";
import type { SessionEntry } from "../sessions/session-entry.ts";
import type { ContextUsage } from "./extension-context.ts";
import type { RunContext } from "./run-context.ts";

/** A session path to compact. */
interface CompactionRequest {
  /** The visible entries of the session path, root first. */
  readonly path: readonly SessionEntry[];
  /** Additional instructions for the summary. */
  readonly instructions?: string;
}

/** The content of a `compaction` entry of a session. */
export interface CompactionResult {
  /** Summary that replaces all entries before `firstKeptEntryId`. */
  readonly summary: string;
  /** Id of the first entry that the model still sees. */
  readonly firstKeptEntryId: string;
}

/**
 * Decides when a session is compacted, and how. S3: compaction runs only at durable points and never changes stored
 * entries.
 */
export interface Compaction {
  /** Whether a session with this context usage must be compacted. */
  shouldCompact(usage: ContextUsage): boolean;
  /**
   * Compacts a session path. Returns `null` and changes nothing if there is nothing to compact or the model gave no
   * summary.
   */
  compact(request: CompactionRequest): Promise<CompactionResult | null>;
}

/** A compaction that wrote no entry. */
export interface SkippedCompaction {
  readonly skipped: CompactionSkip;
  /** Why there is no summary. */
  readonly failure?: Failure;
}

/** What a run of kind `compaction` does with its session. */
export interface SessionCompactionStep {
  /** Additional instructions for the summary. */
  readonly instructions?: string;
  /** Whether a person requested the compaction. */
  readonly manual: boolean;
  /**
   * Makes the summary. Called once per compaction. Model calls in it must use the `ctx` argument: their steps are
   * scoped under the compaction, so that a crash does not pay for the summary twice.
   */
  readonly compact: (
    request: SessionCompactionRequest,
    ctx: RunContext,
  ) => Promise<CompactionResult | SkippedCompaction>;
}

/** The session that `ctx.compactSession` compacts. */
export interface SessionCompactionRequest extends CompactionRequest {
  /** Number of tokens that the session occupies. */
  readonly contextTokens: number;
  /** Context window of the model that continues the session. `null` if it is unknown. */
  readonly contextWindow: number | null;
}

/** The result of `ctx.compactSession`. */
export type SessionCompactionOutcome =
  /** Id of the `compaction` entry, and the tokens of the session before and after it. */
  | { readonly entryId: string; readonly tokensBefore: number; readonly tokensAfter: number }
  | SkippedCompaction;

/** S3: what `ctx.compact` does between two turns. */
export interface CompactionStep {
  /** The transcript to compact. */
  readonly transcript: Transcript;
  /** Number of tokens of the model's context window that the transcript occupies now. */
  readonly contextTokens: number;
  /** Whether a person requested the compaction. Default: `false`. */
  readonly manual?: boolean;
  /**
   * Returns the messages that replace the given ones, or the given messages if nothing could be shortened. Called
   * once per compaction. Model calls in it must use the `ctx` argument, whose steps are scoped under the
   * compaction.
   */
  readonly compact: (messages: readonly ChatMessage[], ctx: RunContext) => Promise<readonly ChatMessage[]>;
}

/** The result of `ctx.compact`. */
export interface CompactedTranscript {
  /**
   * J4: the compacted transcript, which starts a new chain of digests. If nothing changed, it is the transcript
   * that was passed in.
   */
  readonly transcript: Transcript;
  /** Id for the `compaction` entry of the session. `null` if nothing changed. */
  readonly entryId: string | null;
  /** Number of tokens that `transcript` occupies, in the same measure as `CompactionStep.contextTokens`. */
  readonly tokens: number;
}

/** The size that a compacted history must not exceed. */
export interface CompactionGoal {
  /** Maximum number of tokens of the compacted history. */
  readonly maxTokens: number;
}

/**
 * Shortens a history so that it fits a model's context window.
 *
 * - S3: it never changes stored messages and never separates a tool call from its result.
 * - It keeps the leading system messages and the order of messages, and does not change the array it receives.
 * - If it fails, for example because a summary is empty, it returns the history unchanged.
 * - If there is nothing to shorten, it returns the same array that it received.
 */
export interface CompactionStrategy {
  /**
   * Returns the shortened history. A strategy that has its own limits may ignore `goal`; later strategies then
   * shorten further.
   */
  compact(rawHistory: readonly ChatMessage[], goal?: CompactionGoal): Promise<readonly ChatMessage[]>;
  /**
   * Whether `compact` may return a different history. The answer must depend on the arguments only, so that a replay
   * gets the same answer. J4: each call of `compact` is a journaled step; without this method, every model call is
   * preceded by such a step.
   */
  isDue?(rawHistory: readonly ChatMessage[], goal?: CompactionGoal): boolean;
}
