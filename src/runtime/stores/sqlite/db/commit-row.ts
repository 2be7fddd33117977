export interface CommitRow {
  readonly id: number;
  readonly number: number;
  readonly at: number;
  /** The seq after its last event. */
  readonly nextEvent: number;
  /** Of the chain (E1). */
  readonly link: string;
  readonly body: string;
  /** Where retention erased words: what says that the link was right. */
  readonly seal: string | null;
}

/** What it takes to decode it. */
export type CommitText = Pick<CommitRow, "number" | "at" | "nextEvent" | "body">;

export const intoCommits = "INSERT INTO commits (run, number, at, next_event, link, body)";
export const insertCommit = `${intoCommits} VALUES (?, ?, ?, ?, ?, ?)`;
