// Reeve in an application of Fastify 5: a route of your own streams an agent, and Reeve's API is served below `/api`.
// Needs the packages `fastify` and `@hono/node-server`, which turns a function from Request to Response into one for Node.
import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import fastify from "fastify";
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

const app = fastify();
app.get("/health", () => "well");
app.post("/ask", (request) => {
  const { question } = z.object({ question: z.string() }).parse(request.body);
  return guide.stream(question, { runtime }).toResponse(); // the stream that `useChat` reads
});
await app.register(async (api) => {
  // Reeve's server reads the body itself, so Fastify must not parse it here.
  api.removeAllContentTypeParsers();
  api.addContentTypeParser("*", (_request, _payload, done) => done(null));
  const listener = getRequestListener(server.fetch, { overrideGlobalObjects: false });
  api.all("/api/*", async (request, reply) => {
    reply.hijack();
    await listener(request.raw, reply.raw);
  });
});

await app.listen({ host: "127.0.0.1", port: 0 });
const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;

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
await app.close();
await runtime.close();
