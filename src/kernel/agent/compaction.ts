import type { ChatMessage } from "../messages/chat-message.ts";
import type { ContextUsage } from "./extension-context.ts";
import type { RunContext } from "./run-context.ts";
import type { SessionEntry } from "../sessions/session-entry.ts";
import type { Transcript } from "../messages/transcript.ts";

export interface CompactionRequest {
  /** The visible path, root first. */
  readonly path: readonly SessionEntry[];
  readonly instructions?: string;
}

/** What a `compaction` entry is made of. */
export interface CompactionResult {
  readonly summary: string;
  readonly firstKeptEntryId: string;
}

/** When and how a session is compacted. S3: at durable points only, and stored entries are never touched. */
export interface Compaction {
  shouldCompact(usage: ContextUsage): boolean;
  /** `null`: there is nothing to compact, or no summary was to be had; nothing changes then. */
  compact(request: CompactionRequest): Promise<CompactionResult | null>;
}

/** What `ctx.compact` is asked to do, between turns (S3). */
export interface CompactionStep {
  readonly transcript: Transcript;
  /** What the transcript takes up of the model's window now. */
  readonly contextTokens: number;
  /** A person asked for it. */
  readonly manual?: boolean;
  /**
   * Gives the messages that stand for all of these; all of them again when there is nothing to be had. Runs once. Model calls go through
   * the `ctx` it is handed, whose steps are scoped under the compaction.
   */
  readonly compact: (messages: readonly ChatMessage[], ctx: RunContext) => Promise<readonly ChatMessage[]>;
}

export interface CompactedTranscript {
  /** J4: a new chain; the transcript that was handed in when nothing changed. */
  readonly transcript: Transcript;
  /** Under which the entry that says so belongs in the session; `null` when nothing changed. */
  readonly entryId: string | null;
  /** What it takes up now, by the measure of `contextTokens`. */
  readonly tokens: number;
}
