/** The SQL in which the dialects differ. */
export interface Dialect {
  /** Whether a query may contain a statement that writes (`WITH name AS (UPDATE ...)`), which saves a round trip. */
  readonly writesInQueries: boolean;
  /** The column of the user in `usage_totals` and `allotments`. */
  readonly userColumn: string;
  /** The columns of `messages` for tenant and user of the sender. Empty for SQLite, which reads them from the body. */
  readonly senderColumns: readonly string[];
  /** SQL for an id of a message that is greater than all ids of its agent. */
  readonly lastMessagePlace: string;
  /** SQL for the tenant of a message's sender. */
  readonly senderTenant: string;
  readonly senderUser: string;

  /** SQL assignments that take a run away from its owner. */
  readonly leave: string;
  /** Column of `runs` with the id of the store that owns a run. Absent in PostgreSQL. */
  readonly holderColumn?: string;
  /** Maximum time in milliseconds that one transaction spends on deletions. */
  readonly sliceMs: number;
  /** Whether the table `approvals` contains the number of the commit that asks. */
  readonly hasApprovalNumbers: boolean;

  /**
   * SQL for the time of a run's last commit. SQLite leaves out the last commits of the store, which `lateCommits`
   * reads.
   */
  readonly lastCommitAt: string;
  readonly lateCommits?: string;
  /** Returns an SQL condition for runs with a label. The parameters are name and value. */
  readonly hasLabel: (name: string, value: string) => string;
  /** SQL source of the labels in the order of the runs, so that a page of runs with a label costs O(page). */
  readonly labelSource?: string;
  /**
   * Whether a list first counts entries of each suitable index and then names the index to read. It is needed for a
   * database that does not know how many rows have a value.
   */
  readonly probesIndexes: boolean;
  /**
   * K5: SQL for a number, as `position`, that is less than the `change` of every row that this snapshot does not
   * see yet.
   */
  readonly changePosition: string;
  /** SQL of the name of a run's agent. */
  readonly agentName: string;

  /** The column of `entries` that orders the entries of a session. */
  readonly entryPlace: string;
  /** SQL for a place after all entries of the session `$1`. */
  readonly nextEntryPlace: string;
  /** Returns the place before all rows of a session. The rows of a new session get the next places. */
  readonly placeBefore: (session: number) => number;
  /** Number of rows of entries that are read at once to follow a path. */
  readonly entriesAhead: number;
  /**
   * Returns an SQL condition for the rows of `entries` that belong to a session. With a place, it selects only the
   * rows after it or up to it. The place is part of the same condition, because SQLite uses only one lower and one
   * upper bound for a search.
   */
  readonly entriesOf: (session: string, options?: EntryRange) => string;

  /**
   * SQL that copies rows of entries of the session `$1` to the session `$2`, to the places after `$3`. `$4` is
   * JSON: a list of the place and the new hash (seal) of each row.
   */
  readonly copyEntries: string;

  /** SQL that inserts a piece of a content. The parameters are content, place and data. */
  readonly insertPiece: string;
  /** Whether a text content with only one piece is stored as a text. */
  readonly storesTextPieces: boolean;
  /** Reads the pieces of the content `$1`. */
  readonly readContent: string;
  /**
   * SQL that reads the pieces of the contents with the hashes `$1`, with their hash, in one statement: between two
   * statements, a content could be deleted in part. It may read the row of any tenant, because the bytes of equal
   * hashes are equal.
   */
  readonly readAnyContents: string;
}

export interface EntryRange {
  /** Name of the table in the query. Default: `entries`. */
  readonly as?: string;
  /** SQL expression of a position: the query returns only rows after it. It must not be less than the first position of the session. */
  readonly after?: string;
  /** SQL expression for the position of the last row that the query returns. It must not exceed the last position of the session. */
  readonly upTo?: string;
}
