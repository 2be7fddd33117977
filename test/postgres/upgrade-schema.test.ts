import { expect, inject, test } from "vitest";
import { storeTableSet } from "../../src/runtime/stores/postgres/db/migrate.ts";
import { planSchemaUpgrade, upgradeSchema } from "../../src/runtime/stores/postgres/upgrade-schema.ts";
import { createRun } from "../../src/testing/contracts/store-fixtures.ts";
import { newSchema, openSchema, query } from "./schemas.ts";

const newest = storeTableSet.oldest + storeTableSet.migrations.length;
const backed = { isBackedUp: true };

/** The tables of a store with one additional format, in which runs have a colour. */
function plantedWith(statement = ""): typeof storeTableSet {
  const script = `ALTER TABLE {runs} ADD COLUMN colour text DEFAULT 'red'; ${statement}`;
  return {
    ...storeTableSet,
    migrations: [...storeTableSet.migrations, { changes: "runs have a colour", script }],
  };
}

/** Creates a schema with one run, which no process uses. Returns its name and its address. */
async function storedSchema(): Promise<{ readonly schema: string; readonly address: string }> {
  const schema = newSchema();
  const store = await openSchema(schema);
  await createRun(store);
  await store.close();
  // PostgreSQL ends its side of a closed connection a moment later.
  const connections = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'reeve ${schema}'`;
  await expect.poll(() => query(connections)).toEqual([]);
  return { schema, address: `${inject("postgresUrl")}?schema=${schema}` };
}

async function coloursOf(schema: string): Promise<unknown> {
  const columns = await query(
    `SELECT 1 FROM information_schema.columns WHERE table_schema = '${schema}' AND column_name = 'colour'`,
  );
  return columns.length === 0 ? "none" : query(`SELECT run_id, colour FROM ${schema}.runs`);
}

async function formatOf(schema: string): Promise<unknown> {
  return (await query(`SELECT version FROM ${schema}.meta`))[0];
}

test("upgradeSchema() changes the PostgreSQL tables in one transaction and keeps all rows, and earlier versions are refused", async () => {
  const { schema, address } = await storedSchema();
  const plan = await upgradeSchema(address, plantedWith(), backed);
  const changes = [{ format: newest + 1, changes: "runs have a colour" }];
  expect(plan).toMatchObject({ schema, format: newest, newest: newest + 1, changes });
  expect(await coloursOf(schema)).toEqual([{ run_id: "run_a", colour: "red" }]);
  await expect(openSchema(schema)).rejects.toMatchObject({
    code: "version_mismatch",
    message: expect.stringContaining("update reeve") as string,
  });
  expect(await upgradeSchema(address, plantedWith(), backed)).toMatchObject({ changes: [] });
});

test("planSchemaUpgrade() says what would change, and changes nothing", async () => {
  const { schema, address } = await storedSchema();
  const plan = await planSchemaUpgrade(address, plantedWith());
  expect(plan).toMatchObject({ format: newest, newest: newest + 1, workers: [], connections: 0 });
  expect(plan.changes).toHaveLength(1);
  expect([await formatOf(schema), await coloursOf(schema)]).toEqual([{ version: newest }, "none"]);
});

test("upgradeSchema() without a backup is refused with the command that writes one, and changes nothing", async () => {
  const { schema, address } = await storedSchema();
  await expect(upgradeSchema(address, plantedWith(), { isBackedUp: false })).rejects.toMatchObject({
    code: "permission_denied",
    message: expect.stringContaining(`pg_dump --format=custom --schema=${schema}`) as string,
  });
  expect([await formatOf(schema), await coloursOf(schema)]).toEqual([{ version: newest }, "none"]);
});

test("upgradeSchema() is refused while a worker lives, and while another process has a connection", async () => {
  const { schema, address } = await storedSchema();
  const store = await openSchema(schema);
  await store.leases.enlist("w1");
  const refused = { code: "store_unavailable", message: expect.stringContaining("in use by") as string };
  await expect(upgradeSchema(address, plantedWith(), backed)).rejects.toMatchObject({
    ...refused,
    details: { workers: ["w1"] },
  });
  await store.leases.dismiss("w1");
  await expect(upgradeSchema(address, plantedWith(), backed)).rejects.toMatchObject({
    ...refused,
    details: { workers: [] },
  });
  expect(await coloursOf(schema)).toBe("none");
  await store.close();
  await upgradeSchema(address, plantedWith(), backed);
  expect(await formatOf(schema)).toEqual({ version: newest + 1 });
});

test("a PostgreSQL schema is unchanged if a migration fails or the connection of the upgrade ends", async () => {
  const { schema, address } = await storedSchema();
  const ends = {
    "SELECT 1 / 0;": /division by zero/u,
    "SELECT pg_terminate_backend(pg_backend_pid());": /ended the statement because it shuts down/u,
  };
  for (const [statement, words] of Object.entries(ends)) {
    await expect(upgradeSchema(address, plantedWith(statement), backed)).rejects.toThrow(words);
    expect([await formatOf(schema), await coloursOf(schema)]).toEqual([{ version: newest }, "none"]);
  }
  const store = await openSchema(schema);
  expect(await store.journal.count()).toBe(1);
});

test("of two upgrades of a PostgreSQL schema at once, one changes it, and the other finds the work done or is refused", async () => {
  const { schema, address } = await storedSchema();
  const both = await Promise.allSettled([
    upgradeSchema(address, plantedWith(), backed),
    upgradeSchema(address, plantedWith(), backed),
  ]);
  const changed = both.filter((each) => each.status === "fulfilled" && each.value.changes.length > 0);
  const refusals = both.filter((each) => each.status === "rejected");
  expect(changed.length).toBeLessThanOrEqual(1);
  for (const { reason } of refusals) expect(reason).toMatchObject({ code: "store_unavailable" });
  if (changed.length === 0) await upgradeSchema(address, plantedWith(), backed);
  expect(await formatOf(schema)).toEqual({ version: newest + 1 });
  expect(await coloursOf(schema)).toEqual([{ run_id: "run_a", colour: "red" }]);
});
