import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/entries/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { Fault, rootTaskId, toNanoUsd, type HostedAgent, type RunId } from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { addressKey } from "../../../src/surfaces/http/access/address-key.ts";
import { createServer, storedTokens, type ServedAgent } from "../../../src/surfaces/server/index.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
import { agent, until } from "../../runtime/runtime-setup.ts";
import { startServer, type TestServer, type TestServerOptions } from "./test-server.ts";

const open: TestServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function serve(
  agents: Parameters<typeof startServer>[0],
  options?: TestServerOptions,
): Promise<TestServer> {
  const server = await startServer(agents, options);
  open.push(server);
  return server;
}

describe("agents of the server that a function lists", () => {
  it("agents that a function lists change with the list, and a hidden agent is neither listed nor found", async () => {
    const served = (name: string): ServedAgent => ({
      name,
      start: () => {
        throw new Fault("dependency_missing", `${name} needs a display`);
      },
    });
    let agents = [served("clerk"), { ...served("painter"), hidden: true }];
    const server = await serve([], { agents: () => agents });
    const names = async () =>
      (await server.call("GET", "/api/agents")).json["agents"] as unknown as { readonly name: string }[];
    expect(await names()).toMatchObject([{ name: "clerk", skills: [], subAgents: [] }]);
    expect(await server.call("GET", "/api/agents/painter")).toMatchObject({ status: 404 });
    const body = { agent: "painter", input: "Hi" };
    expect(await server.call("POST", "/api/runs", { body })).toMatchObject({
      status: 501,
      json: { detail: "painter needs a display" },
    });
    agents = [served("novice")];
    expect(await names()).toMatchObject([{ name: "novice" }]);
    expect(await server.call("POST", "/api/runs", { body })).toMatchObject({ status: 404 });
  });
});

describe("the routes of schedules", () => {
  const start = Date.UTC(2026, 10, 16, 8);

  async function clerks() {
    const clock = new FakeClock(start);
    const model = scriptedModel(Array.from({ length: 9 }, (_, at) => `Report ${at + 1}.`));
    const server = await serve([new Agent({ name: "clerk", model })], { runtimeOptions: { clock } });
    const create = (body: object, token?: string) =>
      server.call("POST", "/api/schedules", {
        body: { agent: "clerk", input: "Report.", ...body },
        ...(token !== undefined && { token }),
      });
    return { clock, server, create };
  }

  it("the routes of schedules create a schedule that fires, pause and resume it, and remove it without its runs", async () => {
    const { clock, server, create } = await clerks();
    const created = await create({ name: "hourly", everyMs: 3_600_000 });
    expect(created).toMatchObject({
      status: 201,
      json: { name: "hourly", status: "active", nextAt: start + 3_600_000, lastRunId: null },
    });
    const runs = async () => (await server.runtime.list()).runs;
    await clock.advance(3_600_000);
    await until(async () => (await runs()).length === 1);
    const [first] = await runs();
    expect(await (await server.runtime.find(first?.runId ?? ""))?.result()).toMatchObject({
      output: "Report 1.",
    });
    const fired = await server.call("GET", "/api/schedules/hourly");
    expect(fired.json).toMatchObject({
      lastAt: start + 3_600_000,
      nextAt: start + 7_200_000,
      lastRunId: first?.runId,
    });
    expect((await server.call("POST", "/api/schedules/hourly/pause")).json).toMatchObject({
      status: "paused",
      nextAt: null,
    });
    await clock.advance(7_200_000);
    expect(await runs()).toHaveLength(1);
    expect((await server.call("POST", "/api/schedules/hourly/resume")).json).toMatchObject({
      status: "active",
    });
    await clock.advance(3_600_000);
    await until(async () => (await runs()).length === 2);
    expect((await server.call("DELETE", "/api/schedules/hourly")).status).toBe(204);
    expect((await server.call("GET", "/api/schedules/hourly")).status).toBe(404);
    expect((await server.call("DELETE", "/api/schedules/hourly")).status).toBe(404);
    expect((await server.call("GET", "/api/schedules")).json).toEqual({ schedules: [] });
    expect(await runs()).toHaveLength(2);
  });

  it("the routes of schedules return the same schedule for a repeated request, and refuse other options and bad times", async () => {
    const { server, create } = await clerks();
    const daily = { name: "daily", cron: "0 9 * * *", timeZone: "Europe/Berlin" };
    const { json: first } = await create(daily);
    expect((await create(daily)).json["id"]).toBe(first["id"]);
    expect(await create({ ...daily, cron: "0 10 * * *" })).toMatchObject({
      status: 409,
      json: { code: "already_exists" },
    });
    expect((await create({ ...daily, cron: "0 10 * * *", replace: true })).status).toBe(201);
    const refused = [
      { name: "x" },
      { name: "x", cron: "0 9 * * *", everyMs: 5_000 },
      { name: "x", cron: "61 * * * *" },
      { name: "x", cron: "0 9 * * *", timeZone: "Mars/Base" },
      { name: "x", at: "yesterday" },
      { name: "", everyMs: 5_000 },
    ];
    for (const body of refused) expect((await create(body)).status).toBe(400);
    expect((await create({ name: "x", everyMs: 5_000, agent: "nobody" })).status).toBe(404);
    expect((await server.call("GET", "/api/schedules")).json["schedules"]).toHaveLength(1);
  });

  it("the routes of schedules hide schedules of other tenants and users, and refuse changes with a token that only reads", async () => {
    const { server, create } = await clerks();
    const ann = await server.tokenOf("acme", "run", "ann");
    const others = [await server.tokenOf("acme", "run", "bob"), await server.tokenOf("other", "run", "ann")];
    expect((await create({ name: "mine", everyMs: 60_000 }, ann)).json).toMatchObject({
      tenantId: "acme",
      userId: "ann",
    });
    for (const token of others) {
      expect((await server.call("GET", "/api/schedules", { token })).json).toEqual({ schedules: [] });
      expect((await server.call("GET", "/api/schedules/mine", { token })).status).toBe(404);
      expect((await server.call("POST", "/api/schedules/mine/pause", { token })).status).toBe(404);
      expect((await server.call("DELETE", "/api/schedules/mine", { token })).status).toBe(404);
    }
    const reader = await server.tokenOf("acme", "read", "ann");
    expect((await server.call("GET", "/api/schedules/mine", { token: reader })).status).toBe(200);
    expect((await server.call("DELETE", "/api/schedules/mine", { token: reader })).status).toBe(403);
    expect((await create({ name: "theirs", everyMs: 60_000 }, reader)).status).toBe(403);
    const query = "?tenantId=acme&userId=ann";
    expect((await server.call("GET", `/api/schedules/mine${query}`)).json).toMatchObject({
      status: "active",
    });
  });
});

describe("the routes of dead letters", () => {
  it("the routes of dead letters list a message whose delivery failed too often, and deliver the message again once", async () => {
    let isBroken = true;
    const got: unknown[] = [];
    const worker = agent("worker", async (_ctx, inbox) => {
      if (isBroken) throw new Error("broken");
      got.push(inbox.messages[0]?.body);
    });
    const store = memoryStore({ hash: sha256, inbox: { maxDeliveries: 1 } });
    const server = await serve([worker], { store, runtimeOptions: { runRetry: { maxRetries: 0 } } });
    await server.store.inbox.deliver({ id: "m1", from: null, to: worker.id, body: "hello", sentAt: 0 });
    const letters = async () => {
      const { json } = await server.call("GET", "/api/dead-letters?agentId=worker");
      return json["deadLetters"] as readonly { message: { id: string; body: unknown } }[];
    };
    await until(async () => (await letters()).length === 1);
    expect(await letters()).toMatchObject([{ message: { id: "m1", body: "hello" }, deliveries: 1 }]);
    expect((await server.call("GET", "/api/dead-letters?agentId=other")).json).toEqual({ deadLetters: [] });
    isBroken = false;
    const again = (body: object, token?: string) =>
      server.call("POST", "/api/dead-letters/redeliver", { body, ...(token !== undefined && { token }) });
    const reader = await server.tokenOf("acme", "run");
    expect((await again({ agentId: "worker" }, reader)).status).toBe(403);
    expect((await again({ agentId: "worker", messageIds: ["unknown"] })).json).toEqual({ redelivered: 0 });
    expect((await again({ agentId: "worker", messageIds: ["m1"] })).json).toEqual({ redelivered: 1 });
    await until(() => got.length === 1);
    expect(got).toEqual(["hello"]);
    expect(await letters()).toEqual([]);
    expect((await again({ agentId: "worker" })).json).toEqual({ redelivered: 0 });
  });
});

describe("top-ups by tokens of the server", () => {
  const poor = (topUp?: object) =>
    new Agent({
      name: "poor",
      model: scriptedModel(["Done."]),
      budget: { maxCostUsd: 1 },
      ...(topUp !== undefined && { topUp }),
    });
  const waiter = (topUp?: HostedAgent["topUp"]): HostedAgent => ({
    ...agent("waiter", async (ctx) => (await ctx.waitForSignal("go")) ?? null),
    budget: { maxCostUsd: 1, maxTurns: 5, maxTokens: 100 },
    ...(topUp !== undefined && { topUp }),
  });
  const begin = async (server: TestServer, token: string): Promise<string> => {
    const { json } = await server.call("POST", "/api/runs", {
      token,
      body: { agent: "waiter", input: null },
    });
    return (json["run"] as { readonly runId: string }).runId;
  };

  it("B8: a token with scope run adds at most what the agent allows, and an admin token adds any amount", async () => {
    const server = await serve([waiter({ maxCostUsd: 0.5 })]);
    const [run, admin, read] = [
      await server.tokenOf("acme", "run"),
      await server.tokenOf("acme", "admin"),
      await server.tokenOf("acme", "read"),
    ];
    const runId = await begin(server, run);
    const path = `/api/runs/${runId}/top-up`;
    const add = (token: string, body: object) => server.call("POST", path, { token, body });
    const left = async (token: string) => (await server.call("GET", path, { token })).json["maxCostUsd"];
    expect([await left(run), await left(admin), await left(read)]).toEqual([0.5, null, 0]);
    expect((await add(run, { maxCostUsd: 0.3 })).status).toBe(202);
    expect(await left(run)).toBe(0.2);
    const refused = await add(run, { maxCostUsd: 0.3 });
    expect(refused.json).toMatchObject({ status: 403, code: "permission_denied" });
    expect(refused.json["detail"]).toContain(
      "without the scope admin, callers may add 0.5 USD in all, of which 0.2 USD is left; ask a caller with the scope admin",
    );
    for (const body of [{ maxTurns: 1 }, { maxTokens: 1 }, { maxCostUsd: 0.2, maxTurns: 1 }])
      expect((await add(run, body)).status).toBe(403);
    expect((await add(admin, { maxCostUsd: 100, maxTurns: 9 })).status).toBe(202);
    expect((await add(run, { maxCostUsd: 0.2 })).status).toBe(202);
    expect((await add(run, { maxCostUsd: 0.000_001 })).status).toBe(403);
    const raised = async () => (await server.store.mailbox.read(runId as RunId)).length === 0;
    await until(raised);
    const { ledger } = (await (await server.runtime.find(runId))?.snapshot()) ?? {};
    expect(ledger?.accounts[rootTaskId]?.caps.nanoUsd).toBe(toNanoUsd(101.5));
  });

  it("B5, B8: a question for a top-up can be answered by a token with scope run within its limit and by an admin token", async () => {
    const server = await serve(
      [
        {
          ...agent("asker", (ctx) =>
            ctx.attempt("program", (attempt) =>
              attempt.metered(
                { provider: "acme", model: "m", inputTokens: 1, maxOutputTokens: 1 },
                async () => ({
                  value: "paid",
                  usage: { inputTokens: 1, outputTokens: 1 },
                }),
              ),
            ),
          ),
          budget: { maxCostUsd: 0 },
          onBudget: "ask",
          topUp: { maxCostUsd: 1 },
        },
      ],
      { runtimeOptions: { prices: { find: () => ({ inputUsd: 1, outputUsd: 1 }) } } },
    );
    const [run, read, other] = [
      await server.tokenOf("acme", "run"),
      await server.tokenOf("acme", "read"),
      await server.tokenOf("other", "admin"),
    ];
    const begun = await server.call("POST", "/api/runs", {
      token: run,
      body: { agent: "asker", input: null },
    });
    const { runId } = begun.json["run"] as { readonly runId: string };
    const asked = async (): Promise<string | undefined> => {
      const { json } = await server.call("GET", `/api/runs/${runId}/approvals`, { token: run });
      return (json["approvals"] as readonly { approvalId: string }[])[0]?.approvalId;
    };
    await until(async () => (await asked()) !== undefined);
    const approvalId = await asked();
    const decide = async (token: string): Promise<number> => {
      const body = { approvalId, decision: "approved", input: { maxCostUsd: 2 } };
      return (await server.call("POST", `/api/runs/${runId}/decide`, { token, body })).status;
    };
    // The answer of the run token adds more than the agent allows.
    expect([await decide(read), await decide(other), await decide(run)]).toEqual([403, 404, 403]);
    expect(await asked()).toBe(approvalId);
    expect(await decide(await server.tokenOf("acme", "admin"))).toBe(202);
    expect(await (await server.runtime.find(runId))?.result()).toMatchObject({
      status: "completed",
      output: "paid",
    });
  });

  it("B8: the server says how much each caller may add to a run, in dollars, tokens and turns", async () => {
    const server = await serve([waiter({ maxCostUsd: 0.5, maxTurns: 3 })]);
    const run = await server.tokenOf("acme", "run");
    const path = `/api/runs/${await begin(server, run)}/top-up`;
    const left = async (token: string) => (await server.call("GET", path, { token })).json;
    expect((await server.call("POST", path, { token: run, body: { maxTurns: 1 } })).status).toBe(202);
    const lacks = null;
    expect(await left(run)).toEqual({ maxCostUsd: 0.5, maxTokens: 0, maxTurns: 2, deadlineMs: 0, lacks });
    const none = { maxCostUsd: 0, maxTokens: 0, maxTurns: 0, deadlineMs: 0, lacks };
    expect(await left(await server.tokenOf("acme", "read"))).toEqual(none);
    const any = { maxCostUsd: null, maxTokens: null, maxTurns: null, deadlineMs: null, lacks };
    expect(await left(await server.tokenOf("acme", "admin"))).toEqual(any);
  });

  it.each([
    ["maxTurns", { maxTurns: 1 }, { limit: 1, amount: 1 }],
    ["maxTokens", { maxTokens: 5 }, { limit: 5, amount: 1_000 }],
    ["deadlineMs", { deadlineMs: 1 }, { limit: 1, amount: 1_000 }],
  ] as const)(
    "B8: the server offers callers who may top up a run that stopped at %s what the run lacks, and the run continues",
    async (name, budget, { limit, amount }) => {
      let hasStopped = false;
      const look = tool({
        name: "look",
        description: "",
        inputSchema: { type: "object" },
        execute: async (_input, { signal }) => {
          // Until the run has stopped, the tool works until the deadline of one millisecond stops it.
          if (name === "deadlineMs" && !hasStopped && !signal.aborted) await once(signal, "abort");
          return "seen";
        },
      });
      const model = scriptedModel([
        { text: "Let me see.", toolCalls: [{ name: "look", input: {} }] },
        "Done.",
        "Done.",
      ]);
      const most = name === "deadlineMs" ? 600_000 : 1_000;
      const topUp = { [name]: most };
      const server = await serve([new Agent({ name: "limited", model, tools: [look], budget, topUp })]);
      const token = await server.tokenOf("acme", "run");
      const body = { agent: "limited", input: "Go" };
      const { json } = await server.call("POST", "/api/runs", { token, body });
      const { runId } = json["run"] as { readonly runId: string };
      const run = await server.runtime.find(runId);
      await run?.result();
      hasStopped = true;
      const path = `/api/runs/${runId}/top-up`;
      const lacks = async (scope: "read" | "run" | "admin") => {
        const own = await server.tokenOf("acme", scope);
        return (await server.call("GET", path, { token: own })).json["lacks"];
      };
      expect(await lacks("read")).toEqual({ taskId: "t0", name, limit, amount: 0 });
      expect(await lacks("run")).toEqual({ taskId: "t0", name, limit, amount });
      expect(await lacks("admin")).toEqual({ taskId: "t0", name, limit, amount });
      const add = () => server.call("POST", path, { token, body: { ...topUp, taskId: "t0" } });
      expect((await add()).status).toBe(202);
      await until(async () => (await run?.summary())?.status === "completed");
      expect([(await add()).status, await lacks("run")]).toEqual([403, null]);
    },
  );

  it("B8: a token with scope run adds nothing if the agent lacks the option when the run starts", async () => {
    const store = memoryStore({ hash: sha256 });
    const server = await serve([waiter()], { store });
    const token = await server.tokenOf("acme", "run");
    const runId = await begin(server, token);
    const add = (on: TestServer) =>
      on.call("POST", `/api/runs/${runId}/top-up`, { token, body: { maxCostUsd: 0.01 } });
    expect((await add(server)).json["detail"]).toContain("callers may add nothing in all");
    const later = await serve([waiter({ maxCostUsd: 9 })], {
      store,
      runtimeOptions: { sameName: "replace" },
    });
    expect((await add(later)).status).toBe(403);
    expect(() => poor({ maxCostUsd: -1 })).toThrow("invalid maxCostUsd -1 of topUp of");
    expect(() => poor({ maxUsd: 1 })).toThrow('unknown option "maxUsd"');
  });

  it("B8: several servers that top up a run at the same time do not exceed the limit together, also after a restart", async () => {
    const store = memoryStore({ hash: sha256 });
    const [one, other] = [await serve([waiter({ maxCostUsd: 1 })], { store }), await serve([], { store })];
    const token = await one.tokenOf("acme", "run");
    const runId = await begin(one, token);
    // Handles, because requests would arrive one after another: all of them read the sum before one writes it.
    const handles = await Promise.all([one, other].map(({ runtime }) => runtime.find(runId)));
    const sent = await Promise.allSettled(
      Array.from({ length: 8 }, async (_each, at) =>
        handles[at % 2]?.topUp({ maxCostUsd: 0.25 }, undefined, { limited: true }),
      ),
    );
    expect(sent.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
    const later = await serve([], { store });
    const { status } = await later.call("POST", `/api/runs/${runId}/top-up`, {
      token,
      body: { maxCostUsd: 0.01 },
    });
    expect(status).toBe(403);
  });
});

describe("server requests without a valid token", () => {
  it("requests without a valid token are limited for each address, and do not affect valid tokens of the same address", async () => {
    const store = memoryStore({ hash: sha256 });
    await using runtime = await openRuntime({ store });
    const tokens = storedTokens(store.records);
    const limits = { requestsPerSecond: 0.001, requestBurst: 3 };
    const server = createServer(runtime, { tokens, limits });
    const { token } = await tokens.create({ name: "t", scope: "admin" });
    const get = async (remoteAddress: string, sent: string): Promise<number> => {
      const request = new Request("http://localhost/api/access", {
        headers: { authorization: `Bearer ${sent}` },
      });
      return (await server.fetch(request, { incoming: { socket: { remoteAddress } } })).status;
    };
    const statuses = async (address: string): Promise<readonly number[]> => {
      const found: number[] = [];
      for (let count = 0; count < 4; count++) found.push(await get(address, `guess${count}`));
      return found;
    };
    expect(await statuses("192.0.2.7")).toEqual([401, 401, 401, 429]);
    expect(await statuses("192.0.2.8")).toEqual([401, 401, 401, 429]);
    expect(await get("192.0.2.7", token)).toBe(200);
    expect(await statuses("2001:db8::1")).toEqual([401, 401, 401, 429]);
    expect(await get("2001:db8::2", "guess")).toBe(429);
    expect(await get("2001:db8:0:1::2", "guess")).toBe(401);
  });

  it("requests without a valid token are counted per IPv4 address and per IPv6 network", () => {
    const keyOf = (remoteAddress?: string): string => addressKey({ incoming: { socket: { remoteAddress } } });
    expect(keyOf("::ffff:10.0.0.1")).toBe("10.0.0.1");
    expect(keyOf("::1")).toBe("0:0:0:0");
    expect(keyOf("fe80::1%eth0")).toBe("fe80:0:0:0");
    expect(keyOf("2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1:2");
    expect([keyOf(), addressKey({})]).toEqual(["", ""]);
  });
});
