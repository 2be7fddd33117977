import { EdgeVM } from "@edge-runtime/vm";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { createClient, RequestError, type Client } from "../../../src/entries/client.ts";
import type { Event } from "../../../src/kernel/index.ts";
import { repository } from "../../gates/run-node.ts";
import { endlessModel } from "../protocols/endless-model.ts";
import { startServer, type TestServer } from "../server/test-server.ts";

const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object", properties: { to: { type: "string" } } },
  needsApproval: true,
  execute: ({ to }: { readonly to?: string }) => `sent to ${to}`,
});
const echo = new Agent({ name: "echo", model: endlessModel(() => ({ deltas: ["Hel", "lo."] })) });
const clerk = new Agent({
  name: "clerk",
  model: endlessModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? "Done." : { toolCalls: [{ name: "send", input: { to: "bob" } }] },
  ),
  tools: [send],
});

let server: TestServer;
let token: string;
let client: Client;

beforeAll(async () => {
  server = await startServer([echo, clerk]);
  token = await server.tokenOf("acme", "run", "ann");
  client = createClient({ url: server.url, token });
});
afterAll(() => server.close());

async function all<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** Bundles the client as an application for browsers would. */
async function bundled(name: "client" | "react"): Promise<string> {
  const bundle = await rolldown({
    input: join(repository, `src/entries/${name}.ts`),
    external: ["react"],
    platform: "browser",
  });
  const { output } = await bundle.generate({ format: "iife", name: "reeve", minify: true });
  await bundle.close();
  return output[0].code;
}

test("the client submits a run, follows it and reads its result", async () => {
  const { run, isSteered } = await client.runs.submit({ agent: "echo", input: "Hi" });
  expect(isSteered).toBe(false);
  const items = await all(client.runs.events(run.runId));
  const events = items.filter((item): item is Event => "seq" in item);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_event, index) => index));
  expect(events.at(-1)?.type).toBe("run_end");
  expect(await client.runs.result(run.runId)).toMatchObject({ status: "completed", output: "Hello." });
  expect(await client.runs.get(run.runId)).toMatchObject({ runId: run.runId, status: "completed" });
});

test("submit() of the client starts one run if the answer of the server is lost", async () => {
  let posts = 0;
  const lossy = createClient({
    url: server.url,
    token,
    fetch: async (request) => {
      const response = await fetch(request);
      if (request.method === "POST" && ++posts <= 2) throw new TypeError("connection lost");
      return response;
    },
  });
  const before = (await client.runs.list({ agent: "echo" })).runs.length;
  const { run } = await lossy.runs.submit({ agent: "echo", input: "once" });
  expect(posts).toBe(3);
  const { runs } = await client.runs.list({ agent: "echo" });
  expect(runs.length).toBe(before + 1);
  expect(runs[0]?.runId).toBe(run.runId);
});

test("events() of the client yields each event once when the connection breaks again and again", async () => {
  const { run } = await client.runs.submit({ agent: "clerk", input: "Write" });
  const lost: number[] = [];
  const breaking = createClient({
    url: server.url,
    token,
    fetch: async (request) => {
      const response = await fetch(request);
      return request.url.includes("/stream") ? firstBytes(response, 3_000) : response;
    },
  });
  const seen: number[] = [];
  for await (const item of breaking.runs.events(run.runId, {
    onLost: (ms) => lost.push(ms),
    deltas: false,
  })) {
    if (!("seq" in item)) continue;
    seen.push(item.seq);
    if (item.type === "approval_request") {
      const [question] = await client.runs.approvals(run.runId);
      await client.runs.decide(run.runId, { approvalId: question?.approvalId ?? "", decision: "approved" });
    }
  }
  expect(lost.length).toBeGreaterThan(1);
  expect(seen).toEqual(seen.map((_seq, index) => index));
  expect((await client.runs.result(run.runId)).output).toBe("Done.");
});

/** The beginning of a response, after which the connection is lost. */
function firstBytes(response: Response, bytes: number): Response {
  let left = bytes;
  const cut = new TransformStream<Uint8Array, Uint8Array>({
    transform: (piece, to) => {
      to.enqueue(piece.slice(0, left));
      left -= piece.byteLength;
      if (left <= 0) to.error(new Error("connection lost"));
    },
  });
  return new Response(response.body?.pipeThrough(cut), response);
}

test("result() of the client waits for a run that waits for a person", async () => {
  const { run } = await client.runs.submit({ agent: "clerk", input: "Write" });
  const result = client.runs.result(run.runId);
  for await (const item of client.runs.events(run.runId)) if (item.type === "approval_request") break;
  const [question] = await client.runs.approvals(run.runId);
  expect((await client.inbox.list()).waiting).toBeGreaterThan(0);
  await client.runs.decide(run.runId, { approvalId: question?.approvalId ?? "", decision: "denied" });
  expect((await result).status).toBe("completed");
});

test("changes() of the client yields undefined when the server answers, and then each run that changes", async () => {
  const changes = client.runs.changes();
  expect((await changes.next()).value).toBeUndefined();
  const { run } = await client.runs.submit({ agent: "echo", input: "Hi" });
  const { value } = await changes.next();
  expect(value?.runId).toBe(run.runId);
  await changes.return();
});

test("the client reads, names, copies and deletes a session", async () => {
  const { run } = await client.runs.submit({ agent: "echo", input: "Remember me" });
  await client.runs.result(run.runId);
  const { sessionId } = run;
  if (sessionId === undefined) throw new Error("the run has no session");
  expect((await client.sessions.path(sessionId)).map(({ type }) => type)).toEqual(["message", "message"]);
  expect(await client.sessions.change(sessionId, { name: "First" })).toMatchObject({ name: "First" });
  const copy = await client.sessions.fork(sessionId);
  expect((await client.sessions.path(copy)).length).toBe(3);
  await client.sessions.delete(copy);
  await expect(client.sessions.get(copy)).rejects.toMatchObject({ code: "not_found", status: 404 });
});

test("the client creates a schedule, pauses it, starts it at once and removes it", async () => {
  const created = await client.schedules.create({
    name: "daily",
    agent: "echo",
    input: "Good morning",
    cron: "0 7 * * *",
  });
  expect(created).toMatchObject({ name: "daily" });
  await client.schedules.pause("daily");
  await client.schedules.resume("daily");
  await client.schedules.run("daily");
  expect((await client.schedules.list()).schedules.map(({ name }) => name)).toEqual(["daily"]);
  await client.schedules.delete("daily");
  await expect(client.schedules.get("daily")).rejects.toMatchObject({ status: 404 });
});

test("the client throws the code, the status and the message of the server for a refused request", async () => {
  const refused = client.runs.submit({ agent: "ecco", input: "Hi" });
  await expect(refused).rejects.toBeInstanceOf(RequestError);
  await expect(refused).rejects.toMatchObject({ code: "not_found", status: 404, message: /"?echo"?/u });
  const stranger = createClient({ url: server.url, token: "reeve_wrong" });
  await expect(stranger.runs.list()).rejects.toMatchObject({ code: "unauthenticated", status: 401 });
  await expect(all(stranger.runs.changes())).rejects.toMatchObject({ status: 401 });
});

test("the client names the address of a server that does not answer", async () => {
  const nowhere = createClient({ url: "http://127.0.0.1:9/" });
  await expect(nowhere.runs.list()).rejects.toMatchObject({ code: "offline", status: 0 });
});

test("createClient() refuses a missing address and a text that is no address of a server", () => {
  expect(() => createClient()).toThrow("missing url: expected the address of a server");
  expect(() => createClient({ url: "localhost:4711" })).toThrow(`invalid url "localhost:4711"`);
});

test("the client works in an edge runtime, without Node's modules", async () => {
  const edge = new EdgeVM({ initialCode: await bundled("client") });
  const program = `(async () => {
    const client = reeve.createClient(${JSON.stringify({ url: server.url, token })});
    const { run } = await client.runs.submit({ agent: "echo", input: "Hi" });
    const types = [];
    for await (const item of client.runs.events(run.runId)) types.push(item.type);
    return JSON.stringify([types.at(-1), (await client.runs.result(run.runId)).output]);
  })()`;
  expect(await edge.evaluate<Promise<string>>(program)).toBe('["run_end","Hello."]');
});

test("the client is smaller than 6 KB when it is compressed", async () => {
  expect(gzipSync(await bundled("client")).byteLength).toBeLessThan(6_000);
});
