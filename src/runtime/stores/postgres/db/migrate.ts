import { Fault } from "../../../../kernel/index.ts";
import {
  firstPromisedFormat,
  type FormattedTables,
  formatSteps,
  type FoundFormat,
  knownFormats,
  refuseOtherFormat,
  refuseUnknownFormat,
} from "../../codec/stored-format.ts";
import type { Database } from "./database.ts";
import { collated, storeTables } from "./schema.ts";
import type { Queries } from "./queries.ts";
import type { Transaction } from "./transaction.ts";
import { stateOf } from "./postgres-fault.ts";

/** Tables of one kind in a schema. */
export interface TableSet extends FormattedTables {
  /** The table that holds the format. */
  readonly meta: string;
  /** The statements that create the tables of the newest format. */
  readonly tables: string;
}

export const storeTableSet: TableSet = {
  meta: "meta",
  tables: storeTables,
  oldest: firstPromisedFormat,
  migrations: formatSteps.map(({ changes, postgres }) => ({ changes, script: collated(postgres) })),
};

const findSchema = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
const schemaLock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
const duplicateTable = "42P07";

export interface CreateTablesOptions {
  /**
   * Whether to create the tables if there are none. If `false`, missing tables reject with `not_found`, and nothing
   * is changed. Default: `true`.
   */
  readonly create?: boolean | undefined;
}

/**
 * Creates the tables in a schema that has none. If several processes open a schema at once, an advisory lock lets
 * one of them create the tables. A process that opens a schema with tables needs no right to create anything. A
 * schema of an earlier format is refused, because processes of an earlier version may use it; `upgradeSchema`
 * upgrades it.
 */
export async function createTables(
  database: Database,
  set: TableSet,
  { create = true }: CreateTablesOptions = {},
): Promise<void> {
  const { schema } = database.options;
  await database.reach();
  await checkEncoding(database);
  if (await hasTables(database.statements, database, set)) return;
  if (!create)
    throw new Fault(
      "not_found",
      `no store found in schema ${schema} of ${database.address}; check the address of the store`,
      { details: { schema } },
    );
  const { meta, tables } = set;
  await database.write(async (transaction) => {
    await lockSchema(transaction, database);
    if ((await transaction.get(findSchema, schema)) === undefined)
      await transaction.run(`CREATE SCHEMA "${schema}"`);
    if (await hasTables(transaction, database, set)) return;
    await transaction.run(`CREATE TABLE {${meta}} (version integer NOT NULL)`);
    await createThem(transaction, tables, database);
    await transaction.run(`INSERT INTO {${meta}} (version) VALUES ($1)`, knownFormats(set).newest);
  });
}

/** Lets one transaction at a time create or upgrade the tables of a schema. */
export async function lockSchema(transaction: Transaction, { options }: Database): Promise<void> {
  await transaction.all(schemaLock, `reeve migrates ${options.schema}`);
}

async function createThem(transaction: Transaction, script: string, { options }: Database): Promise<void> {
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

/** Whether the schema has tables. Throws if they have another format. */
async function hasTables(queries: Queries, database: Database, set: TableSet): Promise<boolean> {
  const format = await formatOf(queries, database, set);
  if (format === 0) return false;
  const upgrade = "reeve store upgrade --store URL";
  refuseOtherFormat(foundIn(database, format), knownFormats(set), upgrade);
  return true;
}

/**
 * Returns the format of the tables, or 0 if there are none. Throws if this version of Reeve can neither open nor
 * upgrade them.
 */
export async function formatOf(queries: Queries, database: Database, set: TableSet): Promise<number> {
  const found = await queries.get<{ readonly isThere: boolean }>(
    `SELECT to_regclass('{${set.meta}}') IS NOT NULL AS "isThere"`,
  );
  if (found?.isThere !== true) return 0;
  const row = await queries.get<{ readonly version: number }>(`SELECT version FROM {${set.meta}}`);
  const format = row?.version ?? 0;
  if (format > 0) refuseUnknownFormat(foundIn(database, format), knownFormats(set));
  return format;
}

function foundIn({ options, address }: Database, format: number): FoundFormat {
  const where = `schema ${options.schema} of the store at ${address}`;
  return { where, format, otherwise: "rename or drop the schema, or choose another one" };
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
