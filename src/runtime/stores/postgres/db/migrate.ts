import { Fault } from "../../../../kernel/index.ts";
import { unreleasedFormats } from "../../codec/stored-format.ts";
import type { Database } from "./database.ts";
import { migrations } from "./migrations.ts";
import { storeTables } from "./schema.ts";
import type { Queries } from "./queries.ts";
import type { Transaction } from "./transaction.ts";
import { stateOf } from "./postgres-fault.ts";

/** Tables of one kind in a schema, and how they are created. */
export interface TableSet {
  /** The table that holds the version. */
  readonly meta: string;
  /** The statements that create the tables of the newest version. */
  readonly tables: string;
  /** The statements that lead from each version of the tables to the next, beginning with the oldest one. */
  readonly migrations: readonly string[];
  /** The oldest version that can be migrated. Earlier ones are from before the first release and are refused. Default: 1. */
  readonly oldest?: number;
}

export const storeTableSet: TableSet = {
  meta: "meta",
  tables: storeTables,
  migrations,
  oldest: unreleasedFormats + 1,
};

const findSchema = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
const schemaLock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
const duplicateTable = "42P07";

export interface MigrateOptions {
  /** If false, rejects with `not_found` if there are no tables, and changes nothing. Default: true. */
  readonly create?: boolean | undefined;
}

/**
 * Creates or updates the tables. Several processes may open a schema at once: an advisory lock lets one of them work, and the
 * others find the work done. A schema that is up to date needs no right to create anything.
 */
export async function migrate(
  database: Database,
  set: TableSet,
  { create = true }: MigrateOptions = {},
): Promise<void> {
  const { meta, tables, migrations: all, oldest = 1 } = set;
  const newest = oldest + all.length;
  const { schema } = database.options;
  await database.reach();
  await checkEncoding(database);
  const found = await versionOf(database.statements, database, set);
  if (found === newest) return;
  if (found === 0 && !create)
    throw new Fault(
      "not_found",
      `no store found in schema ${schema} of ${database.address}; check the address of the store`,
      { details: { schema } },
    );
  await database.write(async (transaction) => {
    await transaction.all(schemaLock, `reeve migrates ${schema}`);
    if ((await transaction.get(findSchema, schema)) === undefined)
      await transaction.run(`CREATE SCHEMA "${schema}"`);
    const version = await versionOf(transaction, database, set);
    if (version === 0) await transaction.run(`CREATE TABLE {${meta}} (version integer NOT NULL)`);
    for (const script of version === 0 ? [tables] : all.slice(version - oldest))
      await createTables(transaction, script, database);
    if (version === 0) await transaction.run(`INSERT INTO {${meta}} (version) VALUES ($1)`, newest);
    else await transaction.run(`UPDATE {${meta}} SET version = $1`, newest);
  });
}

async function createTables(transaction: Transaction, script: string, { options }: Database): Promise<void> {
  try {
    await transaction.script(script);
  } catch (error) {
    if (stateOf(error) !== duplicateTable) throw error;
    throw new Fault(
      "invalid_argument",
      `schema ${options.schema} has tables of another program; choose another schema with ?schema=NAME`,
      { cause: error },
    );
  }
}

/** Returns the version of the tables, 0 if there are none. Throws if this version of Reeve must not change them. */
export async function versionOf(
  queries: Queries,
  { options, address }: Database,
  { meta, migrations: all, oldest = 1 }: TableSet,
): Promise<number> {
  const { schema } = options;
  const known = oldest + all.length;
  const found = await queries.get<{ readonly isThere: boolean }>(
    `SELECT to_regclass('{${meta}}') IS NOT NULL AS "isThere"`,
  );
  if (found?.isThere !== true) return 0;
  const row = await queries.get<{ readonly version: number }>(`SELECT version FROM {${meta}}`);
  const version = row?.version ?? 0;
  const where = `schema ${schema} of the store at ${address}`;
  if (version > known)
    throw new Fault(
      "version_mismatch",
      `${where} was written by a newer version of Reeve: its tables have version ${version}, this version supports ${known}; update reeve or choose another schema`,
      { details: { schema, version, known } },
    );
  if (version > 0 && version < oldest)
    throw new Fault(
      "version_mismatch",
      `${where} was written by a development version of Reeve before the first release: its tables have version ${version}, the first supported version is ${oldest}. Its runs may not have ended: let them end with the version of Reeve that wrote them; then rename or drop the schema, or choose another one`,
      { details: { schema, version, known } },
    );
  return version;
}

async function checkEncoding({ statements, address }: Database): Promise<void> {
  const row = await statements.get<{ readonly encoding: string; readonly version: number }>(
    `SELECT current_setting('server_encoding') AS encoding, current_setting('server_version_num')::integer AS version`,
  );
  if (row !== undefined && row.version < 140_000)
    throw new Fault(
      "unsupported",
      `the store at ${address} runs PostgreSQL ${Math.floor(row.version / 10_000)}: expected version 14 or newer`,
    );
  if (row === undefined || row.encoding === "UTF8") return;
  throw new Fault(
    "invalid_argument",
    `the store at ${address} has the encoding ${row.encoding}: expected UTF8; create the database with ENCODING 'UTF8'`,
  );
}
