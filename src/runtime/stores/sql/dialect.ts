/** The SQL in which the dialects differ. */
export interface Dialect {
  /** Whether a query may be a statement that writes (`WITH name AS (UPDATE ...)`), which saves a round trip. */
  readonly writesInQueries: boolean;
  /** The column of the user in `usage_totals` and `allotments`. */
  readonly userColumn: string;
  /** The columns of `messages` for tenant and user of the sender. SQLite has none and reads them from the body. */
  readonly senderColumns: readonly string[];
  /** An id of a message that is greater than all ids of its agent. */
  readonly lastMessagePlace: string;
  /** Tenant and user of the sender of a message. */
  readonly senderTenant: string;
  readonly senderUser: string;

  /** Assignments that take a run from its owner. */
  readonly leave: string;
  /** Column of `runs` with the id of the store that owns a run. PostgreSQL has none. */
  readonly holderColumn?: string;
  /** Maximum time in milliseconds that one transaction spends on deletions. */
  readonly sliceMs: number;
  /** Whether `approvals` holds the number of the commit that asks. */
  readonly hasApprovalNumbers: boolean;

  /** Time of the last commit of a run. SQLite leaves out the last commits of the store, which `lateCommits` reads. */
  readonly lastCommitAt: string;
  readonly lateCommits?: string;
  /** Returns a condition for runs with a label. The parameters are name and value. */
  readonly hasLabel: (name: string, value: string) => string;
  /** Reads the labels in the order of the runs, so that a page of runs with a label costs O(page). */
  readonly labelSource?: string;
  /**
   * Whether a list counts the first entries of each index that fits and names the one to read, because the database does not know
   * how many rows have a value.
   */
  readonly probesIndexes: boolean;
  /** K5: reads a number, as `position`, that is less than the `change` of every row that this snapshot does not see yet. */
  readonly changePosition: string;
  /** SQL of the name of a run's agent. */
  readonly agentName: string;

  /** The column of `entries` that orders the entries of a session. */
  readonly entryPlace: string;
  /** SQL of a place behind all entries of the session `$1`. */
  readonly nextEntryPlace: string;
  /** Returns the place before all rows of a session. The rows of a new session follow it one by one. */
  readonly placeBefore: (session: number) => number;
  /** Number of rows of entries that are read at once to follow a path. */
  readonly entriesAhead: number;
  /**
   * Returns a condition for the rows of `entries` that belong to a session, and lie after or up to a place if one is given. A second
   * condition for the place would not narrow the search in SQLite, which uses one lower and one upper bound.
   */
  readonly entriesOf: (session: string, options?: EntryRange) => string;

  /**
   * Copies rows of entries of the session `$1` to the session `$2`, to the places after `$3`. `$4` is JSON: a list of the place and the new
   * seal of each.
   */
  readonly copyEntries: string;

  /** Inserts a piece of a content. The parameters are content, place and data. */
  readonly insertPiece: string;
  /** Whether a content of one piece that is a text is stored as a text. */
  readonly storesTextPieces: boolean;
  /** Reads the pieces of the content `$1`. */
  readonly readContent: string;
  /**
   * Reads the pieces of the contents with the hashes `$1`, with their hash, in one statement: between two, a content could be freed
   * in part. Any tenant's row will do, because the bytes of equal hashes are equal.
   */
  readonly readAnyContents: string;
}

export interface EntryRange {
  /** Name of the table in the query. Default: `entries`. */
  readonly as?: string;
  /** SQL of the place after which the entries lie. It must not lie before those of the session. */
  readonly after?: string;
  /** SQL of the place of the last entry. It must not lie behind those of the session. */
  readonly upTo?: string;
}
