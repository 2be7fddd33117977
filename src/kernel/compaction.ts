import type { ContextUsage } from "./extension-context.ts";
import type { SessionEntry } from "./session-entry.ts";

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
