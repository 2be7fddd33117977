/** Why a compaction left a session as it was. */
export type CompactionSkip =
  /** The session has no entries before the part that is kept. */
  | "nothing_to_compact"
  /** An extension cancelled the compaction. */
  | "cancelled"
  /** The summary failed, is empty or was cut. */
  | "no_summary"
  /** The summary is longer than what it would replace. */
  | "longer_summary"
  /** The context window of the model is unknown, so that no compaction is automatic. */
  | "unknown_window"
  /** The agent was created with `compaction: false`. */
  | "disabled";
