import { Fault } from "../../../kernel/index.ts";
import type { Database } from "./database.ts";

/** The tables of a kind of file. */
export interface FileSchema {
  /** In the header of the file: tells our files from those of others, and one kind from another. */
  readonly applicationId: number;
  /** From each version of the tables to the next; the first makes them. */
  readonly migrations: readonly string[];
}

/** Safe when several processes open a file at once: the second finds the work done. */
export function migrate(database: Database, schema: FileSchema): void {
  const { applicationId, migrations } = schema;
  if (versionOf(database, schema) === migrations.length) return;
  database.transaction("IMMEDIATE", () => {
    const version = versionOf(database, schema);
    for (const migration of migrations.slice(version)) database.exec(migration);
    database.exec(`PRAGMA application_id = ${applicationId}`);
    database.exec(`PRAGMA user_version = ${migrations.length}`);
  });
}

/** Which version of the tables the file has; 0 for a new one. Refuses what this version of Reeve must not touch. */
function versionOf(database: Database, { applicationId, migrations }: FileSchema): number {
  const { path } = database;
  const version = database.get<{ user_version: number }>("PRAGMA user_version")?.user_version ?? 0;
  const owner = database.get<{ application_id: number }>("PRAGMA application_id")?.application_id ?? 0;
  const empty = database.get("SELECT 1 FROM sqlite_schema LIMIT 1") === undefined;
  if (!empty && owner !== applicationId) {
    throw new Fault("invalid_argument", `${path} is the database of another program; name another file`);
  }
  if (version > migrations.length) {
    throw new Fault(
      "version_mismatch",
      `${path} was written by a newer version of Reeve: its tables have version ${version}, this one knows ${migrations.length}; update reeve, or open another file`,
      { details: { path, version, known: migrations.length } },
    );
  }
  return version;
}
