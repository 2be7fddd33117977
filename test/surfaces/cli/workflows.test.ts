import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { openRuntime } from "../../../src/entries/index.ts";
import { object, update, workflow } from "../../../src/entries/workflow.ts";
import { reeve } from "./reeve-process.ts";

const move = update("move", { input: z.string().min(1), output: z.string() });
const order = workflow("order", { input: z.object({ orderId: z.string() }) }, async (ctx, { orderId }) => {
  const { id, promise } = ctx.promise(z.string());
  ctx.publish("callback", id);
  const paid = await ctx.waitForSignal("paid");
  await ctx.handleUpdate(move, async (to) => `moved to ${to}`);
  return { orderId, paid: paid ?? null, carrier: await promise.result() };
});

test("reeve start, signal, read, update and promise control a workflow that another process hosts", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-workflows-"));
  const store = `sqlite:${join(folder, "reeve.db")}` as const;
  const runtime = await openRuntime({ store, pollMs: 20 });
  onTestFinished(async () => {
    await runtime.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  const cli = (...args: string[]): ReturnType<typeof reeve> => reeve([...args, "--store", store]);
  const file = join(folder, "order.json");
  await writeFile(file, '{"orderId": "7"}');
  const start = ["start", "order", "--input", `@${file}`, "--id", "order-7"];
  const started = await cli(...start, "--metadata", "shop=4711");
  expect([started.code, started.out]).toEqual([0, ["run_order-7"]]);
  expect(started.talk).toContain("run_order-7 waits for a worker that hosts the workflow order");
  const misspelt = await cli("start", "ordre", "--input", "{}", "--at", "2099-01-01T00:00:00Z", "--json");
  expect([misspelt.code, misspelt.out.length]).toEqual([0, 1]);
  const hint = await cli("start", "oder");
  expect(hint.talk).toMatch(/Did you mean orde?re?\?/u);
  const shown = await cli("show", "run_order-7");
  expect(shown.out.join("\n")).toContain("no worker of this store hosts order");
  runtime.register(order);
  const [signalled, again] = [
    await cli("signal", "run_order-7", "paid", "--value", '{"cents": 900}', "--id", "e1"),
    await cli("signal", "run_order-7", "paid", "--value", '{"cents": 900}', "--id", "e1"),
  ];
  expect([signalled.code, again.code]).toEqual([0, 0]);
  const moved = await cli("update", "run_order-7", "move", "--value", '"Main St 1"');
  expect([moved.code, moved.out]).toEqual([0, ['"moved to Main St 1"']]);
  const read = await cli("read", "run_order-7", "callback");
  const callback = JSON.parse(read.out[0] ?? "null") as string;
  const cart = object("cart", {
    add: async (ctx, cents: number) => {
      ctx.setState({ cents });
      return null;
    },
  });
  await runtime.object(cart, "ada").add(900);
  await runtime.object(cart, "b/ob", { tenantId: "acme" }).add(5);
  expect((await cli("state", "cart", "ada")).out).toEqual(['{"cents":900}']);
  expect((await cli("state", "cart", "--tenant", "acme")).out).toEqual([
    '{"key":"b/ob","state":{"cents":5}}',
  ]);
  const stateless = await cli("state", "cart", "b/ob");
  expect([stateless.code, stateless.talk]).toEqual([3, expect.stringContaining("has no state")]);
  expect((await cli("promise", "resolve", callback, "--value", '"ACME"')).code).toBe(0);
  const ended = await cli(...start, "--wait", "--json");
  expect([ended.code, JSON.parse(ended.out[0] ?? "{}")]).toEqual([
    0,
    {
      runId: "run_order-7",
      status: "completed",
      output: { orderId: "7", paid: { cents: 900 }, carrier: "ACME" },
      error: null,
    },
  ]);
  // A workflow has no session.
  expect((await cli("show", "run_order-7")).out.join("\n")).not.toContain("session");
  expect((await cli("show", "run_order-7", "--json")).out.join("\n")).not.toContain("sessionId");
  expect((await cli("ps", "--all", "--json")).out.join("\n")).not.toContain("sessionId");
  expect((await cli("resume", "run_order-7")).talk).toContain("start another run with reeve start");
  const wrong = await cli("start", "order", "--input", '{"orderId": 7}', "--wait");
  expect([wrong.code, wrong.out]).toEqual([10, []]);
  expect(wrong.talk).toContain("invalid input of workflow order: orderId");
  const other = await cli("start", "order", "--input", '{"orderId": "8"}', "--id", "order-7");
  expect([other.code, other.talk]).toEqual([2, expect.stringContaining("another input")]);
  const absent = await cli("read", "run_order-7", "nothing");
  expect([absent.code, absent.talk]).toEqual([3, expect.stringContaining("has published no value")]);
  for (const args of [
    ["start", "order", "--input", "{orderId}"],
    ["start", "order", "--delay", "soon"],
    ["start", "order", "--at", "1", "--delay", "1s"],
    ["signal", "run_order-7", "paid", "--value", "@/does/not/exist"],
  ])
    expect((await cli(...args)).code).toBe(2);
});
