import type { Clock } from "../../../../kernel/index.ts";
import { SqlTables, type OwnedRun as SqlOwnedRun } from "../../sql/tables.ts";
import type { Work } from "../../sql/work.ts";
import type { Database } from "./database.ts";
import { postgresDialect } from "./dialect.ts";
import type { Registration } from "../../worker-beats.ts";

/**
 * A run that this store owns, as far as it knows. Only the owner appends commits, and the database checks epoch and
 * owner of every commit. Therefore the stored position is correct as long as commits succeed.
 */
export interface OwnedRun extends SqlOwnedRun {
  /** The registration of the worker under which it certainly owned the run. */
  registration?: Registration | undefined;
  /** Place of the last mail that a poll has announced. */
  announcedMail?: number;
}

export interface TablesOptions {
  readonly database: Database;
  readonly clock: Clock;
}

/** The operations of the PostgreSQL store on its tables. */
export class Tables extends SqlTables<OwnedRun> {
  readonly database: Database;

  constructor({ database, clock }: TablesOptions) {
    super(postgresDialect, clock);
    this.database = database;
  }

  override query<Result>(work: () => Work<Result>): Promise<Result> {
    return this.database.statements.do(work());
  }

  override snapshot<Result>(work: () => Work<Result>): Promise<Result> {
    return this.database.read((queries) => queries.do(work()));
  }

  override transact<Result>(work: () => Work<Result>): Promise<Result> {
    return this.database.write((transaction) => transaction.do(work()));
  }
}
