import { Fault } from "../../../../kernel/index.ts";
import type { Database } from "./database.ts";

/** The tables of one kind of file. */
export interface FileSchema {
  /** Number in the header of the file that identifies the kind of file. */
  readonly applicationId: number;
  /** The statements that create the tables of the newest version in a new file. */
  readonly tables: string;
  /** The statements that lead from each version of the tables to the next, beginning with the oldest one. */
  readonly migrations: readonly string[];
  /** The oldest version that can be migrated. Earlier ones are from before the first release and are refused. Default: 1. */
  readonly oldest?: number;
}

/** Creates or updates the tables. Several processes may open a file at once: the second finds the work done. */
export function migrate(database: Database, schema: FileSchema): void {
  const { applicationId, tables, migrations, oldest = 1 } = schema;
  const newest = oldest + migrations.length;
  // One snapshot: between two reads another process could create the tables.
  const found = database.transaction("DEFERRED", () => versionOf(database, schema));
  if (found === newest) return;
  database.transaction("IMMEDIATE", () => {
    const version = versionOf(database, schema);
    if (version === 0) database.exec(tables);
    else for (const migration of migrations.slice(version - oldest)) database.exec(migration);
    database.exec(`PRAGMA application_id = ${applicationId}`);
    database.exec(`PRAGMA user_version = ${newest}`);
  });
}

/** Returns the version of the tables, 0 for a new file. Throws if this version of Reeve must not change the file. */
function versionOf(database: Database, { applicationId, migrations, oldest = 1 }: FileSchema): number {
  const { path } = database;
  const version = database.get<{ user_version: number }>("PRAGMA user_version")?.user_version ?? 0;
  const owner = database.get<{ application_id: number }>("PRAGMA application_id")?.application_id ?? 0;
  const empty = database.get("SELECT 1 FROM sqlite_schema LIMIT 1") === undefined;
  if (!empty && owner !== applicationId) {
    throw new Fault("invalid_argument", `${path} is the database of another program; choose another file`);
  }
  const known = oldest + migrations.length;
  if (version > known) {
    throw new Fault(
      "version_mismatch",
      `${path} was written by a newer version of Reeve: its tables have version ${version}, this version supports ${known}; update reeve or open another file`,
      { details: { path, version, known } },
    );
  }
  if (version > 0 && version < oldest) {
    throw new Fault(
      "version_mismatch",
      `${path} was written by a development version of Reeve before the first release: its tables have version ${version}, the first supported version is ${oldest}. Its runs may not have ended: let them end with the version of Reeve that wrote them; then move it away, with the files beside it that begin with its name, or open another file`,
      { details: { path, version, known } },
    );
  }
  return version;
}
