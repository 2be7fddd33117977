export interface CommitRow {
  readonly id: number;
  readonly number: number;
  readonly at: number;
  /** Seq that follows the commit's last event. */
  readonly nextEvent: number;
  /** E1: link of the commit in the chain of the run's log. */
  readonly link: string;
  readonly body: string;
  /** If retention erased text of the commit: the hash that proves the erased row. Otherwise `null`. */
  readonly seal: string | null;
}

/** The columns that are needed to decode a commit. */
export type CommitText = Pick<CommitRow, "number" | "at" | "nextEvent" | "body">;

export const intoCommits = "INSERT INTO commits (run, number, at, next_event, link, body)";
export const insertCommit = `${intoCommits} VALUES (?, ?, ?, ?, ?, ?)`;
