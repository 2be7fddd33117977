import { Fault } from "../../../kernel/index.ts";
import { formatChanges, knownFormats } from "../codec/stored-format.ts";
import { Database } from "./db/database.ts";
import { formatOf, lockSchema, type TableSet } from "./db/migrate.ts";
import type { Queries } from "./db/queries.ts";
import { schemaOf } from "./db/schema-name.ts";
import { isBeating } from "./db/beat-table.ts";
import type { SchemaUpgradeOptions, SchemaUpgradePlan } from "./upgrade-plan.ts";

/**
 * Maximum time of one statement of an upgrade, in milliseconds. It is long because an index of a large table takes
 * minutes.
 */
const timeoutMs = 6 * 3_600_000;

/** Returns what an upgrade of the schema at an address would do. It changes nothing. */
export async function planSchemaUpgrade(address: string, set: TableSet): Promise<SchemaUpgradePlan> {
  return withDatabase(address, (database) => database.read((queries) => planOf(queries, database, set)));
}

/**
 * Upgrades a schema to the newest format of its tables, in one transaction. Rejects with `permission_denied` if the
 * person has no backup, and with `store_unavailable` while other processes use the schema. Returns what it has
 * done. The list of changes is empty if the schema already had the newest format.
 */
export async function upgradeSchema(
  address: string,
  set: TableSet,
  { isBackedUp }: SchemaUpgradeOptions,
): Promise<SchemaUpgradePlan> {
  return withDatabase(address, (database) =>
    database.write(async (transaction) => {
      // A second upgrade waits here, and finds the work done.
      await transaction.run(`SET LOCAL lock_timeout = ${timeoutMs}`);
      await lockSchema(transaction, database);
      const plan = await planOf(transaction, database, set);
      if (plan.changes.length === 0) return plan;
      refuseUse(plan);
      if (!isBackedUp) throw noBackup(plan);
      for (const { script } of set.migrations.slice(plan.format - set.oldest))
        await transaction.script(script);
      await transaction.run(`UPDATE {${set.meta}} SET version = $1`, plan.newest);
      return plan;
    }),
  );
}

async function withDatabase<Result>(
  address: string,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const { url, schema } = schemaOf({ url: address, otherwise: "reeve" }, "the store");
  const database = new Database({ url, schema, connections: 1, timeoutMs, retryForMs: 0 });
  try {
    await database.reach();
    return await work(database);
  } finally {
    await database.close();
  }
}

async function planOf(queries: Queries, database: Database, set: TableSet): Promise<SchemaUpgradePlan> {
  const { schema } = database.options;
  const format = await formatOf(queries, database, set);
  if (format === 0)
    throw new Fault(
      "not_found",
      `no store found in schema ${schema} of ${database.address}; check the address of the store`,
      { details: { schema } },
    );
  const workers = await queries.all<{ readonly name: string }>(
    `SELECT worker_id AS name FROM {workers} WHERE ${isBeating} ORDER BY worker_id`,
  );
  const others = await queries.get<{ readonly connections: number }>(
    `SELECT count(*) AS connections FROM pg_stat_activity WHERE datname = current_database()
      AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()`,
  );
  return {
    address: database.address,
    schema,
    format,
    newest: knownFormats(set).newest,
    changes: formatChanges(set, format),
    workers: workers.map(({ name }) => name),
    connections: others?.connections ?? 0,
  };
}

function refuseUse({ address, schema, workers, connections }: SchemaUpgradePlan): void {
  if (workers.length + connections === 0) return;
  const who =
    workers.length === 0
      ? `${connections} ${connections === 1 ? "connection" : "connections"} of other processes`
      : `the ${workers.length === 1 ? "worker" : "workers"} ${workers.join(", ")}`;
  throw new Fault(
    "store_unavailable",
    `schema ${schema} of the store at ${address} is in use by ${who}; end every process that uses it, then upgrade it again`,
    { details: { schema, workers, connections } },
  );
}

function noBackup({ address, schema, format }: SchemaUpgradePlan): Fault {
  return new Fault(
    "permission_denied",
    `the upgrade of schema ${schema} of the store at ${address} needs a backup: write one with pg_dump --format=custom --schema=${schema} --file=${schema}.format-${format}.dump URL, then upgrade with --backed-up`,
    { details: { schema, format } },
  );
}
