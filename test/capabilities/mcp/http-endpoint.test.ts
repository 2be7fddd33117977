import { McpServer } from "@modelcontextprotocol/server";
import { expect, it, onTestFinished } from "vitest";
import { callerNetwork } from "../../../src/capabilities/mcp/http-endpoint.ts";
import { HttpEndpoint, type HttpOptions } from "../../../src/capabilities/mcp/http-endpoint.ts";
import { FakeClock } from "../../../src/testing/index.ts";

const user = (request: Request) => request.headers.get("authorization") ?? "";

function endpoint(options: HttpOptions = {}) {
  const clock = new FakeClock();
  const state = { closed: 0 };
  const slow = Promise.withResolvers<void>();
  const newServer = (): McpServer => {
    const server = new McpServer({ name: "desk", version: "1" });
    server.registerTool("slow", { description: "Waits" }, async () => {
      await slow.promise;
      return { content: [{ type: "text", text: "done" }] };
    });
    Object.assign(server.server, { onclose: () => state.closed++ });
    return server;
  };
  const served = new HttpEndpoint(newServer, {
    http: options,
    clock,
    onWarning: (warning) => {
      throw warning;
    },
    userOf: ({ clientId }) => clientId,
  });
  onTestFinished(() => served.close());
  const post = (body: unknown, from: string, headers: Readonly<Record<string, string>> = {}) =>
    served.answer(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: {
          host: "localhost",
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...headers,
        },
        body: JSON.stringify(body),
      }),
      { remoteAddress: from },
    );
  const begin = async (from: string, headers: Readonly<Record<string, string>> = {}) => {
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "host", version: "1" },
    };
    const response = await post({ jsonrpc: "2.0", id: 0, method: "initialize", params }, from, headers);
    await response.text();
    return { status: response.status, id: response.headers.get("mcp-session-id") ?? "" };
  };
  const ask = async (id: string, from: string, method = "ping") => {
    const response = await post({ jsonrpc: "2.0", id: 1, method }, from, { "mcp-session-id": id });
    await response.text();
    return response.status;
  };
  const call = (id: string, from: string) =>
    post({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "slow", arguments: {} } }, from, {
      "mcp-session-id": id,
    });
  return { clock, state, slow, served, begin, ask, call };
}

const [attacker, client] = ["203.0.113.9", "198.51.100.7"];

it("an HTTP endpoint serves a client while another address opens 1,000 sessions", async () => {
  const { begin, ask, state } = endpoint();
  const before = await begin(client);
  for (let at = 0; at < 1_000; at++) expect((await begin(attacker)).status).toBe(200);
  expect(state.closed).toBe(900);
  expect(await ask(before.id, client)).toBe(200);
  expect((await begin(client)).status).toBe(200);
});

it("MCP sessions that are started at the same time count toward the limit before they have an id", async () => {
  const { begin, state } = endpoint({ maxSessionsPerCaller: 10 });
  const started = await Promise.all(Array.from({ length: 100 }, () => begin(attacker)));
  const accepted = started.filter(({ status }) => status === 200).length;
  expect(started.length - accepted).toBe(started.filter(({ status }) => status === 429).length);
  expect(accepted - state.closed).toBeLessThanOrEqual(10);
});

it("a full MCP endpoint closes the longest idle session of the caller that has the most sessions", async () => {
  const { begin, ask } = endpoint({ maxSessions: 4, maxSessionsPerCaller: 3 });
  const own = await begin(client);
  const others = [await begin(attacker), await begin(attacker), await begin(attacker)];
  expect((await begin("192.0.2.1")).status).toBe(200);
  expect(await ask(own.id, client)).toBe(200);
  expect(await ask(others[0]?.id ?? "", attacker)).toBe(404);
  expect(await ask(others[1]?.id ?? "", attacker)).toBe(200);
});

it("an MCP session with a call in progress is not closed; a caller without idle sessions gets 429 and others are served", async () => {
  const { begin, call, slow, ask } = endpoint({ maxSessionsPerCaller: 2 });
  const sessions = [await begin(attacker), await begin(attacker)];
  const calls = await Promise.all(sessions.map(({ id }) => call(id, attacker)));
  expect((await begin(attacker)).status).toBe(429);
  expect((await begin(client)).status).toBe(200);
  slow.resolve();
  for (const response of calls) expect(await response.text()).toContain("done");
  expect((await begin(attacker)).status).toBe(200);
  expect(await ask(sessions[0]?.id ?? "", attacker)).toBe(404);
});

it("an MCP endpoint whose sessions are all in use answers 503 with Retry-After", async () => {
  const { begin, call, slow, served } = endpoint({ maxSessions: 1 });
  const { id } = await begin(client);
  const busy = await call(id, client);
  const request = new Request("http://localhost/mcp", {
    method: "POST",
    headers: { host: "localhost", "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params: {} }),
  });
  const refused = await served.answer(request, { remoteAddress: attacker });
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "60"]);
  slow.resolve();
  await busy.text();
});

it("an idle MCP session is closed after sessionIdleMs without another request, and a used session is kept", async () => {
  const { begin, ask, clock, state } = endpoint({ sessionIdleMs: 1_000 });
  const [idle, used] = [await begin(client), await begin(client)];
  await clock.advance(900);
  expect(await ask(used.id, client)).toBe(200);
  await clock.advance(200);
  expect(state.closed).toBe(1);
  expect(await ask(idle.id, client)).toBe(404);
  expect(await ask(used.id, client)).toBe(200);
  await clock.advance(5_000);
  expect(state.closed).toBe(2);
  expect(clock.pending).toBe(0);
});

it("the session limit per caller of the MCP endpoint counts authenticated users separately, even behind one address", async () => {
  const { begin, ask } = endpoint({
    maxSessionsPerCaller: 1,
    authenticate: async (request) => ({ token: "t", clientId: user(request), scopes: [] }),
  });
  const [ada, eve] = [
    await begin(client, { authorization: "ada" }),
    await begin(client, { authorization: "eve" }),
  ];
  expect([ada.status, eve.status]).toEqual([200, 200]);
  expect(await ask(ada.id, client)).toBe(404);
  expect((await begin(client, { authorization: "eve" })).status).toBe(200);
});

it("remoteAddress() names the caller behind a proxy", async () => {
  const { begin, ask } = endpoint({
    maxSessionsPerCaller: 1,
    remoteAddress: (request) => request.headers.get("x-forwarded-for") ?? undefined,
  });
  const first = await begin("10.0.0.1", { "x-forwarded-for": client });
  await begin("10.0.0.1", { "x-forwarded-for": attacker });
  expect(await ask(first.id, "10.0.0.1")).toBe(200);
});

it("an MCP request that starts no session leaves no session behind", async () => {
  const { ask, state, begin } = endpoint({ maxSessions: 1 });
  for (let at = 0; at < 3; at++) expect(await ask("", client)).toBe(404);
  expect((await begin(client)).status).toBe(200);
  expect(state.closed).toBe(0);
});

it.for(["PUT", "PATCH", "OPTIONS", "HEAD", "PROPFIND"])(
  "the MCP endpoint answers %s with 405",
  async (method) => {
    const { served } = endpoint();
    const response = await served.answer(
      new Request("http://localhost/mcp", { method, headers: { host: "localhost" } }),
    );
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, POST, DELETE"]);
  },
);

it.for<[HttpOptions, string]>([
  [{ maxSessions: 0 }, "invalid maxSessions 0 of http of mcpServer(): expected a finite number from 1"],
  [
    { maxSessionsPerCaller: Number.NaN },
    "invalid maxSessionsPerCaller NaN of http of mcpServer(): expected a finite number from 1",
  ],
  [{ sessionIdleMs: -5 }, "invalid sessionIdleMs -5 of http of mcpServer(): expected a finite number from 1"],
])("the MCP endpoint refuses the limit %o", ([options, message]) => {
  expect(() => endpoint(options)).toThrow(message);
});

it.for<[string | undefined, string | undefined]>([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::6", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["not an address", undefined],
  [undefined, undefined],
])("callerNetwork() of %s is %s", ([address, network]) => {
  expect(callerNetwork(address)).toBe(network);
});
