import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openClient, openRuntime, sha256, type Client, type Runtime } from "../../src/entries/index.ts";
import { sqliteStore } from "../../src/entries/sqlite.ts";
import { object, query, signal, update, workflow } from "../../src/entries/workflow.ts";
import { idleEngine } from "../../src/surfaces/cli/setup/idle-engine.ts";
import { Fault, type Store } from "../../src/kernel/index.ts";
import { removeStoresAfterEach, twoStores } from "../runtime/two-stores.ts";

removeStoresAfterEach();

const paid = signal("paid", z.object({ cents: z.number() }));
const stage = query("stage", z.string());
const move = update("move", { input: z.string().min(1), output: z.string() });
const order = workflow(
  "order",
  { input: z.object({ orderId: z.string(), copies: z.number().default(1) }) },
  async (ctx, { orderId, copies }) => {
    const { id, promise } = ctx.promise(z.string());
    ctx.publish(stage, id);
    const payment = await ctx.waitForSignal(paid);
    await ctx.handleUpdate(move, async (to) => `moved to ${to}`);
    return { orderId, copies, cents: payment?.cents ?? 0, carrier: await promise.result() };
  },
);

const counter = object(
  "counter",
  { state: z.object({ count: z.number() }).default({ count: 0 }) },
  {
    add: async (ctx, by: number) => {
      ctx.setState({ count: ctx.state.count + by });
      return ctx.state.count;
    },
  },
);

/** Calls the body with a client on a new store, and with a function that opens the store again as a worker. */
async function withClient(
  prepare: () => Promise<() => Promise<Store>>,
  body: (client: Client, openWorker: () => Promise<Runtime>) => Promise<void>,
): Promise<void> {
  const reopen = await prepare();
  const opened: { close(): Promise<void> }[] = [];
  const client = await openClient({ store: await reopen(), onError: () => undefined });
  opened.push(client);
  try {
    await body(client, async () => {
      const worker = await openRuntime({ store: await reopen(), pollMs: 10 });
      opened.push(worker);
      return worker;
    });
  } finally {
    for (const each of opened.toReversed()) await each.close();
  }
}

const codeOf = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "none",
    (error: unknown) => Fault.from(error).code,
  );

describe.each(twoStores)("a client of a runtime, %s store", (_name, prepare) => {
  test("a run of a client is signalled, read, updated and completed while another process executes it", () =>
    withClient(prepare, async (client, openWorker) => {
      const started = await client.start("order", { orderId: "7" }, { runId: "run_order-7" });
      const typed = await client.start(order, { orderId: "8" }, { runId: "run_order-8", delayMs: 3_600_000 });
      expect((await started.summary()).waitsFor).toEqual(["worker"]);
      expect((await typed.summary()).waitsFor).toEqual(["time"]);
      expect(await codeOf(client.start(order, { orderId: 8 } as never))).toBe("invalid_argument");
      const worker = await openWorker();
      worker.register(order);
      const run = await client.run("run_order-7");
      await run.signal(paid, { cents: 900 }, { id: "event-1" });
      await run.signal(paid, { cents: 900 }, { id: "event-1" });
      expect(await run.update(move, "Main St 1")).toBe("moved to Main St 1");
      expect(await client.promise((await run.read(stage)) ?? "").resolve("ACME")).toBe(true);
      const { status, output } = await run.result();
      expect([status, output]).toEqual([
        "completed",
        { orderId: "7", copies: 1, cents: 900, carrier: "ACME" },
      ]);
      await typed.cancel("not needed");
      expect((await typed.result()).status).toBe("cancelled");
      expect(await codeOf(client.run("run_other"))).toBe("not_found");
    }));

  test("L19: a client calls an object that another process hosts, and gets its result", () =>
    withClient(prepare, async (client, openWorker) => {
      const add = client.object(counter, "a").add(2);
      (await openWorker()).register(counter);
      expect(await add).toBe(2);
      expect(await client.object(counter, "a").state()).toEqual({ count: 2 });
    }));

  test("L18: a client cancels a run by name that no worker hosts, and leaves a run of a live worker to that worker", () =>
    withClient(prepare, async (client, openWorker) => {
      const worker = await openWorker();
      worker.register(order);
      const adopted = await client.start("order", { orderId: "7" });
      for await (const { type } of adopted.events()) if (type === "value_published") break;
      const unknown = await client.start("ordre", { orderId: "7" });
      for (const run of [unknown, adopted]) await run.cancel("not needed");
      for (const run of [unknown, adopted]) expect((await run.result()).status).toBe("cancelled");
    }));

  test("startMany() starts each run once, and refuses a wrong input and an id with another input", () =>
    withClient(prepare, async (client) => {
      const items = Array.from({ length: 200 }, (_item, index) => ({
        input: { orderId: `${index % 100}` },
        runId: `run_order-${index % 100}`,
      }));
      const outcomes = await client.startMany("order", items, { metadata: { batch: "a" } });
      expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(["started"]));
      expect(await client.count({ metadata: { batch: "a" } })).toBe(100);
      const again = await client.startMany(order, [
        { input: { orderId: "new" }, runId: "run_order-0" },
        { input: { orderId: 7 } as never },
        { input: { orderId: "1000" }, runId: "run_order-1000" },
      ]);
      expect(again.map((each) => (each.status === "refused" ? each.error.code : each.run.runId))).toEqual([
        "already_exists",
        "invalid_argument",
        "run_order-1000",
      ]);
    }));

  test("S6: the client of a tenant starts runs of the tenant and sees no others", () =>
    withClient(prepare, async (client) => {
      const acme = client.forTenant({ tenantId: "acme" });
      const own = await acme.start("order", { orderId: "1" });
      const other = await client.start("order", { orderId: "2" }, { tenantId: "globex" });
      expect((await own.summary()).tenantId).toBe("acme");
      expect((await acme.list()).runs.map(({ runId }) => runId)).toEqual([own.runId]);
      expect(await codeOf(acme.run(other.runId))).toBe("not_found");
      expect(await codeOf(acme.start("order", null, { tenantId: "globex" }))).toBe("invalid_argument");
    }));
});

test("L18: a runtime reports no error if its store is closed after a run that was started by name was cancelled", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-client-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const errors: string[] = [];
  const store = await sqliteStore({ path: join(folder, "reeve.db"), hash: sha256 });
  const onError = ({ message }: Fault): unknown => errors.push(message);
  const runtime = await openRuntime({ store, engine: idleEngine, onError });
  await (await runtime.start("ordre", null)).cancel("not needed");
  await runtime.close();
  await store.close();
  // What the runtime writes when it is idle follows within two turns of the event loop.
  for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate);
  expect(errors).toEqual([]);
});

test("openClient() and its starts refuse options that only a worker can use, and name the fix", async () => {
  const messageOf = async (work: () => unknown): Promise<string> => {
    try {
      await work();
    } catch (error) {
      return Fault.from(error).message;
    }
    return "none";
  };
  expect(await messageOf(() => openClient(JSON.parse("{}") as never))).toMatch(
    /invalid store undefined of openClient\(\)/u,
  );
  expect(await messageOf(() => openClient({ store: "memory:" }))).toMatch(
    /expected the store of the workers/u,
  );
  const [[, prepare] = ["", undefined]] = twoStores;
  const store = (await (await prepare?.())?.()) as Store;
  expect(await messageOf(() => openClient({ store, concurrency: 2 } as never))).toMatch(/executes no run/u);
  const client = await openClient({ store });
  const context = { db: 1 };
  expect(await messageOf(() => client.start("order", null, { context } as never))).toMatch(
    /a context is not stored/u,
  );
  expect(await messageOf(() => client.start("no name", null))).toMatch(/no name/u);
  expect(await messageOf(() => client.startMany("order", [], { runId: "run_a" }))).toMatch(
    /set runId of each item/u,
  );
  expect(await messageOf(() => client.startMany("order", [{ input: null }, {} as never]))).toBe(
    "missing input of item 1 of startMany(); use { input: null } for a workflow that takes none",
  );
  expect(await messageOf(() => client.startMany(undefined as never, []))).toMatch(
    /^invalid workflow undefined of startMany\(\): expected a workflow/u,
  );
  expect(await client.count({})).toBe(0);
  await client.close();
});
