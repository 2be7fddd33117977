import { expect, inject, onTestFinished, test, vi } from "vitest";
import type { Store } from "../../src/kernel/index.ts";
import { openStore } from "../../src/runtime/index.ts";
import { all, createRun, ownRun, stepRecord } from "../../src/testing/contracts/store-fixtures.ts";
import { withStore } from "../../src/surfaces/cli/setup/stored-runs.ts";
import type { Terminal } from "../../src/surfaces/cli/terminal/terminal.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { newSchema, openSchema, query } from "./schemas.ts";
import { PostgresServer } from "./server.ts";

/** Creates a role with some attributes and returns its URL. */
async function roleUrl(attributes = ""): Promise<string> {
  const name = newSchema();
  await query(`CREATE ROLE ${name} LOGIN ${attributes}`);
  return inject("postgresUrl").replace("reeve@", `${name}@`);
}

function roleIn(url: string): string {
  return new URL(url).username;
}

async function numbers(store: Store, name = "a"): Promise<readonly number[]> {
  return (await all(store.journal.read(`run_${name}` as never))).map(({ number }) => number);
}

async function proxied(): Promise<CuttingProxy> {
  const proxy = await CuttingProxy.open(inject("postgresUrl"));
  onTestFinished(() => proxy.close());
  return proxy;
}

test("openStore() fails with store_unavailable if no PostgreSQL server listens, and names the address without the password", async () => {
  const opening = openStore("postgres://reeve:secret@127.0.0.1:1/there");
  await expect(opening).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringMatching(/127\.0\.0\.1:1\/there cannot be reached/u) as string,
  });
  await expect(opening).rejects.not.toMatchObject({ message: expect.stringContaining("secret") as string });
});

test.each([
  ["a database that does not exist", (url: string) => url.replace("/postgres", "/nowhere"), "not_found"],
  ["a role that does not exist", (url: string) => url.replace("reeve@", "nobody@"), "permission_denied"],
  ["an invalid schema", (url: string) => `${url}?schema=No`, "invalid_argument"],
  ["an unknown option of the URL", (url: string) => `${url}?shcema=other`, "invalid_argument"],
  [
    "an option that the driver ignores",
    (url: string) => `${url}?channel_binding=require`,
    "invalid_argument",
  ],
  [
    "an option that the URL gives twice",
    (url: string) => `${url}?schema=one&schema=other`,
    "invalid_argument",
  ],
  ["an unreadable URL", () => "postgres://a b:99999999/x", "invalid_argument"],
])("openStore() for PostgreSQL refuses %s", async (_what, urlOf, code) => {
  await expect(openStore(urlOf(inject("postgresUrl")))).rejects.toMatchObject({ code });
});

test.each([
  ["leaseMs=3000", "leaseMs"],
  ["connect_timeout=5", "timeoutMs"],
])(
  "openStore() refuses %s in the PostgreSQL URL and says that it belongs outside the URL",
  async (option, name) => {
    await expect(openStore(`${inject("postgresUrl")}?${option}`)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(`give it beside the URL; use { url, ${name}: ... }`) as string,
    });
  },
);

test("a PostgreSQL role without rights is refused, and needs no right to create once the tables exist", async () => {
  const schema = newSchema();
  const url = await roleUrl();
  await expect(openSchema(schema, { url })).rejects.toMatchObject({
    code: "permission_denied",
    message: expect.stringContaining("grant CREATE on the database") as string,
  });
  await openSchema(schema);
  const role = roleIn(url);
  await query(`GRANT USAGE ON SCHEMA ${schema} TO ${role}; GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO ${role};
    GRANT ALL ON ALL SEQUENCES IN SCHEMA ${schema} TO ${role}`);
  expect(await createRun(await openSchema(schema, { url }))).toBe("run_a");
});

test("K5: changes() does not return runs of a PostgreSQL database that was restored on a server with fewer transactions", async () => {
  const schema = newSchema();
  const earlier = await openSchema(schema);
  await createRun(earlier, "a");
  await query(`UPDATE ${schema}.runs SET change = 9007199254740991`);
  const { journal } = await openSchema(schema);
  const { next } = await journal.changes();
  expect((await journal.changes(next)).runs).toEqual([]);
});

test("a PostgreSQL schema of a newer or development format, or with foreign tables, is refused and stays unchanged", async () => {
  const [other, foreign] = [newSchema(), newSchema()];
  await (await openSchema(other)).close();
  await query(`CREATE SCHEMA ${foreign}; CREATE TABLE ${foreign}.runs (id integer)`);
  for (const [format, words] of [
    [31, "format 31 of a development version of Reeve"],
    [999, "format 999 of a newer version of Reeve"],
  ]) {
    await query(`UPDATE ${other}.meta SET version = ${format}`);
    await expect(openSchema(other)).rejects.toMatchObject({
      code: "version_mismatch",
      message: expect.stringContaining(String(words)) as string,
      details: { format },
    });
    expect(await query(`SELECT version FROM ${other}.meta`)).toEqual([{ version: format }]);
  }
  await expect(openSchema(foreign)).rejects.toMatchObject({ code: "invalid_argument" });
  expect(await query(`SELECT tablename AS name FROM pg_tables WHERE schemaname = '${foreign}'`)).toEqual([
    { name: "runs" },
  ]);
});

test("commands that only read refuse a PostgreSQL schema without a store with not_found and create nothing", async () => {
  const schema = newSchema();
  const address = `${inject("postgresUrl")}?schema=${schema}`;
  const refusal = {
    code: "not_found",
    message: expect.stringContaining(`no store found in schema ${schema}`) as string,
  };
  await expect(openStore(address, { create: false })).rejects.toMatchObject(refusal);
  const reading = withStore({ store: address }, { env: {} } as Terminal, ({ journal }) => journal.list());
  await expect(reading).rejects.toMatchObject(refusal);
  expect(await query(`SELECT 1 FROM pg_namespace WHERE nspname = '${schema}'`)).toEqual([]);
  await openSchema(schema);
  const store = await openStore(address, { create: false });
  onTestFinished(() => store.close());
  expect(await createRun(store)).toBe("run_a");
});

test("several processes that open an empty PostgreSQL schema at once find one set of tables", async () => {
  const schema = newSchema();
  const stores = await Promise.all([1, 2, 3, 4].map(() => openSchema(schema)));
  for (const [index, store] of stores.entries())
    expect(await createRun(store, `r${index}`)).toBe(`run_r${index}`);
  expect(await query(`SELECT count(*)::integer AS count FROM ${schema}.meta`)).toEqual([{ count: 1 }]);
});

test("a read-only PostgreSQL database can be read, and a write fails with store_read_only", async () => {
  const schema = newSchema();
  await createRun(await openSchema(schema));
  const url = await roleUrl("SUPERUSER");
  await query(`ALTER ROLE ${roleIn(url)} SET default_transaction_read_only = on`);
  const store = await openSchema(schema, { url });
  expect(await numbers(store)).toEqual([0]);
  await expect(createRun(store, "b")).rejects.toMatchObject({ code: "store_read_only" });
  expect(await store.journal.find("run_b" as never)).toBeUndefined();
});

test("a commit on a full PostgreSQL disk fails with store_full, writes nothing, and succeeds when there is space", async () => {
  const schema = newSchema();
  const store = await openSchema(schema);
  const lease = await ownRun(store);
  await query(`CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON ${schema}.commits EXECUTE FUNCTION ${schema}.refuse()`);
  const commit = { number: 1, at: 2, steps: [stepRecord(0, "kept")] };
  await expect(store.journal.append(lease, commit)).rejects.toMatchObject({
    code: "store_full",
    details: { postgres: "53100" },
  });
  await query(`DROP TRIGGER full_disk ON ${schema}.commits`);
  expect(await store.journal.append(lease, commit)).toBe(commit);
  expect(await numbers(store)).toEqual([0, 1]);
});

test("calls during a restart of the PostgreSQL server wait for the server, and nothing that was acknowledged is lost", async () => {
  const server = await PostgresServer.start();
  onTestFinished(() => server.stop());
  const store = await openSchema(newSchema(), { url: server.url, retryForMs: 30_000 });
  const lease = await ownRun(store);
  const append = (number: number) =>
    store.journal.append(lease, { number, at: number, steps: [stepRecord(number, number)] });
  for (let number = 1; number <= 5; number++) await append(number);
  await server.kill();
  const during = append(6);
  const mail = store.mailbox.put({ id: "m", runId: lease.runId, from: "x", at: 1, body: { type: "pause" } });
  await server.restart();
  expect(await during).toMatchObject({ number: 6 });
  expect(await mail).toBe(true);
  await append(7);
  expect(await numbers(store)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(await store.events.verify(lease.runId)).toMatchObject({ ok: true });
  expect(await store.mailbox.read(lease.runId)).toHaveLength(1);
});

test("a call fails with store_unavailable if the PostgreSQL server stays away longer than retryForMs", async () => {
  const server = await PostgresServer.start();
  onTestFinished(() => server.stop());
  const store = await openSchema(newSchema(), { url: server.url, retryForMs: 30 });
  await createRun(store);
  await server.kill();
  await expect(createRun(store, "b")).rejects.toMatchObject({ code: "store_unavailable" });
  await server.restart();
  expect(await store.journal.find("run_a" as never)).toMatchObject({ runId: "run_a" });
});

test("J1: a PostgreSQL commit whose answer is lost is stored once, and append() returns it as its own", async () => {
  const proxy = await proxied();
  const store = await openSchema(newSchema(), { url: proxy.url });
  const lease = await ownRun(store);
  const commit = { number: 1, at: 2, steps: [stepRecord(0, "once")] };
  proxy.cutAfter("append_commit");
  expect(await store.journal.append(lease, commit)).toBe(commit);
  const next = { number: 2, at: 3 };
  expect(await store.journal.append(lease, next)).toBe(next);
  expect(proxy.cuts).toBe(1);
  expect(await numbers(store)).toEqual([0, 1, 2]);
});

test("J1: a PostgreSQL commit that an earlier attempt stores while append() searches for it is returned as the caller's own", async () => {
  const proxy = await proxied();
  const schema = newSchema();
  const [direct, store] = [await openSchema(schema), await openSchema(schema, { url: proxy.url })];
  const lease = await ownRun(direct);
  const commit = { number: 1, at: 2, steps: [stepRecord(0, "once")] };
  // This store has not read the end of the journal. The other store is the earlier attempt, whose connection was lost.
  const reading = proxy.holdAfter(".commits WHERE run = $1");
  const appended = store.journal.appendAndRelease?.(lease, commit, undefined, { kind: "ready" });
  await reading.answered;
  expect(await direct.journal.append(lease, structuredClone(commit))).toEqual(commit);
  reading.release();
  expect(await appended).toBe(commit);
  expect(await numbers(store)).toEqual([0, 1]);
});

test("R2: a PostgreSQL transaction whose COMMIT gets no answer takes effect once and reports its outcome", async () => {
  const proxy = await proxied();
  const { records, mailbox, ...store } = await openSchema(newSchema(), { url: proxy.url });
  const runId = await createRun({ records, mailbox, ...store });
  const key = { namespace: "tokens", key: "k" };
  proxy.cutAfter("COMMIT\0");
  const written = await records.put({ ...key, value: 1 }, "absent");
  expect(written).toMatchObject({ kind: "stored" });
  proxy.cutAfter("COMMIT\0");
  expect(await mailbox.put({ id: "m", runId, from: "x", at: 1, body: { type: "pause" } })).toBe(true);
  expect(proxy.cuts).toBe(2);
  expect(await records.get(key)).toMatchObject({
    value: 1,
    version: (written as { version: number }).version,
  });
  expect(await mailbox.read(runId)).toHaveLength(1);
});

test("a submission to PostgreSQL whose outcome stays unknown fails with store_unavailable, and a repeat stores it once", async () => {
  const proxy = await proxied();
  const schema = newSchema();
  const store = await openSchema(schema, { url: proxy.url, retryForMs: 0, connections: 1 });
  proxy.cutAfter("COMMIT\0", { isLast: true });
  await expect(createRun(store)).rejects.toMatchObject({ code: "store_unavailable" });
  // The server may commit after the connection is cut.
  await expect.poll(() => query(`SELECT run_id FROM ${schema}.runs`)).toEqual([{ run_id: "run_a" }]);
  proxy.accept();
  expect(await createRun(store)).toBe("run_a");
  expect(await numbers(store)).toEqual([0]);
});

test("a PostgreSQL connection that ends before COMMIT makes the store repeat the transaction", async () => {
  const proxy = await proxied();
  const store = await openSchema(newSchema(), { url: proxy.url });
  proxy.cutAfter("INSERT INTO");
  expect(await createRun(store)).toBe("run_a");
  expect(proxy.cuts).toBe(1);
  expect(await numbers(store)).toEqual([0]);
});

test("enlist() on PostgreSQL refuses a worker whose clock differs by a minute from that of the database", async () => {
  const store = await openSchema(newSchema());
  // The clock runs, so that the difference depends little on how long the call takes.
  const now = Date.now.bind(Date);
  const clock = vi.spyOn(Date, "now").mockImplementation(() => now() + 60_000);
  onTestFinished(() => clock.mockRestore());
  await expect(store.leases.enlist("w1")).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringMatching(/differs by [56]\d s/u) as string,
  });
});

test("PostgreSQL stores a text with the characters U+0000 and U+0001 unchanged", async () => {
  const store = await openSchema(newSchema());
  const lease = await ownRun(store);
  const text = `\u0000 a\u0001b \u00010 \u0001\u0000 ${"\u0000 long ".repeat(4_000)}`;
  const commit = { number: 1, at: 2, steps: [stepRecord(0, text)] };
  await store.journal.append(lease, commit);
  const [, stored] = await all(store.journal.read(lease.runId));
  expect(stored?.steps?.[0]?.outcome).toEqual({ kind: "ok", value: text });
  await store.topics.apply([{ type: "follow", topicId: text.slice(0, 9) as never, agentId: "a" as never }]);
  expect(await store.topics.followers(text.slice(0, 9) as never)).toEqual(["a"]);
});
