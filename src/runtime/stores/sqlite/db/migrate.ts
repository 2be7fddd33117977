import { Fault } from "../../../../kernel/index.ts";
import type { Database } from "./database.ts";

/** The tables of a kind of file. */
export interface FileSchema {
  /** In the header of the file: tells our files from those of others, and one kind from another. */
  readonly applicationId: number;
  /** From each version of the tables to the next; the first makes them. */
  readonly migrations: readonly string[];
  /** How many versions there were before the first release. Nothing leads on from those, and they are refused. */
  readonly unreleased?: number;
}

/** Safe when several processes open a file at once: the second finds the work done. */
export function migrate(database: Database, schema: FileSchema): void {
  const { applicationId, migrations } = schema;
  if (migrationsDone(database, schema) === migrations.length) return;
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

/** How far the tables of the file are; 0 for a new one. Refuses what this version of Reeve must not touch. */
function migrationsDone(database: Database, schema: FileSchema): number {
  const { applicationId, unreleased = 0 } = schema;
  const { path } = database;
  const version = database.get<{ user_version: number }>("PRAGMA user_version")?.user_version ?? 0;
  const owner = database.get<{ application_id: number }>("PRAGMA application_id")?.application_id ?? 0;
  const empty = database.get("SELECT 1 FROM sqlite_schema LIMIT 1") === undefined;
  if (!empty && owner !== applicationId) {
    throw new Fault("invalid_argument", `${path} is the database of another program; name another file`);
  }
  const known = newestOf(schema);
  if (version > known) {
    throw new Fault(
      "version_mismatch",
      `${path} was written by a newer version of Reeve: its tables have version ${version}, this one knows ${known}; update reeve, or open another file`,
      { details: { path, version, known } },
    );
  }
  if (version > 0 && version <= unreleased) {
    throw new Fault(
      "version_mismatch",
      `${path} was written by a development version of Reeve, from before the first release: its tables have version ${version}, and released ones begin with ${unreleased + 1}; delete it and what lies beside it under its name, or open another file`,
      { details: { path, version, known } },
    );
  }
  return Math.max(0, version - unreleased);
}
