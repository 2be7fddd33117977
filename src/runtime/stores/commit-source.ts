import type { RunId } from "../../kernel/index.ts";

/** Whose commit it is, and of when. */
export interface CommitSource {
  readonly runId: RunId;
  /** Epoch milliseconds. */
  readonly at: number;
}
