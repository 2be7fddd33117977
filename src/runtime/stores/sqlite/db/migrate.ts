import { Fault } from "../../../../kernel/index.ts";
import {
  type FormattedTables,
  knownFormats,
  refuseOtherFormat,
  refuseUnknownFormat,
} from "../../codec/stored-format.ts";
import type { Database } from "./database.ts";

/** The tables of one kind of file. */
export interface FileSchema extends FormattedTables {
  /** Number in the header of the file that identifies the kind of file. */
  readonly applicationId: number;
  /** The statements that create the tables of the newest format in a new file. */
  readonly tables: string;
}

/** What the header of a file says. */
export interface FileHeader {
  readonly path: string;
  /** `PRAGMA application_id`. */
  readonly owner: number;
  /** `PRAGMA user_version`. */
  readonly format: number;
}

const otherwise = "move it away, with the files beside it that begin with its name, or open another file";

/**
 * Creates the tables in a new file. If several processes open it at once, the first one creates the tables. A file
 * of an earlier format is refused, because processes of an earlier version may have it open; `upgradeFile` upgrades
 * it.
 */
export function createTables(database: Database, schema: FileSchema): void {
  const { applicationId, tables } = schema;
  // One snapshot: between two reads another process could create the tables.
  if (database.transaction("DEFERRED", () => hasTables(database, schema))) return;
  database.transaction("IMMEDIATE", () => {
    if (hasTables(database, schema)) return;
    database.exec(tables);
    database.exec(`PRAGMA application_id = ${applicationId}`);
    database.exec(`PRAGMA user_version = ${knownFormats(schema).newest}`);
  });
}

/**
 * Whether the file has tables. Returns `false` for a new file. Throws if the tables are not those of this version
 * of Reeve.
 */
function hasTables(database: Database, schema: FileSchema): boolean {
  const { path } = database;
  const format = database.get<{ user_version: number }>("PRAGMA user_version")?.user_version ?? 0;
  const owner = database.get<{ application_id: number }>("PRAGMA application_id")?.application_id ?? 0;
  if (database.get("SELECT 1 FROM sqlite_schema LIMIT 1") === undefined) return false;
  refuseForeignFile({ path, owner, format }, schema);
  const upgrade = `reeve store upgrade --store ${JSON.stringify(`sqlite:${path}`)}`;
  refuseOtherFormat({ where: path, format, otherwise }, knownFormats(schema), upgrade);
  return true;
}

/** Throws if the file is not a store that this version of Reeve can open or upgrade. */
export function refuseUnknownFile(header: FileHeader, schema: FileSchema): void {
  refuseForeignFile(header, schema);
  refuseUnknownFormat({ where: header.path, format: header.format, otherwise }, knownFormats(schema));
}

function refuseForeignFile({ path, owner }: FileHeader, { applicationId }: FileSchema): void {
  if (owner === applicationId) return;
  throw new Fault("invalid_argument", `${path} is the database of another program; choose another file`);
}
