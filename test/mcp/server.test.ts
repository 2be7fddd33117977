import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { McpServer } from "@modelcontextprotocol/server";
import { afterEach, expect, it } from "vitest";
import { askHumanTool } from "../../src/capabilities/tools/index.ts";
import { Agent, openRuntime, tool } from "../../src/entries/index.ts";
import { formatAgentId, type HostedAgent } from "../../src/kernel/index.ts";
import { mcpServer, mcpServers, type McpServerOptions, type ServerConfigs } from "../../src/assembly/mcp.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { caller, callOnce, named } from "./live-servers.ts";

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

const own = { command: process.execPath, args: [fileURLToPath(new URL("own-server.ts", import.meta.url))] };
const nothing = { type: "object", properties: {} } as const;

async function serve(options: McpServerOptions): Promise<string> {
  const server = await mcpServer(options);
  const http = createServer(server.handle).listen(0, "127.0.0.1");
  await once(http, "listening");
  open.push(server, {
    close: async () => {
      http.closeAllConnections();
      http.close();
    },
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
}

async function hostOf(configs: ServerConfigs) {
  const mcp = mcpServers(configs);
  const runtime = await openRuntime();
  open.push(runtime, mcp);
  const tools = await mcp.tools();
  return { mcp, runtime, tools, agent: caller(tools) };
}

it("an MCP server offers tools and an agent over stdio, and ends with its host", async () => {
  const { mcp, runtime, agent, tools } = await hostOf({ own: { ...own, trustAnnotations: true } });
  expect(tools.map(({ name }) => name)).toEqual(["mcp__own__clerk", "mcp__own__count", "mcp__own__pay"]);
  expect(named(tools, "mcp__own__count")).toMatchObject({ risk: "safe", destructive: false });
  expect(named(tools, "mcp__own__pay")).toMatchObject({ risk: "high", destructive: true });
  expect(await callOnce(runtime, agent, "mcp__own__count")).toEqual({
    output: { type: "json", value: { calls: 1 } },
    isError: false,
  });
  const { output } = await callOnce(runtime, agent, "mcp__own__clerk", { input: "Do it." });
  expect(output).toMatchObject({
    type: "json",
    value: { output: "It is done.", status: "completed", turns: 1 },
  });
  await mcp.close();
  expect(mcp.pid("own")).toBeNull();
});

it("an approval request of a served MCP tool reaches the person at the host, and the answer comes back", async () => {
  const { runtime, agent } = await hostOf({ own });
  const answers = {
    approved: "paid 5",
    denied: "[denied: by a person]",
    skipped: "[skipped by a person]",
  } as const;
  for (const [decision, said] of Object.entries(answers)) {
    const run = await runtime.submit(agent, { toolName: "mcp__own__pay", input: { usd: 5 } });
    for await (const event of run.events({ types: ["approval_request"] })) {
      if (event.type !== "approval_request") continue;
      expect(event.data.reason).toContain('pay is about to run with {"usd":5}');
      await run.approve(event.data.approvalId, { decision: decision as keyof typeof answers });
      break;
    }
    expect((await run.result()).output).toMatchObject({ output: { text: said } });
  }
});

it.for(["initialize", "auto", "2026-07-28"] as const)(
  "an MCP server serves a host that uses the protocol %s over HTTP",
  async (protocol) => {
    const asked = tool({
      name: "asked",
      description: "Asks for a name",
      inputSchema: nothing,
      execute: async (_input, { ctx, callId }) => {
        const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
        const input = { message: "Your name?", requestedSchema };
        return JSON.stringify(
          await ctx.approval({
            kind: "elicitation",
            toolName: "asked",
            callId,
            input,
            reason: "wants to know",
          }),
        );
      },
    });
    const url = await serve({ name: "asker", tools: [asked] });
    const { runtime, agent } = await hostOf({ asker: { url, protocol } });
    const run = await runtime.submit(agent, { toolName: "mcp__asker__asked", input: {} });
    for await (const event of run.events({ types: ["approval_request"] })) {
      if (event.type !== "approval_request") continue;
      expect(event.data.kind).toBe("elicitation");
      expect(event.data.input).toMatchObject({ message: "asked asks: wants to know: Your name?" });
      await run.approve(event.data.approvalId, { decision: "approved", input: { name: "Ada" } });
      break;
    }
    expect(JSON.stringify((await run.result()).output)).toContain("Ada");
  },
);

it("an approval request of an MCP server is denied if the host cannot ask a person", async () => {
  const pay = tool({
    name: "pay",
    description: "Pays",
    inputSchema: nothing,
    needsApproval: true,
    execute: () => "paid",
  });
  const url = await serve({ name: "payer", tools: [pay] });
  const client = new Client({ name: "mute", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  open.push(client);
  const result = await client.callTool({ name: "pay", arguments: {} });
  expect(result).toMatchObject({
    isError: true,
    content: [{ text: "[denied: the MCP host cannot ask a person]" }],
  });
});

it("a critical tool of an MCP server without permissions asks the person at the host, and is denied if the host is silent", async () => {
  const wiped: unknown[] = [];
  const wipe = tool({
    name: "wipe",
    description: "Deletes everything",
    inputSchema: { type: "object" } as const,
    risk: "critical",
    execute: (input) => {
      wiped.push(input);
      return "wiped";
    },
  });
  const url = await serve({ name: "wiper", tools: [wipe] });
  const mute = new Client({ name: "mute", version: "1" });
  await mute.connect(new StreamableHTTPClientTransport(new URL(url)));
  open.push(mute);
  expect(await mute.callTool({ name: "wipe", arguments: {} })).toMatchObject({
    isError: true,
    content: [{ text: "[denied: the MCP host cannot ask a person]" }],
  });
  // Arguments that look like a form of another server do not hide the call from the person.
  const input = { message: "Do you like tea?", requestedSchema: { type: "object", properties: {} } };
  const { runtime, agent, tools } = await hostOf({ wiper: { url } });
  const toolName = tools.find(({ name }) => name.endsWith("wipe"))?.name ?? "";
  for (const decision of ["denied", "approved"] as const) {
    const run = await runtime.submit(agent, { toolName, input });
    for await (const event of run.events({ types: ["approval_request"] })) {
      if (event.type !== "approval_request") continue;
      expect(event.data.kind).toBe("elicitation");
      expect(event.data.reason).toContain(`wipe is about to run with ${JSON.stringify(input)}`);
      expect(event.data.input).toMatchObject({ requestedSchema: { type: "object", properties: {} } });
      await run.approve(event.data.approvalId, { decision });
      break;
    }
    await run.result();
    expect(wiped).toEqual(decision === "denied" ? [] : [input]);
  }
});

it("ask_human of an MCP server asks the person at the host for a text", async () => {
  const url = await serve({ name: "asker", tools: [askHumanTool()] });
  const { runtime, agent, tools } = await hostOf({ asker: { url } });
  const run = await runtime.submit(agent, { toolName: tools[0]?.name ?? "", input: { question: "Which?" } });
  for await (const event of run.events({ types: ["approval_request"] })) {
    if (event.type !== "approval_request") continue;
    expect(event.data.reason).toContain("ask_human asks: Which?");
    await run.approve(event.data.approvalId, { decision: "approved", input: { answer: "blue" } });
    break;
  }
  expect(JSON.stringify((await run.result()).output)).toContain("blue");
});

it("a served MCP tool reports invalid arguments to the model, and an unknown tool is an error of the host", async () => {
  const sum = tool({
    name: "sum",
    description: "Adds",
    inputSchema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] } as const,
    execute: ({ a }) => a,
  });
  const url = await serve({ name: "adder", tools: [sum] });
  const client = new Client({ name: "host", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  open.push(client);
  expect(await client.callTool({ name: "sum", arguments: { a: "x" } })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("a must be number") as unknown }],
  });
  await expect(client.callTool({ name: "gone", arguments: {} })).rejects.toThrow(/gone/);
});

it("a served MCP call ends at callTimeoutMs, although it reports progress and ignores its signal", async () => {
  const endless = tool({
    name: "endless",
    description: "Reports progress without end",
    inputSchema: nothing,
    execute: async (_input, { progress, signal }) => {
      while (!signal.aborted) {
        progress({ progress: 1 });
        await new Promise(setImmediate);
      }
      await new Promise(() => {});
    },
  });
  const runtime = await openRuntime({ stopGraceMs: 50 });
  open.push(runtime);
  const url = await serve({ name: "slow", tools: [endless], runtime, callTimeoutMs: 100 });
  const client = new Client({ name: "host", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  open.push(client);
  const options = { onprogress: () => undefined, resetTimeoutOnProgress: true };
  expect(await client.callTool({ name: "endless", arguments: {} }, options)).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("deadline") as unknown }],
  });
  const [run] = (await runtime.list()).runs;
  expect(run?.status).toBe("deadline_exceeded");
});

it.for([0, -1, Number.NaN, Number.POSITIVE_INFINITY])("mcpServer() refuses callTimeoutMs %d", async (ms) => {
  const made = mcpServer({ name: "till", callTimeoutMs: ms });
  await expect(made).rejects.toThrow(
    `invalid callTimeoutMs ${ms} of mcpServer(): expected a finite number above 0, or null for no limit`,
  );
});

it("J6: an MCP call that is repeated under the same idempotency key is executed once", async () => {
  let paid = 0;
  const pay = tool({
    name: "pay",
    description: "Pays",
    inputSchema: nothing,
    execute: () => `paid ${++paid}`,
  });
  const url = await serve({ name: "payer", tools: [pay] });
  const client = new Client({ name: "host", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  open.push(client);
  const call = { name: "pay", arguments: {}, _meta: { "reeve/idempotencyKey": "one" } };
  const [first, second] = [await client.callTool(call), await client.callTool(call)];
  expect([first, second]).toMatchObject([
    { content: [{ text: "paid 1" }] },
    { content: [{ text: "paid 1" }] },
  ]);
});

it("C1, C3: an MCP call that its host cancels cancels its run; a host that disconnects does not", async () => {
  const runtime = await openRuntime();
  open.push(runtime);
  const waiting: HostedAgent = {
    id: formatAgentId({ name: "waiting" }),
    run: async (ctx) => (await ctx.waitForSignal("go")) ?? null,
  };
  const url = await serve({ name: "desk", runtime, agents: [{ agent: waiting, description: "Waits" }] });
  const call = async (signal?: AbortSignal) => {
    const client = new Client({ name: "host", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const before = (await runtime.list()).runs.length;
    const params = { name: "waiting", arguments: { input: "wait" } };
    const called = client.callTool(params, { ...(signal && { signal }) }).catch((error: Error) => error);
    for (;;) {
      const [newest] = (await runtime.list()).runs;
      const run = newest === undefined ? undefined : await runtime.find(newest.runId);
      if ((await runtime.list()).runs.length > before && run !== undefined) return { client, called, run };
      await new Promise(setImmediate);
    }
  };
  const cancelling = new AbortController();
  const first = await call(cancelling.signal);
  cancelling.abort("changed my mind");
  expect((await first.run.result()).status).toBe("cancelled");
  await first.client.close();

  const second = await call();
  await second.client.close();
  await second.called;
  await second.run.signal("go", "went on");
  expect(await second.run.result()).toMatchObject({ status: "completed", output: "went on" });
});

it("an MCP host continues a conversation by its sessionId, and cannot reach conversations of other users", async () => {
  const runtime = await openRuntime();
  open.push(runtime);
  const clerk = new Agent({
    name: "clerk",
    model: scriptedModel([
      "first",
      ({ messages }) => `after ${messages.length - 1}`,
      ({ messages }) => `after ${messages.length - 1}`,
    ]),
  });
  const url = await serve({
    name: "desk",
    runtime,
    agents: [{ agent: clerk, description: "Answers" }],
    http: {
      authenticate: async (request) => {
        const token = request.headers.get("authorization")?.slice("Bearer ".length);
        if (token === undefined) return new Response("who?", { status: 401 });
        return { token, clientId: token, scopes: [] };
      },
    },
  });
  const as = async (user: string) => {
    const headers = { authorization: `Bearer ${user}` };
    const { agent, runtime: ours } = await hostOf({ desk: { url, headers } });
    return async (input: string, sessionId?: string) => {
      const { output } = await callOnce(ours, agent, "mcp__desk__clerk", {
        input,
        ...(sessionId && { sessionId }),
      });
      return (output as unknown as { value: { output: string; sessionId: string } }).value;
    };
  };
  const [ada, eve] = [await as("ada"), await as("eve")];
  const { output, sessionId } = await ada("one");
  expect(output).toBe("first");
  expect(await ada("two", sessionId)).toEqual(expect.objectContaining({ output: "after 2", sessionId }));
  expect((await eve("three", sessionId)).output).toBe("after 0");
  const { runs } = await runtime.list();
  expect(new Set(runs.map((run) => run.sessionId)).size).toBe(2);
  const stranger = mcpServers({ desk: { url } }, { backoff: { attempts: 1 } });
  open.push(stranger);
  await expect(stranger.tools()).rejects.toThrow(/did not start/);
});

it("the tools of an agent change in place when an MCP server reports changed tools", async () => {
  const hello = tool({ name: "hello", description: "Greets", inputSchema: nothing, execute: () => "hello" });
  const connected: McpServer[] = [];
  const url = await serve({ name: "growing", tools: [hello], extend: (server) => connected.push(server) });
  const { mcp, tools, runtime, agent } = await hostOf({ growing: { url } });
  expect(tools.map(({ name }) => name)).toEqual(["mcp__growing__hello"]);
  const changed = new Promise<void>((resolve) => {
    mcp.onToolsChanged(resolve);
  });
  const said = { content: [{ type: "text", text: "goodbye" }] } as const;
  for (const server of connected)
    server.registerTool("bye", { description: "Parts" }, () => ({ content: [...said.content] }));
  await changed;
  expect(tools.map(({ name }) => name)).toEqual(["mcp__growing__bye", "mcp__growing__hello"]);
  expect((await callOnce(runtime, agent, "mcp__growing__bye")).output).toEqual({
    type: "text",
    text: "goodbye",
  });
});

it("an MCP client starts a new session if the server has dropped the old session", async () => {
  const hello = tool({ name: "hello", description: "Greets", inputSchema: nothing, execute: () => "hello" });
  const servers = [
    await mcpServer({ name: "a", tools: [hello] }),
    await mcpServer({ name: "b", tools: [hello] }),
  ];
  open.push(...servers);
  let current = 0;
  const http = createServer((request, response) => servers[current]?.handle(request, response)).listen(
    0,
    "127.0.0.1",
  );
  await once(http, "listening");
  open.push({ close: async () => void (http.closeAllConnections(), http.close()) });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  const { runtime, agent } = await hostOf({ moving: { url } });
  current = 1;
  expect((await callOnce(runtime, agent, "mcp__moving__hello")).output).toEqual({
    type: "text",
    text: "hello",
  });
});

it.for([
  { what: "host name", headers: { host: "evil.example" } },
  { what: "origin", headers: { origin: "http://evil.example" } },
])("the MCP HTTP endpoint refuses a request with a foreign $what", async ({ headers }) => {
  const server = await mcpServer({ name: "local", tools: [] });
  open.push(server);
  const request = new Request("http://localhost/mcp", {
    method: "POST",
    headers: { host: "localhost", "content-type": "application/json", ...headers },
    body: "{}",
  });
  expect((await server.fetch(request)).status).toBe(403);
});

it.for([
  [{ userOf: () => "ann" }, 'unknown option "userOf" of http of mcpServer()'],
  [{ onWarning: () => {} }, 'unknown option "onWarning" of http of mcpServer()'],
  [{ clock: {} }, 'unknown option "clock" of http of mcpServer()'],
  [{ maxSessions: 0 }, "invalid maxSessions 0 of http of mcpServer()"],
] as const)("mcpServer() refuses http: %o before it registers an agent", async ([http, message]) => {
  const runtime = await openRuntime();
  open.push(runtime);
  const agent = new Agent({ name: "desk", model: scriptedModel(["Hello."]) });
  await expect(
    mcpServer({ name: "desk", agents: [{ agent, description: "Answers." }], runtime, http: http as object }),
  ).rejects.toThrow(message);
  const other = new Agent({ name: "desk", model: scriptedModel(["Good day."]) });
  expect(() => runtime.register(other)).not.toThrow();
});
