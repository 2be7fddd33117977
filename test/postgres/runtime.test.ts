import { expect, inject, onTestFinished, test } from "vitest";
import { Agent, openClient, openRuntime, tool } from "../../src/entries/index.ts";
import { formatAgentId, type HostedAgent } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { postgresStore } from "../../src/runtime/stores/postgres/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entryEdits, writeEntries } from "../runtime/stores/edited-entries.ts";
import { newSchema, openSchema, query } from "./schemas.ts";
import { PostgresServer } from "./server.ts";

test("openRuntime() executes a run with a tool in a PostgreSQL store, and another runtime reads its result", async () => {
  const store = `${inject("postgresUrl")}?schema=${newSchema()}` as `postgres://${string}`;
  const add = tool({
    name: "add",
    description: "Adds two numbers",
    inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
    execute: async (input) => {
      const { a, b } = input as { readonly a: number; readonly b: number };
      return a + b;
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "add", input: { a: 2, b: 3 } }] }, "The sum is 5."]);
  const clerk = new Agent({ name: "clerk", model, tools: [add] });
  await using first = await openRuntime({ store });
  const result = await clerk.invoke("What is 2 + 3?", { runtime: first });
  expect(result).toMatchObject({ status: "completed", output: "The sum is 5." });
  await using second = await openRuntime({ store });
  const run = await second.find(result.runId);
  expect(await run?.result()).toMatchObject({ status: "completed", output: "The sum is 5." });
});

test("a run whose worker could not write while the PostgreSQL server was away ends after the server is back", async () => {
  const server = await PostgresServer.start();
  onTestFinished(() => server.stop());
  const store = await postgresStore({ url: server.url, hash: sha256, retryForMs: 100 });
  const codes = new Set<string>();
  let restart: Promise<void> | undefined;
  await using runtime = await openRuntime({
    store,
    pollMs: 50,
    onError: ({ code }) => {
      codes.add(code);
      restart ??= server.restart();
    },
  });
  const done: string[] = [];
  const agent = {
    id: formatAgentId({ name: "clerk" }),
    run: async (ctx: Parameters<HostedAgent["run"]>[0]) => {
      for (const name of ["one", "two", "three"])
        await ctx.step(name, async () => {
          done.push(name);
          if (name === "two" && restart === undefined) await server.kill();
          return name;
        });
      return done.join(" ");
    },
  };
  const run = await runtime.submit(agent, null);
  expect(await run.result()).toMatchObject({ status: "completed" });
  // J6: only the call in flight is repeated.
  expect(done).toEqual(["one", "two", "two", "three"]);
  expect(codes).toContain("store_unavailable");
});

test("startMany() creates runs in few transactions in a PostgreSQL store, and an item that is refused affects no other", async () => {
  const schema = newSchema();
  await using client = await openClient({ store: await openSchema(schema) });
  const items = Array.from({ length: 150 }, (_, index) => ({ input: index }));
  await client.startMany("many", items);
  const [count] = await query(
    `SELECT count(*)::int AS runs, count(DISTINCT created.xmin::text)::int AS transactions FROM ${schema}.runs AS created`,
  );
  expect(count).toEqual({ runs: 150, transactions: 2 });
  const named = (input: number): { readonly input: number; readonly runId: string }[] =>
    ["a", "b", "c"].map((name, index) => ({ input: name === "b" ? input : index, runId: `run_${name}` }));
  await client.startMany("many", named(1));
  const again = await client.startMany("many", named(2));
  expect(again.map(({ status }) => status)).toEqual(["started", "refused", "started"]);
});

test("E1: verify() finds edited session entries in a PostgreSQL store, and names them", async () => {
  const schema = newSchema();
  const store = await openSchema(schema);
  const runId = await writeEntries(store);
  expect(await store.events.verify(runId)).toMatchObject({ ok: true });
  for (const [, sql, entry] of entryEdits) {
    // Each edit is undone, so that the next one is the only one.
    await query(`BEGIN; CREATE TABLE ${schema}.kept AS SELECT * FROM ${schema}.entries; COMMIT`);
    await query(`BEGIN; SET LOCAL search_path = ${schema}; ${sql}; COMMIT`);
    const verdict = await store.events.verify(runId);
    expect({ sql, ...verdict }).toMatchObject({
      sql,
      ok: false,
      problem: expect.stringContaining(entry) as string,
    });
    await query(`BEGIN; SET LOCAL session_replication_role = replica; DELETE FROM ${schema}.entries;
      INSERT INTO ${schema}.entries OVERRIDING SYSTEM VALUE SELECT * FROM ${schema}.kept;
      DROP TABLE ${schema}.kept; COMMIT`);
  }
});
