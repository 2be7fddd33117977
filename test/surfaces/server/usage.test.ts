import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { addDays, utcDay, type Store } from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { delta, spend } from "../../../src/testing/contracts/usage-fixtures.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { fileOfText } from "../../golden/file-text.ts";
import { newPath, openStore } from "../../runtime/stores/sqlite/store-files.ts";
import { startServer, type TestServer } from "./test-server.ts";

const today = utcDay(Date.now());
const clerk = new Agent({ name: "clerk", model: scriptedModel(["Hello."]) });

async function serve(store: Store = memoryStore({ hash: sha256 })): Promise<TestServer> {
  const server = await startServer([clerk], { store });
  onTestFinished(() => server.close());
  return server;
}

async function overTime(server: TestServer, query: string, token = server.admin) {
  const { status, json } = await server.call("GET", `/api/usage/over-time?${query}`, { token });
  expect(status).toBe(200);
  return json as unknown as {
    readonly open: number | null;
    readonly timesBefore: readonly string[];
    readonly total: Series;
    readonly rows: readonly ({ readonly key: string | null; readonly tenantId?: string | null } & Series)[];
    readonly otherRows: number;
  };
}

interface Series {
  readonly sum: { readonly costUsd: number; readonly details: object | null };
  readonly closed: { readonly costUsd: number };
  readonly earlier: { readonly costUsd: number };
  readonly now: Readonly<Record<string, readonly (number | null)[]>>;
  readonly before: Readonly<Record<string, readonly (number | null)[]>>;
}

it("the server's usage over time has the sums of each day, the days before, and the values with the highest cost", async () => {
  const server = await serve();
  const on = (day: string, costUsd: number, more: object = {}) =>
    delta({ day, hour: 0, turns: 1, nanoUsd: costUsd * 1e9, latency: { b9: 1 }, ...more });
  const yesterday = addDays(today, -1);
  await spend(server.store, "a", [on(today, 1), on(yesterday, 2, { failedRuns: 1, inputTokens: 8 })], {
    tenantId: "acme",
    userId: "ann",
  });
  await spend(server.store, "b", [on(yesterday, 4, { model: "acme/m2", cachedTokens: 3, inputTokens: 4 })]);
  await spend(server.store, "c", [on(addDays(today, -3), 16), on(addDays(today, -2), 32)]);
  const query = `from=${yesterday}&to=${today}`;
  const { open, timesBefore, total, rows, otherRows } = await overTime(server, `by=user&limit=1&${query}`);
  expect([open, timesBefore, otherRows]).toEqual([1, [addDays(today, -3), addDays(today, -2)], 1]);
  expect([total.sum.costUsd, total.closed.costUsd, total.earlier.costUsd]).toEqual([7, 6, 16]);
  expect(total.now).toEqual({
    costUsd: [6, 1],
    tokens: [12, 0],
    runs: [0, 0],
    failedRuns: [1, 0],
    failedCalls: [0, 0],
    slowMs: [expect.any(Number), expect.any(Number)],
    cacheShare: [0.25, null],
  });
  expect(total.before["costUsd"]).toEqual([16, 32]);
  // The user who spent most in the period, not in the one before.
  expect(rows.map(({ key, tenantId, now }) => [key, tenantId, now["costUsd"]])).toEqual([
    [null, null, [4, 0]],
  ]);
  const acme = await server.tokenOf("acme", "read");
  expect((await overTime(server, `by=tenant&${query}`, acme)).rows.map(({ key }) => key)).toEqual(["acme"]);
  const { status, json } = await server.call(
    "GET",
    `/api/usage/over-time?by=user&from=${today}&to=${today}T05`,
  );
  expect([status, json["detail"] ?? json["message"] ?? JSON.stringify(json)]).toEqual([
    400,
    expect.stringContaining("invalid period"),
  ]);
});

it("the server's usage over time of a store that has no details and no hours reports both as unknown", async () => {
  const path = await newPath();
  fileOfText(path, readFileSync(new URL("../../golden/format-32.sql", import.meta.url), "utf8"));
  const file = new DatabaseSync(path);
  file.exec("UPDATE usage_totals SET detailed = 0; DELETE FROM usage_totals WHERE period LIKE 'h%'");
  file.close();
  const server = await serve(await openStore(path));
  const [row] = await server.runtime.usage({ by: "day" });
  const day = row?.key ?? "";
  const { total } = await overTime(server, `by=agent&from=${day}&to=${day}`);
  expect(total.now["costUsd"]).toEqual([row?.costUsd]);
  expect([total.now["failedRuns"], total.now["slowMs"]]).toEqual([[null], [null]]);
  expect(total.sum.details).toBeNull();
  const hours = await overTime(server, `by=agent&from=${day}T10&to=${day}T11`);
  expect([hours.total.now["costUsd"], hours.total.now["runs"]]).toEqual([
    [null, null],
    [null, null],
  ]);
});

it("what a run in progress has spent under a cap counts once in the amount that is spent today", async () => {
  const held = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const hold = tool({
    name: "hold",
    description: "Waits for the test.",
    inputSchema: { type: "object" },
    execute: async () => {
      held.resolve();
      await released.promise;
      return "Free.";
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "hold", input: {} }] }, "Done."]);
  const prices = { find: () => ({ inputUsd: 1e-3, outputUsd: 1e-3 }) };
  const server = await startServer([new Agent({ name: "reader", model, tools: [hold] })], {
    runtimeOptions: { prices, caps: { perDayUsd: 100 } },
  });
  onTestFinished(() => server.close());
  const body = { agent: "reader", input: "Read." };
  const { json } = await server.call("POST", "/api/runs", { body });
  const { runId } = json["run"] as { readonly runId: string };
  await held.promise;
  const facts = async () => (await server.call("GET", "/api/facts")).json;
  const run = await server.runtime.find(runId);
  const spent = (await run?.summary())?.costUsd ?? 0;
  const during = await facts();
  released.resolve();
  await run?.result();
  expect(spent).toBeGreaterThan(0);
  expect([during["spentTodayUsd"], during["unrecordedUsd"]]).toEqual([spent, 0]);
});
