import { Fault } from "../../../../kernel/index.ts";
import type { Database } from "./database.ts";

/** The tables of one kind of file. */
export interface FileSchema {
  /** Number in the header of the file that identifies the kind of file. */
  readonly applicationId: number;
  /** The statements that lead from each version of the tables to the next. The first creates the tables. */
  readonly migrations: readonly string[];
  /** Number of versions before the first release. They cannot be migrated and are refused. */
  readonly unreleased?: number;
}

/** Creates or updates the tables. Several processes may open a file at once: the second finds the work done. */
export function migrate(database: Database, schema: FileSchema): void {
  const { applicationId, migrations } = schema;
  // One snapshot: between two reads another process could create the tables.
  const found = database.transaction("DEFERRED", () => migrationsDone(database, schema));
  if (found === migrations.length) return;
  database.transaction("IMMEDIATE", () => {
    const done = migrationsDone(database, schema);
    for (const migration of migrations.slice(done)) database.exec(migration);
    database.exec(`PRAGMA application_id = ${applicationId}`);
    database.exec(`PRAGMA user_version = ${newestOf(schema)}`);
  });
}

function newestOf({ migrations, unreleased = 0 }: FileSchema): number {
  return unreleased + migrations.length;
}

/**
 * Returns the number of migrations that the file has, 0 for a new file. Throws if this version of Reeve must not change
 * the file.
 */
function migrationsDone(database: Database, schema: FileSchema): number {
  const { applicationId, unreleased = 0 } = schema;
  const { path } = database;
  const version = database.get<{ user_version: number }>("PRAGMA user_version")?.user_version ?? 0;
  const owner = database.get<{ application_id: number }>("PRAGMA application_id")?.application_id ?? 0;
  const empty = database.get("SELECT 1 FROM sqlite_schema LIMIT 1") === undefined;
  if (!empty && owner !== applicationId) {
    throw new Fault("invalid_argument", `${path} is the database of another program; choose another file`);
  }
  const known = newestOf(schema);
  if (version > known) {
    throw new Fault(
      "version_mismatch",
      `${path} was written by a newer version of Reeve: its tables have version ${version}, this version supports ${known}; update reeve or open another file`,
      { details: { path, version, known } },
    );
  }
  if (version > 0 && version <= unreleased) {
    throw new Fault(
      "version_mismatch",
      `${path} was written by a development version of Reeve before the first release: its tables have version ${version}, the first supported version is ${unreleased + 1}. Its runs may not have ended: let them end with the version of Reeve that wrote them; then move it away, with the files beside it that begin with its name, or open another file`,
      { details: { path, version, known } },
    );
  }
  return Math.max(0, version - unreleased);
}
