import type { RunId } from "../../kernel/index.ts";

/** The run that wrote a commit, and the time of the commit. */
export interface CommitSource {
  readonly runId: RunId;
  /** Epoch milliseconds. */
  readonly at: number;
}
