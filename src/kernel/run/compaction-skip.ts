/** Why a compaction did not change a session. */
export type CompactionSkip =
  /** The session has no entries before the part that a compaction keeps. */
  | "nothing_to_compact"
  /** An extension cancelled the compaction. */
  | "cancelled"
  /** The summary failed, is empty or was cut. */
  | "no_summary"
  /** The summary is longer than the messages that it would replace. */
  | "longer_summary"
  /** The context window of the model is unknown, so that no automatic compaction is possible. */
  | "unknown_window"
  /** The agent was created with `compaction: false`. */
  | "disabled";
