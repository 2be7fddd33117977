import { afterEach, describe, expect, it } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import type { HostedAgent } from "../../../src/kernel/index.ts";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { idleEngine } from "../../../src/surfaces/cli/setup/idle-engine.ts";
import {
  createServer,
  listen,
  storedTokens,
  type ServedAgent,
  type ServerOptions,
} from "../../../src/surfaces/server/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, until } from "../../runtime/runtime-setup.ts";
import { openSse } from "./sse-client.ts";
import { startServer, type TestServer, type TestServerOptions } from "./test-server.ts";

const open: TestServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function serve(agents: readonly HostedAgent[], options?: TestServerOptions): Promise<TestServer> {
  const server = await startServer(agents, options);
  open.push(server);
  return server;
}

const waiter = agent("waiter", async (ctx) => (await ctx.waitForSignal("go")) ?? null);

describe("a server", () => {
  it("a server answers requests when a framework calls its fetch handler without the server", async () => {
    const { server, admin } = await serve([waiter]);
    const { fetch: handler } = server;
    const headers = { authorization: `Bearer ${admin}` };
    const response = await handler(new Request("http://127.0.0.1/api/runs", { headers }));
    expect(response.status).toBe(200);
  });

  it("a server that drains ends its streams and waits, answers requests in progress, and refuses new runs with 503", async () => {
    const server = await serve([waiter]);
    const run = await server.runtime.submit(waiter, null);
    const stream = await openSse(`${server.url}/api/runs/${run.runId}/stream`, { token: server.admin });
    await stream.next();
    const waiting = server.call("GET", `/api/runs/${run.runId}/result?waitMs=60000`);
    await until(async () => (await run.summary()).status === "waiting");
    await server.server.drain();
    for (let message = await stream.next(); message !== undefined; message = await stream.next())
      expect(message.event).toBe("message");
    expect((await waiting).status).toBe(202);
    const refused = await server.call("POST", "/api/runs", { body: { agent: "waiter", input: null } });
    expect(refused.json).toMatchObject({ status: 503, code: "closed" });
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(
      (await server.call("POST", `/api/runs/${run.runId}/signal`, { body: { name: "go" } })).status,
    ).toBe(202);
    expect((await run.result()).status).toBe("completed");
  });

  it("a server shows runs of agents that no process hosts as pending, waiting for a worker", async () => {
    const store = memoryStore({ hash: sha256 });
    const elsewhere = await openRuntime({ store, engine: idleEngine });
    const run = await elsewhere.submit(waiter, null);
    const server = await serve([], { store });
    expect((await server.call("GET", `/api/runs/${run.runId}`)).json).toMatchObject({
      status: "pending",
      waitsFor: ["worker"],
    });
    const refused = await server.call("POST", "/api/runs", { body: { agent: "waiter", input: null } });
    expect(refused.json).toMatchObject({ status: 404, code: "not_found" });
  });

  it("a server starts an agent by the id of an instance that it made and that sessions show, and no agent of a fixed id", async () => {
    const fixed = new Agent({ name: "fixed", model: scriptedModel(["Done."]) });
    const maker: ServedAgent = {
      name: "maker",
      start: ({ sessionId = "none" }) => ({
        agent: new Agent({ name: "maker", key: sessionId, model: scriptedModel(["Done."]) }),
      }),
    };
    const runtimeOptions = { sameName: "replace" } as const;
    const server = await serve([], { agents: [fixed, maker], runtimeOptions });
    const started = (name: string) =>
      server.call("POST", "/api/runs", { body: { agent: name, input: "Hi", sessionId: "talk" } });
    const { run } = (await started("maker")).json as { readonly run: Record<"agentId" | "runId", string> };
    expect(run.agentId).toBe("maker/talk");
    await server.call("GET", `/api/runs/${run.runId}/result?waitMs=60000`);
    expect((await started(run.agentId)).json).toMatchObject({ run: { agentId: "maker/talk" } });
    expect((await started("fixed/talk")).json).toMatchObject({ status: 404, code: "not_found" });
  });

  it("a server sends the input of a failed run again, and names the run that took an input as steering", async () => {
    const failing = new Error("down");
    const clerk = new Agent({
      name: "clerk",
      model: scriptedModel([{ error: failing }, "Done."]),
      retry: { enabled: false },
    });
    const server = await serve([clerk, waiter], { runtimeOptions: { retry: { enabled: false } } });
    const { json } = await server.call("POST", "/api/runs", {
      body: { agent: "clerk", input: "Hi", sessionId: "talk" },
    });
    const failed = json["run"] as { readonly runId: string };
    const result = await server.call("GET", `/api/runs/${failed.runId}/result?waitMs=60000`);
    expect(result.json).toMatchObject({ status: "failed" });
    const unsent = await server.call("GET", "/api/sessions/talk/unsent");
    expect(unsent.json["inputs"]).toMatchObject([{ input: "Hi", run: { runId: failed.runId } }]);
    const again = await server.call("POST", `/api/runs/${failed.runId}/resend`);
    const sent = again.json["run"] as { readonly runId: string };
    expect([again.status, sent.runId === failed.runId]).toEqual([201, false]);
    const done = await server.call("GET", `/api/runs/${sent.runId}/result?waitMs=60000`);
    expect(done.json).toMatchObject({ status: "completed", output: "Done." });

    const body = { agent: "waiter", input: "one", sessionId: "desk" };
    const first = await server.call("POST", "/api/runs", { body });
    const { runId } = first.json["run"] as { readonly runId: string };
    await until(async () => (await (await server.runtime.find(runId))?.summary())?.status === "waiting");
    const steered = await server.call("POST", "/api/runs", { body: { ...body, input: "two" } });
    expect(steered.json).toMatchObject({ isSteered: true, run: { runId } });
    expect(steered.status).toBe(200);
  });

  it("a server gives an idempotency key to one run, and refuses another input with this key", async () => {
    const server = await serve([waiter]);
    const { json } = await server.call("POST", "/api/runs", { body: { agent: "waiter", input: "one" } });
    const { runId } = json["run"] as { readonly runId: string };
    const send = (kind: string, input: string, key: string, token = server.admin) =>
      server.call("POST", `/api/runs/${runId}/${kind}`, {
        token,
        body: { input },
        headers: { "idempotency-key": key },
      });
    const first = await send("steer", "faster", "k1");
    const again = await send("steer", "faster", "k1");
    expect([again.status, again.json["inputId"]]).toEqual([202, first.json["inputId"]]);
    for (const refused of [await send("steer", "slower", "k1"), await send("follow-up", "faster", "k1")])
      expect(refused.json).toMatchObject({ status: 409, code: "already_exists" });
    expect(await send("steer", "faster", "k".repeat(256))).toMatchObject({ status: 400 });
    expect(await send("follow-up", "faster", "k2")).toMatchObject({ status: 202 });
    const { inputs } = (await server.call("GET", `/api/runs/${runId}/queued-input`)).json;
    expect(inputs).toMatchObject([{ kind: "steer" }, { kind: "follow_up" }]);
  });

  it("a server forks a run with another message and model, and refuses invalid changes before anything is stored", async () => {
    const model = scriptedModel(["One.", "Two."]);
    const clerk = new Agent({ name: "clerk", model });
    const server = await serve([clerk]);
    const run = await server.runtime.submit(clerk, "Hello");
    await run.result();
    const path = `/api/runs/${run.runId}/fork`;
    const name = `${model.provider}/${model.modelId}`;
    const forked = await server.call("POST", path, { body: { at: 0, input: "And you?", model: name } });
    expect(forked.status).toBe(201);
    const { runId } = forked.json["run"] as { readonly runId: string };
    expect(await (await server.runtime.find(runId))?.result()).toMatchObject({ output: "Two." });
    expect(model.calls[1]?.messages).toHaveLength(2);
    const refusals = [
      [{ at: 0, input: 3 }, "invalid_argument"],
      [{ at: 0, input: [{ type: "tool_call" }] }, "invalid_argument"],
      [{ at: 0, model: "nowhere/x" }, "model_not_found"],
      [{ at: 0, model: "clerk" }, "invalid_argument"],
      [{ at: 9_999, input: "x" }, "invalid_argument"],
      [{ input: "x" }, "invalid_argument"],
    ] as const;
    for (const [body, code] of refusals)
      expect((await server.call("POST", path, { body })).json).toMatchObject({ status: 400, code });
    expect((await server.runtime.list()).runs).toHaveLength(2);
  });

  it("a server records the channel of a run that POST /api/runs names, and web by default", async () => {
    const server = await serve([new Agent({ name: "clerk", model: scriptedModel(["One.", "Two."]) })]);
    const channelOf = async (body: object) => {
      const { json } = await server.call("POST", "/api/runs", {
        body: { agent: "clerk", input: "Hi", ...body },
      });
      const { runId } = json["run"] as { readonly runId: string };
      await server.call("GET", `/api/runs/${runId}/result?waitMs=60000`);
      const page = await server.call("GET", `/api/runs/${runId}/events?types=input`);
      return (page.json["events"] as readonly { data: { channel?: string } }[])[0]?.data.channel;
    };
    expect(await channelOf({})).toBe("web");
    expect(await channelOf({ channel: "slack:C1" })).toBe("slack:C1");
  });

  it("a server refuses HEAD of a stream and other methods with 405, and names the allowed ones", async () => {
    const server = await serve([waiter]);
    const run = await server.runtime.submit(waiter, null);
    const head = await server.call("HEAD", `/api/runs/${run.runId}/stream`);
    expect([head.status, head.headers.get("allow")]).toEqual([405, "GET"]);
    const put = await server.call("PUT", "/api/runs");
    expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, POST"]);
  });

  it("a server works as a fetch handler without a listener", async () => {
    const store = memoryStore({ hash: sha256 });
    await using runtime = await openRuntime({ store });
    expect(() => storedTokens(store as never)).toThrow("use storedTokens(store.records)");
    const tokens = storedTokens(store.records);
    const server = createServer(runtime, { agents: [waiter], tokens });
    const { token } = await tokens.create({ name: "t", scope: "admin" });
    const headers = { authorization: `Bearer ${token}` };
    const response = await server.fetch(new Request("http://localhost/api/agents", { headers }));
    expect(await response.json()).toMatchObject({ agents: [{ name: "waiter" }] });
    const other = await server.fetch(new Request("http://other.example/api/agents", { headers }));
    expect(other.status).toBe(403);
  });

  it("a server is created only with tokens, or with tokens: null as the explicit choice", async () => {
    await using runtime = await openRuntime();
    const forgotten = { agents: [waiter] } as unknown as ServerOptions;
    expect(() => createServer(runtime, forgotten)).toThrow(
      "invalid tokens undefined of createServer(): expected tokens or null; use storedTokens(store.records), or null",
    );
    const wrong = { tokens: "secret" } as unknown as ServerOptions;
    expect(() => createServer(runtime, wrong)).toThrow(/invalid tokens of createServer\(\): .*storedTokens/u);
  });

  it("a request to a server that names an agent with more than 256 characters is refused by its schema", async () => {
    await using runtime = await openRuntime();
    const server = createServer(runtime, { agents: [waiter], tokens: null });
    const sender = { incoming: { socket: { remoteAddress: "127.0.0.1" } } };
    const statusOf = async (path: string, name: string, more: object) => {
      const body = JSON.stringify({ agent: name, ...more });
      const headers = { "content-type": "application/json" };
      const request = new Request(`http://localhost${path}`, { method: "POST", headers, body });
      return (await server.fetch(request, sender)).status;
    };
    for (const [path, more] of [
      ["/api/runs", { input: "" }],
      ["/api/schedules", { input: "", name: "rounds", everyMs: 1_000 }],
    ] as const) {
      expect(await statusOf(path, "x".repeat(256), more)).toBe(404);
      expect(await statusOf(path, "x".repeat(257), more)).toBe(400);
    }
  });

  it("a server without tokens listens on loopback only, and refuses requests of other machines", async () => {
    await using runtime = await openRuntime();
    const server = createServer(runtime, { agents: [waiter], tokens: null });
    for (const host of ["0.0.0.0", "::", "192.0.2.7"])
      await expect(listen(server, { port: 0, host })).rejects.toThrow(
        `invalid host "${host}" of listen(): a server with tokens: null`,
      );
    const statusFrom = async (remoteAddress: string | undefined, path: string) =>
      (
        await server.fetch(new Request(`http://localhost${path}`), {
          incoming: { socket: { remoteAddress } },
        })
      ).status;
    for (const own of ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
      expect(await statusFrom(own, "/api/agents")).toBe(200);
    for (const path of ["/api/agents", "/openapi.json", "/unknown"])
      for (const other of ["192.0.2.7", "::ffff:10.0.0.1", "fe80::1%eth0", undefined])
        expect([path, other, await statusFrom(other, path)]).toEqual([path, other, 403]);
    expect((await server.fetch(new Request("http://localhost/api/agents"))).status).toBe(403);
    expect(() => Object.assign(server, { needsToken: true })).toThrow(TypeError);
  });
});
