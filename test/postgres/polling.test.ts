import { Client } from "pg";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { openRuntime } from "../../src/entries/index.ts";
import { formatAgentId, type HostedAgent, type StoreChange } from "../../src/kernel/index.ts";
import { createServer, listen } from "../../src/surfaces/server/index.ts";
import { createRun, ownRun } from "../../src/testing/contracts/store-fixtures.ts";
import { newSchema, openSchema, query } from "./schemas.ts";

const polls = 8;

/** Returns the statements that a store with so many executed runs sends from one poll to another, several polls later. */
async function statementsOf(runs: number): Promise<readonly string[]> {
  const schema = newSchema();
  const sent: string[] = [];
  const send = Reflect.get(Client.prototype, "query") as (...args: unknown[]) => unknown;
  const spy = vi.spyOn(Client.prototype, "query").mockImplementation(function (
    this: Client,
    ...args: unknown[]
  ) {
    if (typeof args[0] === "string" && args[0].includes(`"${schema}"`)) sent.push(args[0]);
    return Reflect.apply(send, this, args) as never;
  });
  const store = await openSchema(schema, { pollMs: 20 });
  const runtime = await openRuntime({ store });
  const { promise: end, resolve: finish } = Promise.withResolvers<string>();
  let driven = 0;
  const agent: HostedAgent = {
    id: formatAgentId({ name: "busy" }),
    run: (ctx) => ctx.step("work", () => (driven++, end)),
  };
  const handles = await Promise.all(Array.from({ length: runs }, () => runtime.submit(agent, null)));
  await vi.waitFor(() => expect(driven).toBe(runs), { timeout: 300_000 });
  const isPoll = (sql: string): boolean => sql.includes("AS wanted (id, epoch, seen, index)");
  const pollsUntil = async (count: number): Promise<number> => {
    await vi.waitFor(() => expect(sent.filter(isPoll).length).toBeGreaterThanOrEqual(count), {
      timeout: 300_000,
    });
    return sent.findLastIndex(isPoll);
  };
  const first = await pollsUntil(sent.filter(isPoll).length + 2);
  const last = await pollsUntil(sent.filter(isPoll).length + polls);
  const between = sent.slice(first, last);
  spy.mockRestore();
  finish("done");
  await Promise.all(handles.map((run) => run.result()));
  await runtime.close();
  return between;
}

test("polling PostgreSQL costs the same number of statements for 1 and for 30 executed runs, and reads no mailbox", async () => {
  for (const runs of [1, 30]) {
    const sent = await statementsOf(runs);
    expect(sent.filter((sql) => /SELECT place, body FROM \S+\.mail /u.test(sql))).toEqual([]);
    // The dead workers, the changed runs, a look for ready runs and one for messages; now and then a beat and the schedules.
    expect(sent.length / polls).toBeLessThan(8);
  }
});

test("a poll of PostgreSQL announces once a run of this process that has new mail, and a run with another owner", async () => {
  const schema = newSchema();
  const store = await openSchema(schema, { pollMs: 20 });
  const lease = await ownRun(store);
  const told: StoreChange[] = [];
  onTestFinished(store.onChange((change) => told.push(change)));
  const owned = (): readonly string[] =>
    told.flatMap((change) => (change.kind === "other" ? (change.owned ?? []) : []));
  const nextPolls = async (): Promise<void> => {
    const before = told.length;
    await vi.waitFor(() => expect(told.length).toBeGreaterThan(before + 3), { timeout: 300_000 });
  };
  await nextPolls();
  expect(owned()).toEqual([]);
  // Without a notification, as if it had been lost.
  await query(`INSERT INTO ${schema}.mail (run, place, body) SELECT id, 0, '{}' FROM ${schema}.runs`);
  await vi.waitFor(() => expect(owned()).toEqual([lease.runId]), { timeout: 300_000 });
  await nextPolls();
  expect(owned()).toEqual([lease.runId]);
  await query(`UPDATE ${schema}.runs SET owner = 'thief', epoch = epoch + 1`);
  await vi.waitFor(() => expect(owned()).toEqual([lease.runId, lease.runId]), { timeout: 300_000 });
  await expect(store.leases.check(lease)).rejects.toMatchObject({ code: "lease_lost" });
  await createRun(store, "b");
});

interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** Fills a schema with suspended runs that have not changed since, as copies of one run. */
async function addWaiting(schema: string, count: number): Promise<void> {
  const own = ["id", "run_id", "session_id", "change", "cost", "state", "epoch"];
  const columns = (await query(
    `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = '${schema}' AND table_name = 'runs'`,
  )) as readonly { readonly name: string }[];
  const copied = columns.flatMap(({ name }) => (own.includes(name) ? [] : [`"${name}"`])).join(", ");
  await query(`INSERT INTO ${schema}.runs (run_id, session_id, change, state, epoch, ${copied})
    SELECT 'run_w' || n, 'ses_w' || n, 1, 2, 1, ${copied} FROM ${schema}.runs, generate_series(1, ${count}) AS n`);
  await query(`ANALYZE ${schema}.runs`);
}

test("K5: an idle server on PostgreSQL with an open page and 20,000 waiting runs reads runs by indexes alone", async () => {
  const schema = newSchema();
  const store = await openSchema(schema, { pollMs: 20 });
  await createRun(store, "a");
  await addWaiting(schema, 20_000);
  const runtime = await openRuntime({ store });
  onTestFinished(() => runtime.close());
  const server = createServer(runtime, { tokens: null, limits: { changesMs: 20 } });
  const listening = await listen(server, { port: 0 });
  onTestFinished(() => listening.close());
  const page = new AbortController();
  onTestFinished(() => page.abort());
  const stream = await fetch(`${listening.url}/api/stream`, { signal: page.signal });
  await stream.body?.getReader().read();
  const sent = new Map<string, Statement>();
  let looks = 0;
  const send = Reflect.get(Client.prototype, "query") as (...args: unknown[]) => unknown;
  const spy = vi.spyOn(Client.prototype, "query").mockImplementation(function (
    this: Client,
    ...args: unknown[]
  ) {
    const [sql, values = []] = args as [sql: unknown, values?: readonly unknown[]];
    if (typeof sql === "string" && sql.includes(`"${schema}".runs`)) {
      sent.set(sql, { sql, values });
      if (sql.includes("change > $1")) looks++;
    }
    return Reflect.apply(send, this, args) as never;
  });
  await vi.waitFor(() => expect(looks).toBeGreaterThan(polls), { timeout: 300_000 });
  spy.mockRestore();
  const client = new Client({ connectionString: inject("postgresUrl") });
  await client.connect();
  onTestFinished(() => client.end());
  const scans: string[] = [];
  for (const { sql, values } of sent.values()) {
    const explained = await client.query(`EXPLAIN ${sql}`, [...values]);
    const plan = JSON.stringify((explained as unknown as { readonly rows: readonly object[] }).rows);
    if (/Seq Scan on (?:\S+\.)?runs\b/u.test(plan)) scans.push(sql);
  }
  expect(sent.size).toBeGreaterThan(1);
  expect(scans).toEqual([]);
});
