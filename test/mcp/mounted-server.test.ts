import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Agent, tool } from "../../src/entries/index.ts";
import { formatAgentId, type HostedAgent } from "../../src/kernel/index.ts";
import { listen, type Listening } from "../../src/surfaces/server/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { rawRequest } from "../attacks/server-requests.ts";
import { startServer, type TestServer } from "../surfaces/server/test-server.ts";
import { conformanceOptions } from "./conformance-server.ts";
import { problemsOf, runServerScenarios, serverScenarioCount } from "./conformance-suite.ts";

const nothing = { type: "object", properties: {} } as const;
const clerk = new Agent({
  name: "clerk",
  description: "Answers letters",
  model: scriptedModel(Array.from({ length: 100 }, () => ({ deltas: ["It is ", "done."] }))),
});
const send = tool({
  name: "send",
  description: "Sends a letter",
  inputSchema: nothing,
  needsApproval: true,
  execute: () => "sent",
});
const careful = new Agent({
  name: "careful",
  model: scriptedModel(
    Array.from({ length: 100 }, (_each, at) =>
      at % 2 === 0 ? { toolCalls: [{ name: "send", input: {} }] } : "Sent.",
    ),
  ),
  tools: [send],
});

let working = Promise.withResolvers<string>();
/** Works until it is cancelled. */
const endless: HostedAgent = {
  id: formatAgentId({ name: "endless" }),
  run: async (ctx) => {
    working.resolve(ctx.facts.runId);
    await ctx.waitForSignal("never");
    return null;
  },
};

let server: TestServer;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startServer([clerk, careful, endless], { mcp: conformanceOptions });
});
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});
afterAll(() => server.close());

interface Host {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

async function connect(token: string, capabilities = {}): Promise<Host> {
  const client = new Client({ name: "host", version: "1" }, { capabilities });
  const transport = new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport);
  open.push(client);
  return { client, transport };
}

const ask = (name: string, more: object = {}) => ({ name, arguments: { input: "Go", ...more } });

interface AgentAnswer {
  readonly runId: string;
  readonly sessionId: string;
  readonly output: unknown;
}

function answerOf({ structuredContent }: { readonly structuredContent?: unknown }): AgentAnswer {
  return structuredContent as AgentAnswer;
}

/** Sends a message of MCP in a session, with a token. */
async function post(token: string | null, session: string | undefined, body: unknown) {
  return server.call("POST", "/mcp", {
    token,
    body,
    headers: {
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-11-25",
      ...(session !== undefined && { "mcp-session-id": session }),
    },
  });
}

const listTools = { jsonrpc: "2.0", id: 5, method: "tools/list" };

describe("an MCP client of a Reeve server", () => {
  it("an MCP client finds the agents of a Reeve server as tools, and a call is a run of the token's tenant and user", async () => {
    const { client } = await connect(await server.tokenOf("acme", "run", "ann"));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["clerk", "careful", "endless"]));
    expect(tools.find(({ name }) => name === "clerk")?.description).toBe("Answers letters");
    const first = answerOf(await client.callTool(ask("clerk")));
    expect(first.output).toBe("It is done.");
    expect(await (await server.runtime.find(first.runId))?.summary()).toMatchObject({
      tenantId: "acme",
      userId: "ann",
      agentId: "clerk",
    });
    const second = answerOf(await client.callTool(ask("clerk", { sessionId: first.sessionId })));
    const view = server.runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const run = await view.find(second.runId);
    expect(await view.sessions.path(run?.sessionId ?? "")).toHaveLength(4);
  });

  it("an MCP client of a Reeve server receives the progress of a call, and cancels the run with the call", async () => {
    const { client } = await connect(await server.tokenOf("acme"));
    const progress: unknown[] = [];
    await client.callTool(ask("clerk"), { onprogress: ({ message }) => void progress.push(message) });
    expect(progress.join("")).toBe("It is done.");
    working = Promise.withResolvers();
    const abort = new AbortController();
    const call = Promise.allSettled([client.callTool(ask("endless"), { signal: abort.signal })]);
    const runId = await working.promise;
    abort.abort();
    await call;
    expect((await (await server.runtime.find(runId))?.result())?.status).toBe("cancelled");
  });

  it("C3: an MCP client that disconnects from a Reeve server leaves the run in progress", async () => {
    const { client, transport } = await connect(await server.tokenOf("acme"));
    working = Promise.withResolvers();
    const call = Promise.allSettled([client.callTool(ask("endless"))]);
    const runId = await working.promise;
    await transport.close();
    await call;
    const run = await server.runtime.find(runId);
    expect((await run?.summary())?.endedAt).toBeNull();
    await run?.cancel();
  });

  it("an MCP client of a Reeve server answers the questions of a run for its user", async () => {
    const { client } = await connect(await server.tokenOf("acme", "run", "ann"), {
      elicitation: { form: {} },
    });
    const asked: string[] = [];
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      asked.push(params.message);
      return { action: "accept", content: {} };
    });
    const { runId, output } = answerOf(await client.callTool(ask("careful")));
    expect(asked).toEqual([expect.stringContaining("send is about to run")]);
    expect(output).toBe("Sent.");
    const events = [];
    for await (const event of (await server.runtime.find(runId))?.events({ types: ["approval_decision"] }) ??
      [])
      events.push(event);
    expect(events).toMatchObject([{ data: { decision: { decision: "approved", by: "ann" } } }]);
  });

  it("an MCP client of a Reeve server reaches no sessions of another token, and nothing with a wrong or revoked token", async () => {
    const mine = await server.tokenOf("acme", "run", "ann");
    const { client, transport } = await connect(mine);
    const { sessionId } = answerOf(await client.callTool(ask("clerk")));
    const session = transport.sessionId ?? "";
    expect((await post(mine, session, listTools)).status).toBe(200);
    for (const other of [
      await server.tokenOf("acme", "run", "ann"),
      await server.tokenOf("acme", "run", "bob"),
      await server.tokenOf("evil", "run", "ann"),
    ]) {
      const answer = await post(other, session, listTools);
      expect([answer.status, answer.json["error"]]).toMatchObject([404, { message: "Session not found" }]);
      const gone = await server.call("DELETE", "/mcp", {
        token: other,
        headers: { "mcp-session-id": session },
      });
      expect(gone.status).toBe(404);
    }
    const { client: eve } = await connect(await server.tokenOf("evil", "run", "ann"));
    const apart = answerOf(await eve.callTool(ask("clerk", { sessionId })));
    const run = await server.runtime.find(apart.runId);
    const path = await server.runtime.forTenant({ tenantId: "evil" }).sessions.path(run?.sessionId ?? "");
    expect(path).toHaveLength(2);

    for (const token of [null, "reeve_no", `${mine.slice(0, -4)}AAAA`]) {
      const refused = await post(token, session, listTools);
      expect([refused.status, refused.json["error"]]).toMatchObject([
        401,
        { data: { code: "unauthenticated" } },
      ]);
    }
    const reader = await post(await server.tokenOf("acme", "read"), undefined, listTools);
    expect([reader.status, reader.json["error"]]).toMatchObject([
      403,
      { data: { code: "permission_denied" } },
    ]);
    await server.tokens.revoke(mine.split("_")[1] ?? "");
    expect((await post(mine, session, listTools)).status).toBe(401);
    await expect(client.listTools()).rejects.toThrow(/revoked/u);
  });

  it("an MCP client of a Reeve server is refused for another host or origin, with a valid token and session", async () => {
    const token = await server.tokenOf("acme");
    const { transport } = await connect(token);
    const own = `127.0.0.1:${server.port}`;
    for (const headers of [{ host: "evil.example" }, { host: own, origin: "https://evil.example" }]) {
      const { status } = await rawRequest(server.port, {
        method: "POST",
        path: "/mcp",
        headers: {
          ...headers,
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-session-id": transport.sessionId ?? "",
        },
        body: JSON.stringify(listTools),
      });
      expect(status).toBe(403);
    }
  });

  it("an MCP client of a Reeve server gets 4xx and never 5xx for a body that is malformed, deep or large", async () => {
    const small = await startServer([clerk], { limits: { maxBodyBytes: 200_000 } });
    const deep = (depth: number): string => `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    const call = (params: string): string =>
      `{"jsonrpc":"2.0","id":1,"method":"initialize","params":${params}}`;
    const bodies = [
      "",
      "{",
      "[]",
      "null",
      "[{}]",
      '{"jsonrpc":"2.0"}',
      call("{}"),
      call(deep(90_000)),
      call(deep(200_000)),
    ];
    const statuses: number[] = [];
    for (const body of bodies)
      statuses.push(
        (
          await small.call("POST", "/mcp", {
            body,
            headers: { accept: "application/json, text/event-stream" },
          })
        ).status,
      );
    expect(statuses.filter((status) => status >= 500)).toEqual([]);
    expect(statuses.at(-1)).toBe(413);
    expect((await small.runtime.list()).runs).toEqual([]);
    await small.close();
  });

  it("an MCP client of a Reeve server opens no more streams than its token may, and no call starts without room for its stream", async () => {
    const small = await startServer([clerk], { limits: { maxStreamsPerToken: 1 } });
    const held = await fetch(`${small.url}/api/stream`, {
      headers: { authorization: `Bearer ${small.admin}` },
    });
    const answer = await small.call("POST", "/mcp", { body: listTools });
    expect([answer.status, answer.json["error"]]).toMatchObject([429, { data: { code: "rate_limited" } }]);
    expect((await small.runtime.list()).runs).toEqual([]);
    await held.body?.cancel();
    await small.close();
  });
});

describe("the MCP conformance suite against a Reeve server", () => {
  let listening: Listening;
  beforeAll(async () => {
    const token = await server.tokenOf("acme", "run", "ann");
    // The suite sends no token, so the listener adds one.
    const withToken = (request: Request): Request => {
      const { url, method, signal, body } = request;
      const headers = new Headers(request.headers);
      headers.set("authorization", `Bearer ${token}`);
      return new Request(url, { method, headers, signal, ...(body !== null && { body, duplex: "half" }) });
    };
    listening = await listen(
      {
        drain: async () => undefined,
        fetch: (request, bindings) => server.server.fetch(withToken(request), bindings),
      },
      { port: 0, closeGraceMs: 10 },
    );
  });
  afterAll(() => listening.close());

  it("the MCP endpoint that is mounted in a Reeve server passes every server scenario of the conformance suite", async () => {
    const verdicts = await runServerScenarios(`http://localhost:${listening.port}/mcp`);
    expect(verdicts.size).toBe(serverScenarioCount);
    expect(problemsOf(verdicts)).toEqual([]);
    expect(
      (await server.runtime.list({ tenantId: "acme", agentId: "mcp:conformance" })).runs.length,
    ).toBeGreaterThan(5);
  });
});
