import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { object, signal, update, workflow } from "../../../src/entries/workflow.ts";
import { startServer } from "./test-server.ts";

const order = workflow("order", { input: z.object({ cents: z.number() }) }, async (ctx, { cents }) => {
  const paid = await ctx.waitForSignal("paid");
  return { cents, paid: paid ?? null };
});

test("a caller of the server starts a workflow, sends it a signal and reads its output; a wrong input starts nothing", async () => {
  const server = await startServer([order]);
  onTestFinished(() => server.close());
  const start = (input: object) =>
    server.call("POST", "/api/runs", {
      body: { agent: "order", input },
      headers: { "idempotency-key": "7" },
    });
  const refused = await start({ cents: "900" });
  expect(refused).toMatchObject({
    status: 400,
    json: { detail: expect.stringContaining("invalid input of workflow order: cents") },
  });
  expect((await server.call("GET", "/api/runs?kind=workflow")).json["runs"]).toEqual([]);
  const { status, json } = await start({ cents: 900 });
  const { runId, kind } = json["run"] as { readonly runId: string; readonly kind: string };
  expect([status, kind]).toEqual([201, "workflow"]);
  const steered = await server.call("POST", `/api/runs/${runId}/steer`, { body: { input: "more" } });
  expect(steered).toMatchObject({ status: 400, json: { detail: expect.stringContaining("use signal()") } });
  await server.call("POST", `/api/runs/${runId}/signal`, { body: { name: "paid", value: 900 } });
  const result = await server.call("GET", `/api/runs/${runId}/result?waitMs=10000`);
  expect(result.json["output"]).toEqual({ cents: 900, paid: 900 });
});

test("a caller of the server sends an update, reads a published value and settles a promise; other tenants get 404", async () => {
  const move = update("move", { input: z.string(), output: z.object({ movedTo: z.string() }) });
  const parcel = workflow("parcel", async (ctx) => {
    const { id, promise } = ctx.promise();
    ctx.publish("callback", id);
    const validate = (to: unknown): void => {
      if (to === "nowhere") throw new Error("there is no such place");
    };
    const handled = await ctx.handleUpdate(move, async (to) => ({ movedTo: to }), { validate });
    return { handled: handled?.status ?? null, carrier: await promise.result() };
  });
  const server = await startServer([parcel]);
  onTestFinished(() => server.close());
  const [token, other] = [await server.tokenOf("acme", "run"), await server.tokenOf("globex", "run")];
  const started = await server.call("POST", "/api/runs", { token, body: { agent: "parcel", input: null } });
  const { runId } = started.json["run"] as { readonly runId: string };
  const send = (body: object, as = token) =>
    server.call("POST", `/api/runs/${runId}/update`, { token: as, body: { name: "move", ...body } });
  const refused = await send({ value: "nowhere" });
  expect(refused).toMatchObject({
    status: 409,
    json: { code: "update_refused", detail: "there is no such place" },
  });
  expect((await send({ value: "x" }, other)).status).toBe(404);
  const moved = await send({ value: "Main St 1", id: "request-1" });
  const again = await send({ value: "Main St 1", id: "request-1" });
  expect([moved.status, moved.json["reply"], again.json]).toEqual([
    200,
    { movedTo: "Main St 1" },
    moved.json,
  ]);
  const late = await send({ value: "Side St 2", id: "request-2", waitMs: 0 });
  expect([late.status, late.json["id"]]).toEqual([202, "request-2"]);
  const value = await server.call("GET", `/api/runs/${runId}/values/callback`, { token });
  expect((await server.call("GET", `/api/runs/${runId}/values/none`, { token })).status).toBe(404);
  const settle = (as: string) =>
    server.call("POST", `/api/promises/${value.json["value"] as string}/resolve`, {
      token: as,
      body: { value: "ACME" },
    });
  expect((await settle(other)).status).toBe(404);
  expect((await settle(token)).json).toEqual({ isFirst: true });
  expect((await settle(token)).status).toBeLessThan(500);
  const result = await server.call("GET", `/api/runs/${runId}/result?waitMs=10000`, { token });
  expect(result.json["output"]).toEqual({ handled: "completed", carrier: "ACME" });
});

test("a server starts a workflow that its option `workflows` names, and the run waits for a worker", async () => {
  const server = await startServer([], { workflows: ["order"] });
  onTestFinished(() => server.close());
  const start = (body: object) =>
    server.call("POST", "/api/runs", { body, headers: { "idempotency-key": "7" } });
  expect((await start({ agent: "other", input: {} })).status).toBe(404);
  const started = await start({ agent: "order", input: { cents: 900 }, metadata: { shop: "1" } });
  const { runId, waitsFor } = started.json["run"] as {
    readonly runId: string;
    readonly waitsFor: readonly string[];
  };
  expect([started.status, waitsFor]).toEqual([201, ["worker"]]);
  expect((await start({ agent: "order", input: { cents: 900 }, metadata: { shop: "1" } })).status).toBe(200);
  expect((await start({ agent: "order", input: { cents: 1 } })).status).toBe(409);
  expect((await start({ agent: "order", input: { cents: 900 }, sessionId: "s" })).status).toBe(400);
  server.runtime.register(order);
  await server.call("POST", `/api/runs/${runId}/signal`, { body: { name: "paid", value: 900 } });
  const result = await server.call("GET", `/api/runs/${runId}/result?waitMs=10000`);
  expect(result.json["output"]).toEqual({ cents: 900, paid: 900 });
  expect(result.json).not.toHaveProperty("sessionId");
  for (const path of [`/api/runs/${runId}`, "/api/runs", `/api/runs/${runId}/tasks`])
    expect(JSON.stringify((await server.call("GET", path)).json)).not.toContain("sessionId");
});

test("a run that is started over HTTP with delayMs or startAt waits for its time, and wrong times are refused", async () => {
  const server = await startServer([order], { workflows: ["elsewhere"] });
  onTestFinished(() => server.close());
  const start = (body: object, key: string) =>
    server.call("POST", "/api/runs", {
      body: { input: { cents: 900 }, ...body },
      headers: { "idempotency-key": key },
    });
  for (const agent of ["order", "elsewhere"]) {
    const before = Date.now();
    const delayed = await start({ agent, delayMs: 3_600_000 }, agent);
    const run = delayed.json["run"] as { readonly startAt: number; readonly waitsFor: readonly string[] };
    expect([delayed.status, run.waitsFor, run.startAt >= before + 3_600_000]).toEqual([201, ["time"], true]);
    expect((await start({ agent, delayMs: 3_600_000 }, agent)).status).toBe(200);
    const at = await start({ agent, startAt: before + 7_200_000 }, `${agent} at`);
    expect(at.json["run"]).toMatchObject({ startAt: before + 7_200_000, waitsFor: ["time"] });
    for (const wrong of [{ delayMs: -1 }, { delayMs: "1 h" }, { startAt: "soon" }, { startAt: 1.5 }])
      expect((await start({ agent, ...wrong }, `${agent} wrong`)).status).toBe(400);
    const both = await start({ agent, delayMs: 1, startAt: before }, `${agent} both`);
    expect([both.status, JSON.stringify(both.json)]).toEqual([
      400,
      expect.stringContaining("startAt is given as well"),
    ]);
  }
});

test("S6: a caller of the server reads the states of an object of its own tenant, and a caller with a user is refused", async () => {
  const cart = object("cart", {
    add: async (ctx, cents: number) => {
      ctx.setState({ cents });
      return null;
    },
  });
  const server = await startServer([cart]);
  onTestFinished(() => server.close());
  for (const key of ["a", "b/1", "c"])
    await server.runtime.object(cart, key, { tenantId: "acme" }).add(key.length);
  await server.runtime.object(cart, "a").add(9);
  const [acme, globex, ann] = [
    await server.tokenOf("acme", "read"),
    await server.tokenOf("globex", "read"),
    await server.tokenOf("acme", "read", "ann"),
  ];
  const get = (path: string, token?: string) =>
    server.call("GET", `/api/objects/${path}`, token === undefined ? {} : { token });
  expect(await get("cart/b%2F1", acme)).toMatchObject({
    status: 200,
    json: { key: "b/1", state: { cents: 3 } },
  });
  const first = await get("cart?limit=2", acme);
  const rest = await get(`cart?limit=2&after=${encodeURIComponent(first.json["next"] as string)}`, acme);
  expect([first.json["states"], rest.json]).toEqual([
    [
      { key: "a", state: { cents: 1 } },
      { key: "b/1", state: { cents: 3 } },
    ],
    { states: [{ key: "c", state: { cents: 1 } }], next: null },
  ]);
  expect((await get("cart", globex)).json["states"]).toEqual([]);
  expect((await get("cart/a", globex)).status).toBe(404);
  expect((await get("cart?tenantId=acme", globex)).status).toBe(400);
  expect((await get("cart/a", ann)).status).toBe(403);
  expect((await get("cart/a")).json["state"]).toEqual({ cents: 9 });
  expect((await get("cart?tenantId=acme&limit=1")).json["states"]).toEqual([
    { key: "a", state: { cents: 1 } },
  ]);
  // A path cannot contain this key.
  await server.runtime.object(cart, "..", { tenantId: "acme" }).add(7);
  expect((await get("cart?key=..", acme)).json).toEqual({
    states: [{ key: "..", state: { cents: 7 } }],
    next: null,
  });
});

test("a caller of the server sees what agents, workflows and objects accept, and of which key a run is a call", async () => {
  const paid = signal("paid", z.object({ cents: z.number() }));
  const invoice = workflow("invoice", { signals: [paid], updates: [update("stop")] }, async () => null);
  const cart = object("cart", { add: async () => null, clear: async () => null });
  const server = await startServer([invoice, cart]);
  onTestFinished(() => server.close());
  const { agents } = (await server.call("GET", "/api/agents")).json;
  expect(agents).toMatchObject([
    {
      name: "invoice",
      kind: "workflow",
      handlers: [],
      signals: [{ name: "paid", schema: { properties: { cents: { type: "number" } } } }],
      updates: [{ name: "stop", schema: null }],
    },
    { name: "cart", kind: "object", handlers: ["add", "clear"], signals: [], updates: [] },
  ]);
  const call = await server.runtime.object(cart, "a/1").send.add();
  const { json } = await server.call("GET", `/api/runs/${call.runId}`);
  expect(json["flow"]).toEqual({ object: { name: "cart", key: "a/1" } });
});

test("the server refuses a value that does not match a declared signal before it is sent", async () => {
  const mail = signal("mail", z.email());
  const member = workflow(
    "member",
    { signals: [mail] },
    async (ctx) => (await ctx.waitForSignal(mail)) ?? null,
  );
  const server = await startServer([member]);
  onTestFinished(() => server.close());
  const { runId } = await server.runtime.start(member, null);
  const send = (body: object) => server.call("POST", `/api/runs/${runId}/signal`, { body });
  expect(await send({ name: "mail", value: "ada" })).toMatchObject({
    status: 400,
    json: { code: "invalid_argument", detail: expect.stringMatching(/^invalid value of signal mail: /u) },
  });
  expect((await send({ name: "other", value: "ada" })).status).toBe(202);
  expect((await send({ name: "mail", value: "ada@example.com", taskId: "t0" })).status).toBe(202);
  const result = await server.call("GET", `/api/runs/${runId}/result?waitMs=10000`);
  expect(result.json["output"]).toBe("ada@example.com");
});
