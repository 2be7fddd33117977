import { afterAll, beforeAll, expect, it } from "vitest";
import type { JsonObject } from "../../../src/kernel/index.ts";
import {
  integer,
  object,
  optional,
  route,
  text,
  type ErrorFormat,
} from "../../../src/surfaces/server/index.ts";
import { rawRequest } from "../../attacks/server-requests.ts";
import { startServer, type TestServer } from "./test-server.ts";

const format: ErrorFormat = {
  contentType: "application/json",
  schema: object({ failed: text(), was: integer() }),
  body: ({ code, status }) => ({ failed: code, was: status }),
  status: ({ status }) => (status === 404 ? 410 : status),
};

const own = route({
  id: "own.say",
  method: "POST",
  path: "/own/say",
  summary: "Says it.",
  scope: "run",
  body: object({ text: optional(text()) }),
  isBodyOptional: true,
  responses: [{ status: 200, description: "Said." }],
  errors: format,
  handle: ({ body }) => {
    if (body.text === "fail") throw new Error("a secret detail");
    return { status: 200 };
  },
});

let server: TestServer;
beforeAll(async () => {
  server = await startServer([], {
    routes: [own],
    limits: { maxBodyBytes: 100, requestsPerSecond: 0.001, requestBurst: 20 },
  });
});
afterAll(() => server.close());

it("a server route writes every error in its own format: access, body, size, path, method and unexpected errors", async () => {
  const token = await server.tokenOf("acme");
  const seen: unknown[] = [];
  const call = async (
    method: string,
    path: string,
    options: Parameters<TestServer["call"]>[2] = {},
  ): Promise<void> => {
    const answer = await server.call(method, path, { token, ...options });
    expect(answer.headers.get("content-type")).toBe("application/json");
    seen.push([answer.status, answer.json]);
  };
  await call("POST", "/own/say", { token: null });
  await call("POST", "/own/say", { token: await server.tokenOf("acme", "read") });
  await call("POST", "/own/say", { body: "{" });
  await call("POST", "/own/say", { body: { texts: "x" } });
  await call("POST", "/own/say", { body: { text: "x".repeat(200) } });
  await call("POST", "/own/say", { body: { text: "fail" } });
  await call("POST", "/own/other");
  await call("PUT", "/own/say");
  expect(seen).toEqual([
    [401, { failed: "unauthenticated", was: 401 }],
    [403, { failed: "permission_denied", was: 403 }],
    [400, { failed: "not_json", was: 400 }],
    [400, { failed: "invalid_argument", was: 400 }],
    [413, { failed: "too_large", was: 413 }],
    [500, { failed: "internal", was: 500 }],
    [410, { failed: "not_found", was: 410 }],
    [405, { failed: "unsupported", was: 405 }],
  ]);
  expect(server.errors.splice(0)).toMatchObject([{ message: "a secret detail" }]);
  const foreign = await rawRequest(server.port, {
    method: "POST",
    path: "/own/say",
    headers: { host: "evil.example", authorization: `Bearer ${token}` },
  });
  expect([foreign.status, JSON.parse(foreign.text)]).toEqual([
    403,
    { failed: "permission_denied", was: 403 },
  ]);
});

it("a server route writes 429 in its own format, with Retry-After", async () => {
  const token = await server.tokenOf("acme");
  let last = await server.call("POST", "/own/say", { token });
  for (let count = 0; count < 20; count++) last = await server.call("POST", "/own/say", { token });
  expect([last.status, last.json]).toEqual([429, { failed: "rate_limited", was: 429 }]);
  expect(Number(last.headers.get("retry-after"))).toBeGreaterThan(0);
});

it("server routes without a format of their own use problem+json, and the document shows the format of each route", async () => {
  const other = await server.call("GET", "/api/none");
  expect([other.status, other.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
  const { json } = await server.call("GET", "/openapi.json");
  const paths = json["paths"] as Record<string, Record<string, { responses: JsonObject }>>;
  expect(paths["/own/say"]?.["post"]?.responses["default"]).toMatchObject({
    content: { "application/json": { schema: { properties: { failed: { type: "string" } } } } },
  });
  expect(paths["/api/runs"]?.["get"]?.responses["default"]).toEqual({
    $ref: "#/components/responses/Problem",
  });
});
