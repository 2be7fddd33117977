import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { HostedAgent, JsonObject, JsonValue } from "../../src/kernel/index.ts";
import { agentsOfExamples, examples, exampleWorld, pathOf } from "../surfaces/server/example-calls.ts";
import { openSse } from "../surfaces/server/sse-client.ts";
import { startServer, type TestServer, type TestServerOptions } from "../surfaces/server/test-server.ts";
import { agent, until } from "../runtime/runtime-setup.ts";
import { rawBytes } from "./server-requests.ts";

const open: TestServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function serve(agents: readonly HostedAgent[], options?: TestServerOptions): Promise<TestServer> {
  const server = await startServer(agents, options);
  open.push(server);
  return server;
}

function nested(depth: number): string {
  return `{"agent":"clerk","input":${"[".repeat(depth)}${"]".repeat(depth)}}`;
}

describe("a large or strange body of a server request", () => {
  it("the server refuses a body that is too large with 413, whether or not its length is declared", async () => {
    const server = await serve(agentsOfExamples, { limits: { maxBodyBytes: 1_000 } });
    const body = JSON.stringify({ agent: "clerk", input: "x".repeat(2_000) });
    expect((await server.call("POST", "/api/runs", { body })).json).toMatchObject({
      status: 413,
      code: "too_large",
    });
    const chunked = await fetch(`${server.url}/api/runs`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${server.admin}` },
      body: new ReadableStream({
        pull(controller) {
          controller.enqueue(new TextEncoder().encode("x".repeat(400)));
        },
      }),
      duplex: "half",
    });
    expect(chunked.status).toBe(413);
    expect((await server.runtime.list()).runs).toEqual([]);
  });

  it("the server refuses a body with more than 100,000 values with 413 on every kind of route, at no cost for a run", async () => {
    const server = await serve(agentsOfExamples);
    const numbers = (count: number): string => `[${"0,".repeat(count - 1)}0]`;
    const bodies = {
      "/api/runs": (input: string) => `{"agent":"clerk","input":${input}}`,
      "/api/chat": (input: string) => `{"id":"c","agent":"clerk","messages":${input}}`,
      "/v1/chat/completions": (input: string) => `{"model":"clerk","messages":${input}}`,
      "/mcp": (input: string) => `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${input}}}`,
    };
    for (const [path, bodyOf] of Object.entries(bodies)) {
      const { status, text } = await server.call("POST", path, {
        body: bodyOf(numbers(100_000)),
        headers: { accept: "application/json, text/event-stream" },
      });
      expect([
        path,
        status,
        text.includes("the body has more than 100000 JSON values; send fewer at once"),
      ]).toEqual([path, 413, true]);
    }
    expect((await server.runtime.list()).runs).toEqual([]);
    // The body, its two members and the members of the input.
    const most = await server.call("POST", "/api/runs", { body: bodies["/api/runs"](numbers(99_997)) });
    expect([most.status, most.json["code"]]).toEqual([201, undefined]);
  });

  it("the server refuses a body of more than 10,000 values with 413 for commands and for messages to a run in progress", async () => {
    const server = await serve(agentsOfExamples);
    const run = await server.call("POST", "/api/runs", { body: { agent: "clerk", input: "x" } });
    const { runId } = run.json["run"] as { readonly runId: string };
    const many = Array.from({ length: 10_000 }, () => 0);
    for (const [path, body] of [
      [`/api/runs/${runId}/steer`, { input: many }],
      [`/api/runs/${runId}/follow-up`, { input: many }],
      [`/api/runs/${runId}/cancel`, { reason: many }],
      ["/api/schedules", { name: "s", agent: "clerk", input: many, everyMs: 3_600_000 }],
    ] as const) {
      const { json } = await server.call("POST", path, { body });
      const detail = expect.stringMatching(/^the body has more than 10000 JSON values; send/u);
      expect([path, json["status"], json["detail"]]).toEqual([path, 413, detail]);
    }
    const initialize = { jsonrpc: "2.0", id: 1, method: "initialize", params: { capabilities: { many } } };
    const headers = { accept: "application/json, text/event-stream" };
    expect((await server.call("POST", "/mcp", { body: initialize, headers })).status).toBe(413);
  });

  it("the server accepts a body of more than 1 MiB only on routes that carry input", async () => {
    const server = await serve(agentsOfExamples);
    const long = "x".repeat(1_048_577);
    const run = await server.call("POST", "/api/runs", { body: { agent: "clerk", input: long } });
    expect(run.status).toBe(201);
    const { runId } = run.json["run"] as { readonly runId: string };
    for (const [path, body] of [
      [`/api/runs/${runId}/cancel`, { reason: long }],
      ["/api/schedules", { name: "s", agent: "clerk", input: long, everyMs: 3_600_000 }],
      ["/api/dead-letters/redeliver", { agentId: long }],
    ] as const) {
      const { json } = await server.call("POST", path, { body });
      expect([path, json["code"], json["detail"]]).toEqual([
        path,
        "too_large",
        "the body has more than 1048576 bytes; send less, or raise limits.maxCommandBytes of createServer()",
      ]);
    }
    const withInput = server.server.routes.filter(({ carriesInput }) => carriesInput === true);
    expect(withInput.map(({ id }) => id).toSorted()).toEqual([
      "a2a.call",
      "ag-ui.run",
      "chat.send",
      "mcp.send",
      "openai.complete",
      "openai.respond",
      "promises.resolve",
      "runs.decide",
      "runs.follow-up",
      "runs.fork",
      "runs.signal",
      "runs.steer",
      "runs.submit",
      "runs.tool-result",
      "runs.update",
      "sessions.append",
    ]);
  });

  it("the server refuses a deeply nested body with 400 and keeps answering", async () => {
    const server = await serve(agentsOfExamples);
    for (const depth of [65, 1_000, 100_000, 1_000_000]) {
      const { status } = await server.call("POST", "/api/runs", { body: nested(depth) });
      expect([depth, status]).toEqual([depth, 400]);
    }
    for (const body of ["{", "nul", "[1,]", '{"a":1}x', "\u{feff}{}", '"'])
      expect([body, (await server.call("POST", "/api/runs", { body })).status]).toEqual([body, 400]);
    expect((await server.call("POST", "/api/runs", { body: nested(60) })).status).toBe(201);
  });

  it("the server refuses strange JSON bodies with 4xx and never with 5xx, on any route", async () => {
    const server = await serve(agentsOfExamples);
    const calls = examples(await exampleWorld(server));
    const routes = server.server.routes.filter(({ body }) => body !== undefined);
    const strange = fc.oneof(
      fc.jsonValue({ maxDepth: 4 }),
      fc.constantFrom<JsonValue>(
        "\u{0}",
        "\u{d800}",
        -0,
        1e308,
        -1,
        0.5,
        [],
        {},
        null,
        "__proto__",
        "run_",
        "t0",
      ),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...routes),
        fc.array(fc.tuple(fc.nat(8), strange), { maxLength: 3 }),
        strange,
        async (route, changes, whole) => {
          const example = calls[route.id] ?? { status: 0 };
          const names = Object.keys((route.body?.json["properties"] as object | undefined) ?? {});
          const body: Record<string, unknown> = { ...(example.body as JsonObject | undefined) };
          for (const [at, value] of changes) body[names[at % names.length] ?? "extra"] = value;
          for (const sent of [body, whole]) {
            const { status, text } = await server.call(route.method, pathOf(route.path, example), {
              body: JSON.stringify(sent),
            });
            if (status >= 500) throw new Error(`${route.id} ${JSON.stringify(sent)}: ${text}`);
          }
        },
      ),
      { numRuns: 300 },
    );
    expect(server.errors).toEqual([]);
  });
});

describe("many server requests", () => {
  it("the server refuses requests of one token above its rate with 429, while it serves another token", async () => {
    const server = await serve(agentsOfExamples, { limits: { requestsPerSecond: 1, requestBurst: 5 } });
    const [greedy, other] = [await server.tokenOf("acme"), await server.tokenOf("acme")];
    const statuses: number[] = [];
    for (let count = 0; count < 8; count++)
      statuses.push((await server.call("GET", "/api/agents", { token: greedy })).status);
    expect(statuses.slice(0, 5)).toEqual([200, 200, 200, 200, 200]);
    expect(statuses.at(-1)).toBe(429);
    expect((await server.call("GET", "/api/agents", { token: other })).status).toBe(200);
  });

  it("the server slows down requests that guess tokens together, and does not lock out a valid token", async () => {
    const server = await serve(agentsOfExamples, { limits: { requestsPerSecond: 1, requestBurst: 3 } });
    const statuses: number[] = [];
    for (let count = 0; count < 6; count++)
      statuses.push(
        (
          await server.call("GET", "/api/agents", {
            token: `reeve_${"0".repeat(15)}${count}_${"A".repeat(43)}`,
          })
        ).status,
      );
    expect(statuses).toEqual([401, 401, 401, 429, 429, 429]);
    expect((await server.call("GET", "/api/agents")).status).toBe(200);
  });

  it("the server refuses streams above its limit, and closes a connection above the limit of connections", async () => {
    const server = await serve(agentsOfExamples, { limits: { maxStreams: 3 } });
    const tokens = await Promise.all(["a", "b", "c", "d"].map((tenant) => server.tokenOf(tenant)));
    const statuses: number[] = [];
    const streams = [];
    for (const token of tokens) {
      const stream = await openSse(`${server.url}/api/stream`, { token });
      statuses.push(stream.status);
      streams.push(stream);
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
    for (const stream of streams) stream.leave();
    const small = await serve([], { listen: { maxConnections: 2 } });
    const sockets: Socket[] = [];
    const closed = Promise.withResolvers<void>();
    for (let count = 0; count < 3; count++) {
      const socket = connect(small.port, "127.0.0.1");
      socket.on("error", () => closed.resolve());
      socket.on("close", () => closed.resolve());
      sockets.push(socket);
    }
    await closed.promise;
    for (const socket of sockets) socket.destroy();
  });
});

describe("a slow client of the server", () => {
  it("the server disconnects a slow client that does not finish its headers or its body", async () => {
    const server = await serve([], { listen: { headersTimeoutMs: 40, requestTimeoutMs: 60 } });
    expect(await rawBytes(server.port, "GET /api/runs HTTP/1.1\r\nHost: 127")).toMatch(/^HTTP\/1\.1 408/u);
    const head = `POST /api/runs HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: Bearer ${server.admin}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
    // The server has not read the whole body, so its end of the connection may reach the client as a reset.
    const answer = await rawBytes(server.port, head).catch(({ code }: NodeJS.ErrnoException) => code);
    expect(answer).toMatch(/^(?:HTTP\/1\.1 4\d\d.*|ECONNRESET|)$/su);
  });

  it("the server disconnects a slow reader of a stream, which can resume and slows neither the run nor another reader", async () => {
    const chatty = agent("chatty", async (ctx) => {
      await ctx.waitForSignal("go");
      for (let at = 0; at < 300; at++) await ctx.step("s", async () => "x".repeat(100));
      for (let at = 0; at < 40; at++) {
        ctx.emitEvent({
          type: "architecture_event",
          data: { architecture: "none", name: "text", data: { text: "y".repeat(1_000_000) } },
        });
        await ctx.step("t", async () => at);
      }
    });
    const server = await serve([chatty], { limits: { maxQueuedBytes: 200_000, heartbeatMs: 20 } });
    const run = await server.runtime.submit(chatty, null);
    await until(async () => (await run.summary()).status === "waiting");
    const path = `/api/runs/${run.runId}/stream`;
    const lazy = connect(server.port, "127.0.0.1");
    lazy.write(
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: Bearer ${server.admin}\r\n\r\n`,
    );
    const closed = new Promise<void>((resolve) => void lazy.on("close", resolve));
    await new Promise<void>((resolve) => void lazy.once("data", resolve));
    lazy.pause();
    const reader = await openSse(server.url + path, { token: server.admin });
    await run.signal("go");
    const seen: string[] = [];
    for await (const { id } of reader) if (id !== undefined) seen.push(id);
    expect(seen).toEqual(seen.map((_id, at) => String(at)));
    expect((await run.result()).status).toBe("completed");
    expect(seen.at(-1)).toBe(String(await server.store.events.lastSeq(run.runId)));
    lazy.on("error", () => undefined);
    lazy.resume();
    await closed;
  });
});

describe("two people who answer one question", () => {
  it("two people who answer one question at once get 202 and 409 from the server, and the first answer counts", async () => {
    const server = await serve(agentsOfExamples);
    const { waiting } = await exampleWorld(server);
    const answers = await Promise.all(
      (["approved", "denied"] as const).map((decision) =>
        server.call("POST", `/api/runs/${waiting.runId}/decide`, {
          body: { approvalId: waiting.approvalId, decision },
        }),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202, 409]));
    const [first] = answers;
    const lost = answers.find(({ status }) => status === 409);
    expect(lost?.json).toMatchObject({
      code: "already_exists",
      details: { by: "test", decision: first === lost ? "denied" : "approved" },
    });
  });
});
