import { randomBytes } from "node:crypto";
import { Client, DatabaseError } from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { all, createRun, ownRun, stepRecord } from "../../src/testing/contracts/store-fixtures.ts";
import { newSchema, openSchema } from "./schemas.ts";
import { canMountDisk, PostgresServer } from "./server.ts";

const hasDisk = await canMountDisk();
if (!hasDisk)
  process.stderr.write("\nTHE TEST OF A REAL FULL DISK IS SKIPPED: this account may not mount a disk\n\n");

let server: PostgresServer;

beforeAll(async () => {
  server = await PostgresServer.start({
    settings: ["max_connections=8", "superuser_reserved_connections=0"],
    ...(hasDisk && { smallDiskMb: 16 }),
  });
});
afterAll(() => server.stop());

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Calls a function until the server refuses it with this SQLSTATE. */
async function untilRefused(state: string, call: () => Promise<unknown>): Promise<void> {
  for (;;)
    try {
      await call();
    } catch (error) {
      if (error instanceof DatabaseError && error.code === state) return;
      throw error;
    }
}

test("a PostgreSQL store that gets no connection fails with store_unavailable, names max_connections, and works again later", async () => {
  const schema = newSchema();
  await (await openSchema(schema, { url: server.url })).close();
  const others: Client[] = [];
  await untilRefused("53300", async () => others.push(await connect()));
  await expect(openSchema(schema, { url: server.url, retryForMs: 50 })).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("max_connections") as string,
  });
  for (const other of others) await other.end();
  expect(await createRun(await openSchema(schema, { url: server.url }))).toBe("run_a");
});

test.runIf(hasDisk)(
  "a commit on a PostgreSQL server whose disk is full fails with store_full, and succeeds when there is space",
  async () => {
    const client = await connect();
    await client.query(`CREATE TABLESPACE small LOCATION '${server.smallDisk}'`);
    await client.query("ALTER ROLE reeve SET default_tablespace = small");
    const store = await openSchema(newSchema(), { url: server.url });
    const lease = await ownRun(store);
    await client.query("CREATE TABLE filler (body text) TABLESPACE small");
    // The last rows need a page each time, so that less than a page is left.
    for (const rows of [1_000, 1])
      await untilRefused("53100", () =>
        client.query(`INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, ${rows})`),
      );
    const text = randomBytes(200_000).toString("base64");
    const commit = { number: 1, at: 2, steps: [stepRecord(0, text)] };
    await expect(store.journal.append(lease, commit)).rejects.toMatchObject({
      code: "store_full",
      details: { postgres: "53100" },
    });
    expect(await all(store.journal.read(lease.runId))).toHaveLength(1);
    await client.query("DROP TABLE filler");
    expect(await store.journal.append(lease, commit)).toBe(commit);
    expect(await all(store.journal.read(lease.runId))).toHaveLength(2);
    expect(await store.events.verify(lease.runId)).toMatchObject({ ok: true });
  },
);
