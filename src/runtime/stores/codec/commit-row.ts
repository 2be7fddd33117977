export interface CommitRow extends WithContents {
  readonly id: number;
  readonly number: number;
  readonly at: number;
  /** Sequence number (`seq`) that follows that of the commit's last event. */
  readonly nextEvent: number;
  /** E1: hash (link) of the commit in the chain of the run's log. */
  readonly link: string;
  readonly body: string;
  /** JSON of the references to the large values of the commit. `null` if it has none. */
  readonly refs: string | null;
  /** The hash that proves the erased row, if retention erased text of the commit. Otherwise `null`. */
  readonly seal: string | null;
}

/** The contents that a row refers to, by hash. They are loaded with a row that has `refs`. */
export interface WithContents {
  readonly contents?: ReadonlyMap<string, string>;
}

/** What is needed to decode a commit. */
export type CommitText = Pick<CommitRow, "number" | "at" | "nextEvent" | "body" | "refs"> & WithContents;
