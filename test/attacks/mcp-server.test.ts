import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ada,
  attacked,
  begin,
  callIn,
  calls,
  closeDesk,
  connection,
  eve,
  hello,
  isServing,
  json,
  openDesk,
  raw,
  rpc,
  type Raw,
} from "./desk.ts";

beforeAll(openDesk);
afterAll(closeDesk);

/** Matches the result of a contained attack: one of the statuses, no executed call, and a server that serves others. */
function contained(statuses: readonly number[]) {
  const status = expect.toSatisfy((found: number) => statuses.includes(found)) as number;
  return { status, executed: 0, isServing: true };
}

describe("the MCP endpoint refuses a foreign or malformed Host", () => {
  test.for<[string, string | null, readonly number[]]>([
    ["another name", "evil.example", [403]],
    ["another name with our port", "evil.example:80", [403]],
    ["a name that starts like ours", "127.0.0.1.evil.example", [403]],
    ["a name that ends like ours", "evil-localhost", [403]],
    ["a subdomain of localhost", "evil.localhost", [403]],
    ["credentials before our name", "evil.example@localhost", [400]],
    ["our name before credentials", "localhost:80@evil.example", [400]],
    ["a fragment after our name", "localhost#evil.example", [400]],
    ["a path after our name", "localhost/evil", [400]],
    ["a query after our name", "localhost?evil", [400]],
    ["a backslash", "localhost\\evil", [400]],
    ["a space", "local host", [400]],
    ["a bracket", "[", [400]],
    ["an IPv6 address with a tail", "[::1]evil.example", [400]],
    ["a port out of range", "localhost:99999", [400]],
    ["a negative port", "localhost:-1", [400]],
    ["a list of names", "localhost, evil.example", [400]],
    ["a percent sign", "%6cocalhost", [400, 403]],
    ["bytes above 127", "löcalhost", [400, 403]],
    ["nothing", "", [400, 403]],
    ["no header", null, [400]],
    ["a private address", "192.168.0.1", [403]],
    ["a decimal address", "2130706433.evil", [403]],
  ])("the MCP endpoint refuses a foreign or malformed Host: %s", async ([, host, statuses]) => {
    const found = await attacked({ host, headers: [...json, ada], body: hello });
    expect(found).toEqual(contained(statuses));
  });

  test.each(["GET http://evil.example/mcp HTTP/1.1", "GET //evil.example/mcp HTTP/1.1"])(
    "the MCP endpoint refuses a request target with another host name: %s",
    async (line) => {
      const { status } = await raw({ line, headers: [ada] });
      expect([400, 403, 405, 406]).toContain(status);
      expect(await isServing()).toBe(true);
    },
  );
});

describe("the MCP endpoint refuses a foreign Origin", () => {
  test.each([
    "http://evil.example",
    "https://evil.example:8080",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost@evil.example",
    "file://",
    "chrome-extension://abcdef",
    "javascript:1",
    "not an origin",
    "http://",
    "http://[",
  ])("the MCP endpoint refuses a foreign Origin: %s", async (origin) => {
    const found = await attacked({ headers: [...json, ada, `origin: ${origin}`], body: hello });
    expect(found).toEqual(contained([403]));
  });
});

describe("the MCP endpoint answers a method that it does not use", () => {
  test.each(["TRACE", "PUT", "PATCH", "OPTIONS", "PROPFIND", "LOCK", "PURGE", "HEAD"])(
    "the MCP endpoint answers a method that it does not use: %s",
    async (method) => {
      const { status } = await raw({ line: `${method} /mcp HTTP/1.1`, headers: [ada] });
      expect(status).toBe(405);
      expect(await isServing()).toBe(true);
    },
  );

  test.each([
    "CONNECT localhost:80 HTTP/1.1",
    "TRACK /mcp HTTP/1.1",
    "EVIL /mcp HTTP/1.1",
    "POST /mcp HTTP/9.9",
    "\u0000\u0001\u0002",
  ])("the MCP endpoint does not execute the request line %j", async (line) => {
    const { status } = await raw({ line, headers: [ada] });
    // Node closes the connection of a CONNECT request without an answer.
    expect(line.startsWith("CONNECT") ? [0] : [400, 405, 505]).toContain(status);
    expect(await isServing()).toBe(true);
  });
});

const big = "x".repeat(5 * 1024 * 1024);
const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;

describe("the MCP endpoint refuses a malformed or oversized request", () => {
  test.for<[string, Raw, readonly number[]]>([
    ["a body that is not JSON", { body: "{" }, [400]],
    ["an empty body", { body: "" }, [400]],
    ["JSON that is not an object", { body: "17" }, [400]],
    ["null", { body: "null" }, [400]],
    ["an empty batch", { body: "[]" }, [400]],
    ["a batch of nonsense", { body: "[1, 2, 3]" }, [400]],
    ["another version of JSON-RPC", { body: JSON.stringify({ jsonrpc: "1.0", id: 1, method: "x" }) }, [400]],
    [
      "a body of 5 MiB",
      { body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "x", params: { big } }) },
      [413, 0],
    ],
    ["arrays in arrays, 200,000 deep", { body: deep }, [413]],
    ["a declared length of 1 TB", { headers: ["content-length: 1099511627776"], body: "{}" }, [413]],
    ["a negative length", { headers: ["content-length: -1"], body: "{}" }, [400]],
    ["two lengths", { headers: ["content-length: 2", "content-length: 20"], body: "{}" }, [400]],
    [
      "a length and chunks",
      { headers: ["content-length: 2", "transfer-encoding: chunked"], body: "0\r\n\r\n" },
      [400],
    ],
    ["an invalid chunk", { headers: ["transfer-encoding: chunked"], body: "zz\r\n{}\r\n0\r\n\r\n" }, [400]],
    ["a header with a line break", { headers: ["x: a\r\n b\u0000c"], body: "{}" }, [400]],
    ["a request before initialize", { body: rpc("tools/list") }, [400]],
    ["a call before initialize", { body: rpc("tools/call", { name: "count", arguments: {} }) }, [400]],
    ["an initialize without parameters", { body: rpc("initialize") }, [200, 400]],
    ["initialize twice in a batch", { body: `[${hello},${hello}]` }, [400]],
    [
      "another content type",
      { headers: ["content-type: text/plain", "accept: application/json, text/event-stream"], body: hello },
      [415],
    ],
    [
      "no acceptable answer",
      { headers: ["content-type: application/json", "accept: image/png"], body: hello },
      [406],
    ],
    [
      "an unknown protocol version",
      { headers: ["mcp-protocol-version: 1999-01-01"], body: rpc("tools/list") },
      [400],
    ],
  ])(
    "the MCP endpoint refuses a malformed or oversized request: %s",
    async ([, { headers = [], ...request }, statuses]) => {
      const kinds = headers.some((header) => header.startsWith("content-type")) ? [] : json;
      const found = await attacked({ ...request, headers: [...kinds, ada, ...headers] });
      expect(found).toEqual(contained(statuses));
    },
  );
});

describe("a caller of the MCP endpoint cannot use the session of another user", () => {
  test.for<[string, (session: string) => Raw, readonly number[]]>([
    [
      "a call",
      (id) => ({
        headers: [...json, eve, `mcp-session-id: ${id}`],
        body: rpc("tools/call", { name: "count", arguments: {} }),
      }),
      [404],
    ],
    [
      "a list",
      (id) => ({ headers: [...json, eve, `mcp-session-id: ${id}`], body: rpc("tools/list") }),
      [404],
    ],
    [
      "a stream",
      (id) => ({
        line: "GET /mcp HTTP/1.1",
        headers: ["accept: text/event-stream", eve, `mcp-session-id: ${id}`],
      }),
      [404],
    ],
    [
      "a replay",
      (id) => ({
        line: "GET /mcp HTTP/1.1",
        headers: ["accept: text/event-stream", eve, `mcp-session-id: ${id}`, "last-event-id: 0"],
      }),
      [404],
    ],
    ["the end", (id) => ({ line: "DELETE /mcp HTTP/1.1", headers: [eve, `mcp-session-id: ${id}`] }), [404]],
    [
      "no credentials",
      (id) => ({ headers: [...json, `mcp-session-id: ${id}`], body: rpc("tools/list") }),
      [401],
    ],
    [
      "wrong credentials",
      (id) => ({
        headers: [...json, "authorization: Bearer mallory", `mcp-session-id: ${id}`],
        body: rpc("tools/list"),
      }),
      [401],
    ],
    [
      "a guessed id",
      () => ({
        headers: [...json, ada, "mcp-session-id: 00000000-0000-4000-8000-000000000000"],
        body: rpc("tools/list"),
      }),
      [404],
    ],
    [
      "an empty id",
      () => ({ headers: [...json, ada, "mcp-session-id:"], body: rpc("tools/list") }),
      [400, 404],
    ],
    [
      "__proto__ as an id",
      () => ({ headers: [...json, ada, "mcp-session-id: __proto__"], body: rpc("tools/list") }),
      [404],
    ],
    [
      "two ids",
      (id) => ({
        headers: [...json, eve, `mcp-session-id: ${id}`, `mcp-session-id: ${id}`],
        body: rpc("tools/list"),
      }),
      [400, 404],
    ],
  ])(
    "a caller of the MCP endpoint cannot use the session of another user by %s",
    async ([, attack, statuses]) => {
      const session = await begin();
      calls.length = 0;
      expect(statuses).toContain((await raw(attack(session))).status);
      expect(calls).toEqual([]);
      expect((await callIn(session, ada, { name: "count", arguments: {} })).answer).toContain("call 1");
    },
  );

  test("a caller of the MCP endpoint cannot use the session of another user with the idempotency key of that user's call", async () => {
    calls.length = 0;
    const call = { name: "count", arguments: {}, _meta: { "reeve/idempotencyKey": "shared" } };
    const first = await callIn(await begin(ada), ada, call);
    const second = await callIn(await begin(eve), eve, call);
    expect([first.answer.includes("call 1"), second.answer.includes("call 2")]).toEqual([true, true]);
  });
});

describe("a call of the MCP endpoint executes nothing", () => {
  test.for<[string, unknown]>([
    ["an unknown tool", { name: "bash", arguments: { command: "id" } }],
    ["the name of an inherited property", { name: "constructor", arguments: {} }],
    ["an argument of another type", { name: "count", arguments: { by: "many" } }],
    ["an unknown argument", { name: "count", arguments: { evil: 1 } }],
    ["arguments that are a list", { name: "count", arguments: [1] }],
    ["arguments that are a text", { name: "count", arguments: "x" }],
    ["no name", { arguments: {} }],
    ["a name that is a number", { name: 7, arguments: {} }],
    ["a tool that needs approval, from a host that cannot ask", { name: "pay", arguments: {} }],
    [
      "a forged request state",
      {
        name: "pay",
        arguments: {},
        requestState: "v1.e30.AAAA",
        inputResponses: { question: { action: "accept", content: {} } },
      },
    ],
    [
      "an answer to a question that was not asked",
      { name: "pay", arguments: {}, inputResponses: { question: { action: "accept" } } },
    ],
  ])("a call of the MCP endpoint with %s executes nothing", async ([, params]) => {
    const session = await begin();
    calls.length = 0;
    await callIn(session, ada, params);
    expect(calls).toEqual([]);
    expect(await isServing()).toBe(true);
  });

  test("a call of the MCP endpoint with more than 100,000 values executes nothing, because they are refused before they are parsed", async () => {
    const session = await begin();
    calls.length = 0;
    const body = rpc("tools/call", {
      name: "count",
      arguments: { a: Array.from({ length: 100_000 }, () => 0) },
    });
    const { status } = await raw({ headers: [...json, ada, `mcp-session-id: ${session}`], body });
    expect([status, calls.length]).toEqual([413, 0]);
    expect(await isServing()).toBe(true);
  });

  test("the arguments of a call of the MCP endpoint cannot change the prototype of objects", async () => {
    const session = await begin();
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","arguments":{"__proto__":{"polluted":1}}}}`;
    await raw({ headers: [...json, ada, `mcp-session-id: ${session}`], body });
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect(await isServing()).toBe(true);
  });
});

describe("a flood of the MCP endpoint leaves room for others", () => {
  test.for<[string, Raw]>([
    ["300 initialize requests", { headers: [...json, eve], body: hello }],
    ["300 requests without credentials", { headers: [...json], body: hello }],
    ["300 malformed requests", { headers: [...json, eve], body: "{" }],
    ["300 requests with a foreign Host", { host: "evil.example", headers: [...json, eve], body: hello }],
    ["300 TRACE requests", { line: "TRACE /mcp HTTP/1.1", headers: [eve] }],
  ])("a flood of the MCP endpoint leaves room for others: %s", async ([, attack]) => {
    const session = await begin();
    for (let round = 0; round < 6; round++) await Promise.all(Array.from({ length: 50 }, () => raw(attack)));
    expect((await callIn(session, ada, { name: "count", arguments: {} })).answer).toContain("call ");
    expect(await isServing()).toBe(true);
  });

  test("100 connections to the MCP endpoint that send half a request leave room for other clients", async () => {
    const sockets = Array.from({ length: 100 }, () => connection());
    for (const socket of sockets) socket.write("POST /mcp HTTP/1.1\r\nhost: lo");
    expect(await isServing()).toBe(true);
    for (const socket of sockets) socket.destroy();
  });
});
