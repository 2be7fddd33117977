// Reeve in an application of Hono: a route of your own streams an agent, and Reeve's API is served below `/api`.
// Needs the packages `hono` and `@hono/node-server`.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { serve, type HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { Agent, openRuntime, openStore } from "reeve";
import { createServer, storedTokens } from "reeve/server";
import { scriptedModel } from "reeve/testing";
import { z } from "zod";

const model = scriptedModel([{ deltas: ["Straight on, ", "then left."] }, "It opens at nine."]);
const guide = new Agent({ name: "guide", model });
const store = await openStore("memory:"); // "sqlite:./reeve.db" keeps the runs
const runtime = await openRuntime({ store });
const tokens = storedTokens(store.records);
const server = createServer(runtime, { agents: [guide], tokens });

const app = new Hono<{ Bindings: HttpBindings }>();
app.get("/health", (context) => context.text("well"));
app.post("/ask", async (context) => {
  const { question } = z.object({ question: z.string() }).parse(await context.req.json());
  return guide.stream(question, { runtime }).toResponse(); // the stream that `useChat` reads
});
// The bindings contain the connection, by which the server limits requests without a token.
app.all("/api/*", (context) => server.fetch(context.req.raw, context.env));

const http = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
if (!http.listening) await once(http, "listening");
const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;

async function post(
  path: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const request = { method: "POST", headers: { "content-type": "application/json", ...headers } };
  return fetch(url + path, { ...request, body: JSON.stringify(body) });
}

const answer = await post("/ask", { question: "Where is the castle?" });
assert.equal(answer.headers.get("x-vercel-ai-ui-message-stream"), "v1");
const deltas = [...(await answer.text()).matchAll(/"delta":"([^"]*)"/gu)].map(([, delta]) => delta);
console.log(deltas.join(""));
assert.equal(deltas.join(""), "Straight on, then left.");

assert.equal((await post("/api/runs", { agent: "guide", input: "Is it open?" })).status, 401);
const { token } = await tokens.create({ name: "desk", scope: "run", tenantId: "museum" });
const authorization = `Bearer ${token}`;
const started = await post("/api/runs", { agent: "guide", input: "When does it open?" }, { authorization });
const { run } = z.object({ run: z.object({ runId: z.string() }) }).parse(await started.json());
const result = await fetch(`${url}/api/runs/${run.runId}/result?waitMs=10000`, {
  headers: { authorization },
});
const { output } = z.object({ output: z.string() }).parse(await result.json());
console.log(output);
assert.equal(output, "It opens at nine.");
assert.equal(await (await fetch(`${url}/health`)).text(), "well");

await server.drain(); // ends the streams, so that the application can close
http.close();
await runtime.close();
