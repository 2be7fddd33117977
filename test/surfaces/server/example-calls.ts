import { randomUUID } from "node:crypto";
import { z } from "zod";
import {
  formatAgentId,
  type HostedAgent,
  type JsonValue,
  type Message,
  type RunHandle,
} from "../../../src/kernel/index.ts";
import { gatewayAgent } from "../../../src/capabilities/gateway/gateway-runs.ts";
import { GatewayTokens } from "../../../src/capabilities/gateway/gateway-tokens.ts";
import { Agent } from "../../../src/assembly/agent.ts";
import { object, update, workflow } from "../../../src/entries/workflow.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, until } from "../../runtime/runtime-setup.ts";
import type { CallOptions, TestServer } from "./test-server.ts";

/** An agent that answers every input, in a session. */
const clerk = new Agent({
  name: "clerk",
  extensions: [
    {
      name: "greeter",
      setup: (api) => api.registerCommand({ name: "greet", description: "Greets", run: () => undefined }),
    },
  ],
  model: scriptedModel(Array.from({ length: 5_000 }, () => "Done.")),
});

/** Asks a person, then waits for the result of a client-side tool, then for a signal, and returns all of them. */
const asker: HostedAgent = agent("asker", async (ctx) => {
  const question = { toolName: "send", callId: "c1", input: { to: "bob" }, reason: "it sends a letter" };
  const { decision } = await ctx.approval(question);
  const called = await ctx.approval({ ...question, callId: "c2", kind: "client_tool" });
  return { decision, called: called.decision, signal: (await ctx.waitForSignal("go")) ?? null };
});

const move = update("move", { input: z.string(), output: z.object({ movedTo: z.string() }) });

/** A workflow that publishes the id of a durable promise, and waits for an update and for the promise. */
const parcel = workflow("parcel", async (ctx) => {
  const { id, promise } = ctx.promise();
  ctx.publish("callback", id);
  await ctx.handleUpdate(move, async (to) => ({ movedTo: to }));
  const settled = await promise.result();
  await ctx.waitForSignal("done");
  return settled;
});

const shelf = object("shelf", {
  put: async (ctx, books: number) => {
    ctx.setState({ books });
    return null;
  },
});

export const agentsOfExamples: readonly HostedAgent[] = [clerk, asker, parcel, shelf];

/** What the examples use: ids of things that exist for the caller. */
export interface ExampleWorld {
  readonly runId: string;
  /** Number of the event with which a model call of the run starts. */
  readonly callSeq: string;
  readonly sessionId: string;
  readonly entryId: string;
  /** A run that waits for the person, and its question. */
  readonly waiting: { readonly runId: string; readonly sessionId: string; readonly approvalId: string };
  /** A run that waits for the result of a client-side tool. */
  readonly calling: { readonly runId: string };
  /** A run of a workflow that waits for an update, and its promise. */
  readonly parcel: { readonly runId: string; readonly promiseId: string };
  /** Id of a gateway run that has a token. */
  readonly gatewayRun: string;
  readonly deadLetter: Message;
  /** Name of a schedule. */
  readonly schedule: string;
}

type Owner = { readonly tenantId?: string; readonly userId?: string };

async function ask(server: TestServer, owner: Owner): Promise<RunHandle> {
  const run = await server.runtime.submit(asker, "go", owner);
  await until(async () => (await run.pendingApprovals()).length === 1);
  return run;
}

/** Creates one of everything, for an owner. */
export async function exampleWorld(server: TestServer, owner: Owner = {}): Promise<ExampleWorld> {
  // A request for a response leaves this metadata.
  const run = await server.runtime.submit(clerk, "Hello", { ...owner, metadata: { openResponses: {} } });
  await run.result();
  const [entry] = await server.runtime.sessions.path(run.sessionId);
  const waiting = await ask(server, owner);
  const [asked] = await waiting.pendingApprovals();
  const calling = await ask(server, owner);
  const [first] = await calling.pendingApprovals();
  await calling.approve(first?.approvalId ?? "", { decision: "approved" });
  await until(async () => (await calling.pendingApprovals()).some(({ kind }) => kind === "client_tool"));
  let callSeq = "";
  for await (const event of run.events({ follow: false, types: ["message_start"] }))
    if ("seq" in event) callSeq = String(event.seq);
  return {
    runId: run.runId,
    callSeq,
    sessionId: run.sessionId,
    entryId: entry?.id ?? "",
    waiting: {
      runId: waiting.runId,
      sessionId: waiting.sessionId,
      approvalId: asked?.approvalId ?? "",
    },
    calling: { runId: calling.runId },
    parcel: await startParcel(server, owner),
    gatewayRun: await startGatewayRun(server, owner),
    deadLetter: await deadLetter(server, owner),
    schedule: (
      await server.runtime.schedules.create({
        ...owner,
        name: "daily",
        agent: "clerk",
        input: "Hi",
        cron: "0 9 * * *",
      })
    ).name,
  };
}

async function startParcel(server: TestServer, owner: Owner): Promise<ExampleWorld["parcel"]> {
  const run = await server.runtime.start(parcel, null, owner);
  await until(async () => (await run.summary()).waitsFor.includes("signal"));
  await server.runtime.object(shelf, "a/1", owner).put(3);
  return { runId: run.runId, promiseId: (await run.read("callback")) as string };
}

const bot = gatewayAgent("bot");

/** Creates a gateway run with a token. The run has ended, because no gateway executes it. */
export async function startGatewayRun({ runtime, store }: TestServer, owner: Owner): Promise<string> {
  const run = await runtime.submit(bot, null, owner);
  await new GatewayTokens(store.records).create(run.runId);
  await run.result();
  return run.runId;
}

/** Sends a message that becomes a dead letter at its first failure. */
async function deadLetter({ store }: TestServer, owner: Owner): Promise<Message> {
  const { tenantId = null, userId = null } = owner;
  const id = `letter-${randomUUID()}`;
  const to = formatAgentId({ name: "archive" });
  const sender = { runId: "run_sender" as never, userId, tenantId, metadata: {} };
  const message: Message = { id, from: null, to, body: "text", sentAt: 0, sender };
  await store.inbox.deliver(message);
  for (let time = 0; time < store.inbox.settings.maxDeliveries; time++) await store.inbox.nack(to, [id]);
  return message;
}

export interface Example extends CallOptions {
  /** Values of the parameters of the path. */
  readonly params?: Readonly<Record<string, string>>;
  /** The query, with its question mark. */
  readonly query?: string;
  readonly status: number;
}

/** One valid request per route, by the id of the route. `owned` is the query that names the owner of the schedule. */
export function examples(world: ExampleWorld, owned = ""): Readonly<Record<string, Example>> {
  const { runId, sessionId, entryId, waiting, calling, deadLetter: letter, schedule } = world;
  const run = { params: { runId } };
  const waits = { params: { runId: waiting.runId } };
  const session = { params: { sessionId } };
  return {
    "runs.list": {
      query: `?sessionId=${encodeURIComponent(sessionId)}&status=completed&status=failed&limit=1`,
      status: 200,
    },
    "runs.count": { query: "?agent=clerk&costBelow=1&endedAfter=0", status: 200 },
    "runs.orders.preview": {
      body: { order: "delete", filter: { agent: "clerk", status: ["failed"] } },
      status: 200,
    },
    "runs.orders": { body: { order: "resume", runIds: ["run_absent"] }, status: 200 },
    "runs.submit": {
      body: { agent: "clerk", input: "Hi", metadata: { a: "b" }, budget: { maxTurns: 3 } },
      status: 201,
    },
    "runs.get": { ...run, status: 200 },
    "runs.result": { ...run, query: "?waitMs=1000", status: 200 },
    "runs.events": { ...run, query: "?from=1&limit=2", status: 200 },
    "runs.tasks": { ...run, query: "?at=5", status: 200 },
    "runs.past": { ...run, status: 200 },
    "runs.steps": { ...run, query: "?taskId=t0", status: 200 },
    "runs.requests": { ...run, query: "?taskId=t0&limit=5", status: 200 },
    "runs.request": { params: { runId, seq: world.callSeq }, status: 200 },
    "runs.snapshot": { ...run, status: 200 },
    "runs.score": { ...run, body: { name: "thumbs", value: 1, comment: "good" }, status: 200 },
    "runs.scores": { ...run, status: 200 },
    "runs.stream": { ...run, headers: { "last-event-id": "0" }, status: 200 },
    "chat.send": {
      body: { id: sessionId, agent: "clerk", messages: [userMessage("m1")], trigger: "submit-message" },
      status: 200,
    },
    "openai.complete": {
      body: {
        model: "clerk",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hello" },
        ],
        temperature: 0,
      },
      status: 200,
    },
    "openai.respond": { body: { model: "clerk", input: "Hello", temperature: 0 }, status: 200 },
    "openai.response": { params: { responseId: `resp_${runId.slice(4)}` }, status: 200 },
    "openai.cancel-response": { params: { responseId: `resp_${runId.slice(4)}` }, status: 200 },
    "mcp.send": {
      body: {
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: {
          protocolVersion: "2025-11-25",
          capabilities: {},
          clientInfo: { name: "test", version: "1" },
        },
      },
      headers: { accept: "application/json, text/event-stream" },
      status: 200,
    },
    // Without a session there is nothing to listen to and nothing to close.
    "mcp.listen": { headers: { accept: "text/event-stream" }, status: 400 },
    "mcp.close": { status: 400 },
    "openai.models": { status: 200 },
    "openai.model": { params: { model: "clerk" }, status: 200 },
    "ag-ui.run": {
      params: { agent: "clerk" },
      body: { threadId: sessionId, runId: "r1", messages: [{ id: "m2", role: "user", content: "Hello" }] },
      status: 200,
    },
    "a2a.card": { params: { agent: "clerk" }, status: 200 },
    // The server of the examples has several agents.
    "a2a.only-card": { status: 404 },
    "a2a.call": {
      params: { agent: "clerk" },
      body: { jsonrpc: "2.0", id: 1, method: "ListTasks", params: { pageSize: 1 } },
      headers: { "a2a-version": "1.0" },
      status: 200,
    },
    "chat.history": { params: { sessionId: waiting.sessionId }, status: 200 },
    "chat.resume": { params: { sessionId: waiting.sessionId }, status: 200 },
    "runs.approvals": { ...waits, status: 200 },
    "runs.pause": { ...waits, status: 202 },
    "runs.resume": { ...waits, body: {}, status: 202 },
    "runs.top-up-left": { ...waits, status: 200 },
    "runs.top-up": { ...waits, body: { maxTokens: 100, taskId: "t0" }, status: 202 },
    "runs.priority": { ...waits, body: { priority: 4 }, status: 202 },
    "runs.steer": { ...waits, body: { input: "Hurry" }, status: 202 },
    "runs.follow-up": { ...waits, body: { input: "Then?" }, status: 202 },
    "runs.queued-input": { ...waits, status: 200 },
    "runs.withdraw-input": { ...waits, body: { inputId: "unknown" }, status: 404 },
    "runs.decide": {
      ...waits,
      body: { approvalId: waiting.approvalId, decision: "denied", reason: "no" },
      status: 202,
    },
    "runs.tool-result": {
      params: { runId: calling.runId },
      body: { callId: "c2", value: { ok: true } },
      status: 202,
    },
    "runs.signal": { params: { runId: calling.runId }, body: { name: "go", value: 1 }, status: 202 },
    "runs.update": {
      params: { runId: world.parcel.runId },
      body: { name: "move", value: "Main St 1", id: "request-1" },
      status: 200,
    },
    "runs.value": { params: { runId: world.parcel.runId, name: "callback" }, status: 200 },
    "objects.state": { params: { name: "shelf", key: "a/1" }, status: 200 },
    "objects.states": { params: { name: "shelf" }, query: "?limit=5", status: 200 },
    "promises.resolve": { params: { id: world.parcel.promiseId }, body: { value: "ACME" }, status: 200 },
    "promises.reject": { params: { id: world.parcel.promiseId }, body: { message: "declined" }, status: 200 },
    "runs.fork": { ...run, body: { at: 3, input: "And then?" }, status: 201 },
    "runs.resend": { params: { runId }, status: 400 },
    "runs.cancel": { ...waits, body: { reason: "enough" }, status: 202 },
    "sessions.list": { query: "?limit=5&text=Hello", status: 200 },
    "sessions.search": { query: "?text=hello", status: 200 },
    "sessions.get": { ...session, status: 200 },
    "sessions.path": { ...session, query: "?from=root", status: 200 },
    "sessions.entries": { ...session, query: "?limit=1", status: 200 },
    "sessions.tree": { ...session, status: 200 },
    "sessions.context-usage": { ...session, status: 200 },
    "sessions.unsent": { ...session, status: 200 },
    "sessions.phase": { ...session, query: "?agentId=clerk", status: 200 },
    "sessions.create": {
      body: { agent: "clerk", name: "Greeting", thinkingLevel: "low", model: "openai/gpt-5" },
      status: 201,
    },
    "sessions.change": {
      ...session,
      body: { name: "Greeting", thinkingLevel: "low", model: "openai/gpt-5" },
      status: 200,
    },
    "sessions.label": { ...session, body: { entryId, label: "start" }, status: 204 },
    "sessions.append": { ...session, body: { customType: "note", data: { a: 1 } }, status: 201 },
    "sessions.compact": {
      ...session,
      body: { summary: "They greeted.", firstKeptEntryId: entryId },
      status: 201,
    },
    "sessions.start-compaction": { ...session, body: { instructions: "Keep names." }, status: 202 },
    "sessions.fork": { ...session, body: { name: "Copy" }, status: 201 },
    "sessions.move": { ...session, body: { entryId: null, summary: "left" }, status: 200 },
    "sessions.stream": { ...session, status: 200 },
    "runs.changes": { status: 200 },
    "approvals.list": { query: "?limit=1", status: 200 },
    "inbox.hidden": { status: 200 },
    "inbox.list": { query: "?view=away&limit=5", status: 200 },
    "inbox.hide": { body: { items: [{ id: "item", change: "5" }] }, status: 200 },
    "inbox.restore": { body: { ids: ["item"] }, status: 200 },
    "agents.list": { status: 200 },
    "agents.get": { params: { name: "clerk" }, status: 200 },
    "agents.commands": { params: { name: "clerk" }, status: 200 },
    "agents.run-command": {
      params: { name: "clerk", command: "greet" },
      body: { sessionId: session.params.sessionId, args: "Ann" },
      status: 200,
    },
    "models.list": { status: 200 },
    "agents.options": { params: { name: "clerk" }, status: 200 },
    "agents.save-instructions": {
      params: { name: "clerk" },
      body: { instructions: "Be brief.", hash: "sha" },
      status: 400,
    },
    "usage.sum": { query: "?by=agent&from=2026-01-01", status: 200 },
    "usage.over-time": { query: "?by=model&from=2026-11-05&to=2026-11-18", status: 200 },
    "dead-letters.list": { query: "?agentId=archive", status: 200 },
    "dead-letters.redeliver": { body: { agentId: "archive", messageIds: [letter.id] }, status: 200 },
    "access.get": { status: 200 },
    "schedules.list": { query: "?agentId=clerk", status: 200 },
    "schedules.get": { params: { name: schedule }, query: owned, status: 200 },
    "schedules.create": {
      body: { name: "hourly", agent: "clerk", input: "Hi", everyMs: 3_600_000 },
      status: 201,
    },
    "schedules.pause": { params: { name: schedule }, query: owned, status: 200 },
    "schedules.resume": { params: { name: schedule }, query: owned, status: 200 },
    "schedules.edit": {
      params: { name: schedule },
      query: owned,
      body: { input: "Hello again" },
      status: 200,
    },
    "schedules.run": { params: { name: schedule }, query: owned, status: 202 },
    "schedules.remove": { params: { name: schedule }, query: owned, status: 204 },
    "facts.get": { status: 200 },
    "experiments.list": { query: "?name=capitals", status: 200 },
    // The run of an agent is no experiment.
    "experiments.get": { ...run, status: 404 },
    "experiments.case": { ...run, query: "?caseId=france", status: 200 },
    "gateway.runs": { status: 200 },
    "gateway.run": { params: { runId: world.gatewayRun }, status: 200 },
    "gateway.revoke": { params: { runId: world.gatewayRun }, status: 202 },
    "figures.list": { query: `?runId=${runId}`, status: 200 },
    "openapi.get": { status: 200 },
    "access.login": { query: "?code=wrong", status: 401 },
    "access.signIn": { headers: { "content-type": "application/x-www-form-urlencoded" }, status: 401 },
    "sessions.delete": { ...session, status: 204 },
  };
}

/** A message of a user, as the AI SDK's clients send it. */
function userMessage(id: string): JsonValue {
  return { id, role: "user", parts: [{ type: "text", text: "Hello again" }] };
}

/** The path of a route with its parameters filled in. */
export function pathOf(path: string, { params = {}, query = "" }: Example): string {
  return (
    path.replaceAll(/\{(\w+)\}/gu, (_all, name: string) => encodeURIComponent(params[name] ?? "")) + query
  );
}
