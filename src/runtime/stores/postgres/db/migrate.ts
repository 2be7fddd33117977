import { Fault } from "../../../../kernel/index.ts";
import { unreleasedFormats } from "../../codec/stored-format.ts";
import type { Database } from "./database.ts";
import { migrations } from "./migrations.ts";
import type { Queries } from "./queries.ts";
import type { Transaction } from "./transaction.ts";
import { stateOf } from "./postgres-fault.ts";

const known = unreleasedFormats + migrations.length;

const findMeta = `SELECT to_regclass('{meta}') IS NOT NULL AS "isThere"`;
const findSchema = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
const schemaLock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
const createMeta = "CREATE TABLE {meta} (version integer NOT NULL)";
const duplicateTable = "42P07";

/**
 * Creates or updates the tables. Several processes may open a schema at once: an advisory lock lets one of them work, and the
 * others find the work done. A schema that is up to date needs no right to create anything.
 */
export async function migrate(database: Database): Promise<void> {
  await database.reach();
  await checkEncoding(database);
  if ((await versionOf(database.statements, database)) === known) return;
  const { schema } = database.options;
  await database.write(async (transaction) => {
    await transaction.all(schemaLock, `reeve migrates ${schema}`);
    if ((await transaction.get(findSchema, schema)) === undefined)
      await transaction.run(`CREATE SCHEMA "${schema}"`);
    const version = await versionOf(transaction, database);
    if (version === 0) await transaction.run(createMeta);
    const done = Math.max(0, version - unreleasedFormats);
    for (const migration of migrations.slice(done)) await createTables(transaction, migration, database);
    if (version === 0) await transaction.run("INSERT INTO {meta} (version) VALUES ($1)", known);
    else await transaction.run("UPDATE {meta} SET version = $1", known);
  });
}

async function createTables(
  transaction: Transaction,
  migration: string,
  { options }: Database,
): Promise<void> {
  try {
    await transaction.script(migration);
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
async function versionOf(queries: Queries, { options, address }: Database): Promise<number> {
  const { schema } = options;
  const found = await queries.get<{ readonly isThere: boolean }>(findMeta);
  if (found?.isThere !== true) return 0;
  const row = await queries.get<{ readonly version: number }>("SELECT version FROM {meta}");
  const version = row?.version ?? 0;
  const where = `schema ${schema} of the store at ${address}`;
  if (version > known)
    throw new Fault(
      "version_mismatch",
      `${where} was written by a newer version of Reeve: its tables have version ${version}, this version supports ${known}; update reeve or choose another schema`,
      { details: { schema, version, known } },
    );
  if (version > 0 && version <= unreleasedFormats)
    throw new Fault(
      "version_mismatch",
      `${where} was written by a development version of Reeve before the first release: its tables have version ${version}, the first supported version is ${unreleasedFormats + 1}; drop the schema, or choose another one`,
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
