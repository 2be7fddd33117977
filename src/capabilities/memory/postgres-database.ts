/** A parameter of a statement. */
export type SqlValue = string | number | null | readonly string[];

/** Runs statements. `{name}` in SQL stands for the table `name` in the schema of the memory. */
export interface MemoryQueries {
  /** Returns all rows of a query. */
  all<Row extends object>(sql: string, ...values: readonly SqlValue[]): Promise<Row[]>;
  /** Returns the number of rows that were written. */
  run(sql: string, ...values: readonly SqlValue[]): Promise<number>;
}

/** The functions of a PostgreSQL database that a memory needs. */
export interface MemoryDatabase {
  /** Runs single statements, which may be repeated after a lost connection. */
  readonly statements: MemoryQueries;
  /** Reads with several statements that see one state of the database. */
  read<Result>(work: (queries: MemoryQueries) => Promise<Result>): Promise<Result>;
  /** Runs the work in one transaction. The work may be repeated from its start, and takes effect once. */
  write<Result>(work: (queries: MemoryQueries) => Promise<Result>): Promise<Result>;
  /** Closes all connections. */
  close(): Promise<void>;
}
