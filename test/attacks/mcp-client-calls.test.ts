import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import type { JsonObject, JsonValue } from "../../src/kernel/index.ts";
import { mcpServers, type ServerConfig } from "../../src/assembly/mcp.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { caller, callOnce } from "../mcp/live-servers.ts";
import { closeAll, fine, good, runtimeHere, toolsOf, type Reply } from "./evil-server.ts";

afterEach(closeAll);

describe("an MCP call that a server answers badly ends with an error that the model can read", () => {
  const stream = (response: ServerResponse): ServerResponse =>
    response.writeHead(200, { "content-type": "text/event-stream" });
  test.for<[string, Reply]>([
    ["content that is a text", (id) => ({ jsonrpc: "2.0", id, result: { content: "x" } })],
    ["content of an unknown kind", (id) => ({ jsonrpc: "2.0", id, result: { content: [{ type: "bomb" }] } })],
    ["an image without data", (id) => ({ jsonrpc: "2.0", id, result: { content: [{ type: "image" }] } })],
    ["no result", (id) => ({ jsonrpc: "2.0", id })],
    ["a result of null", (id) => ({ jsonrpc: "2.0", id, result: null })],
    ["an error without a code", (id) => ({ jsonrpc: "2.0", id, error: { message: "x" } })],
    [
      "an error of the protocol",
      (id) => ({ jsonrpc: "2.0", id, error: { code: -32_603, message: "\u001B[2Jno" } }),
    ],
    ["the answer to another request", (id) => fine(id + 1_000)],
    ["another version of JSON-RPC", (id) => ({ ...fine(id), jsonrpc: "1.0" })],
    [
      "JSON that ends early",
      (_id, response) =>
        void response.writeHead(200, { "content-type": "application/json" }).end(`{"jsonrpc":`),
    ],
    [
      "HTML",
      (_id, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<h1>no</h1>"),
    ],
    [
      "an empty body",
      (_id, response) => void response.writeHead(200, { "content-type": "application/json" }).end(),
    ],
    ["status 500", (_id, response) => void response.writeHead(500).end("no")],
    ["status 204", (_id, response) => void response.writeHead(204).end()],
    [
      "a redirect to itself",
      (_id, response, request) => void response.writeHead(307, { location: request.url ?? "/" }).end(),
    ],
    [
      "a redirect to another machine",
      (_id, response) => void response.writeHead(307, { location: "http://169.254.169.254/latest/" }).end(),
    ],
    ["a connection that breaks", (_id, response) => void response.socket?.destroy()],
    [
      "a body that breaks",
      (_id, response) => {
        response.writeHead(200, { "content-type": "application/json", "content-length": "1000" }).write("{");
        response.socket?.destroySoon();
      },
    ],
    [
      "a JSON body without end",
      (_id, response) => {
        response.writeHead(200, { "content-type": "application/json" });
        flood(response, "[".repeat(65_536));
      },
    ],
    ["an event without end", (_id, response) => flood(stream(response), "data: ".padEnd(65_536, "x"))],
    [
      "a result of 40 MB",
      (id, response) => {
        const text = "x".repeat(40 * 1024 * 1024);
        stream(response).end(
          `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } })}\n\n`,
        );
      },
    ],
    ["a stream that ends without a result", (_id, response) => void stream(response).end(": nothing\n\n")],
    ["events that are not JSON", (_id, response) => void stream(response).end("data: {nonsense\n\n")],
  ])(
    "an MCP call that the server answers badly ends with an error that the model can read: %s",
    async ([, call]) => {
      const clock = new FakeClock();
      const tools = await toolsOf(
        { tools: [{ ...good, name: "bad" }], call },
        { timeoutMs: 5_000 },
        { clock },
      );
      const runtime = await runtimeHere();
      const agent = caller(tools);
      const run = await runtime.submit(agent, { toolName: "mcp__evil__bad", input: {} });
      const result = run.result();
      const state = { isOver: false };
      void result.finally(() => (state.isOver = true));
      // A server that sends nothing more runs into the timeout, which follows the fake clock.
      for (const start = Date.now(); !state.isOver;) {
        await new Promise(setImmediate);
        if (Date.now() - start > 1_000) await clock.advance(5_001);
      }
      expect((await result).output).toMatchObject({ isError: true });
      expect(await callOnce(runtime, agent, "mcp__evil__good")).toMatchObject({ output: { text: "fine" } });
    },
  );

  function flood(response: ServerResponse, piece: string): void {
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
    };
    response.on("drain", more);
    more();
  }
});

describe("an MCP call ends in time", () => {
  test.for<[string, (send: (message: JsonObject) => void, token: JsonValue) => void]>([
    ["silence", () => {}],
    [
      "progress without end",
      (send, token) =>
        send({ method: "notifications/progress", params: { progressToken: token, progress: 1 } }),
    ],
    [
      "progress that goes backwards",
      (send, token) =>
        send({ method: "notifications/progress", params: { progressToken: token, progress: -1 } }),
    ],
    [
      "progress of another call",
      (send) => send({ method: "notifications/progress", params: { progressToken: "other", progress: 1 } }),
    ],
    [
      "log messages without end",
      (send) => send({ method: "notifications/message", params: { level: "info", data: "x" } }),
    ],
    [
      "notifications without end that do not exist",
      (send) => send({ method: "notifications/evil", params: {} }),
    ],
    ["changed tools without end", (send) => send({ method: "notifications/tools/list_changed" })],
  ])("an MCP call ends in time despite %s", async ([, notify]) => {
    const clock = new FakeClock();
    const sent: (() => void)[] = [];
    const tools = await toolsOf(
      {
        tools: [{ ...good, name: "endless" }],
        call: (_id, response, _request, body) => {
          response.writeHead(200, { "content-type": "text/event-stream" });
          response.flushHeaders();
          const { _meta } = body["params"] as { _meta?: { progressToken?: JsonValue } };
          sent.push(() =>
            notify(
              (message) => response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`),
              _meta?.progressToken ?? null,
            ),
          );
        },
      },
      { timeoutMs: 1_000, totalTimeoutMs: 10_000 },
      { clock },
    );
    const runtime = await runtimeHere();
    const run = await runtime.submit(caller(tools), { toolName: "mcp__evil__endless", input: {} });
    const result = run.result();
    const state = { isOver: false };
    void result.finally(() => (state.isOver = true));
    const began = clock.now();
    while (!state.isOver) {
      for (const send of sent) send();
      for (let turn = 0; turn < 20 && !state.isOver; turn++) await new Promise(setImmediate);
      if (sent.length > 0) await clock.advance(100);
    }
    expect((await result).output).toMatchObject({
      isError: true,
      output: {
        text: expect.stringMatching(
          /sent neither a result nor progress for 1000 ms|sent no result within 10000 ms/u,
        ) as unknown,
      },
    });
    expect(clock.now() - began).toBeLessThanOrEqual(11_000);
  });
});

describe("a program that misbehaves as an MCP server is contained", () => {
  const program = (code: string): ServerConfig => ({
    command: process.execPath,
    args: ["-e", code],
    startTimeoutMs: 3_000,
  });
  // The tests wait for the start timeout, so they run at the same time.
  test.concurrent.for<[string, string]>([
    ["a program that ends at once", "process.exit(0)"],
    ["a program that writes text that is not JSON", "setInterval(() => console.log('hello'), 5)"],
    [
      "a program that writes one line of 20 MB",
      "process.stdout.write('x'.repeat(20 * 1024 * 1024)); setInterval(() => {}, 1000)",
    ],
    [
      "a program that fills its standard error",
      "setInterval(() => process.stderr.write('e'.repeat(65536)), 1)",
    ],
    ["a program that reads nothing and says nothing", "setInterval(() => {}, 1000)"],
    [
      "a program that ignores the request to end",
      "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)",
    ],
    [
      "a program that answers with another protocol",
      "process.stdin.on('data', () => console.log('HTTP/1.1 200 OK'))",
    ],
  ])("a program that misbehaves as an MCP server is contained: %s", async ([, code]) => {
    const servers = mcpServers({ evil: program(code) }, { backoff: { attempts: 1 } });
    await expect(servers.tools()).rejects.toThrow(/MCP server evil did not start/u);
    await servers.close();
    expect(servers.pid("evil")).toBeNull();
  });
});

describe("the schema of an MCP server does not stop the process", () => {
  const pattern = "^(a+)+$";
  const text = `${"a".repeat(40)}!`;
  const doubled = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => {
      const next = at === 0 ? { type: "number" } : { $ref: `#/$defs/d${at - 1}` };
      return [`d${at}`, { anyOf: [next, next] }];
    }),
  );

  test.for<[string, JsonObject]>([
    ["a pattern that backtracks", { properties: { a: { type: "string", pattern } } }],
    ["references that multiply", { $defs: doubled, properties: { a: { $ref: "#/$defs/d39" } } }],
  ])("the result of an MCP call reaches the model despite %s in outputSchema", async ([, outputSchema]) => {
    const tools = await toolsOf({
      tools: [{ ...good, name: "bad", outputSchema: { type: "object", ...outputSchema } }],
      call: (id) => ({ jsonrpc: "2.0", id, result: { content: [], structuredContent: { a: text } } }),
    });
    const result = await callOnce(await runtimeHere(), caller(tools), "mcp__evil__bad");
    expect(result).toMatchObject({ output: { type: "json", value: { a: text } }, isError: false });
  });

  test("an MCP inputSchema whose references multiply is checked by the server and not by the client", async () => {
    const inputSchema = {
      type: "object",
      $defs: doubled,
      properties: { a: { $ref: "#/$defs/d39" } },
    } as JsonObject;
    const tools = await toolsOf({ tools: [{ ...good, name: "bad", inputSchema }] });
    const result = await callOnce(await runtimeHere(), caller(tools), "mcp__evil__bad", { a: text });
    expect(result).toMatchObject({ output: { text: "fine" } });
  });
});
