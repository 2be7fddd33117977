// A server whose agents answer chat pages of the AI SDK and clients of AG-UI. `useChat` and `HttpAgent` send the same
// requests: new DefaultChatTransport({ api: `${url}/api/chat` }), new HttpAgent({ url: `${url}/api/ag-ui/clerk` }).
import assert from "node:assert/strict";
import { Agent, openRuntime, openStore, tool } from "reeve";
import { createServer, listen, storedTokens } from "reeve/server";
import { scriptedModel } from "reeve/testing";

const send = tool({
  name: "send",
  description: "Sends a letter.",
  inputSchema: { type: "object", properties: { to: { type: "string" } } },
  needsApproval: true,
  execute: ({ to }: { readonly to?: string }) => `sent to ${to}`,
});
const model = scriptedModel([
  { text: "I ask first.", toolCalls: [{ name: "send", input: { to: "bob" }, callId: "call-1" }] },
  "Bob knows.",
  "You are welcome.",
  "Straight on.",
]);
const clerk = new Agent({ name: "clerk", model, tools: [send] });

const store = await openStore("memory:");
const runtime = await openRuntime({ store });
const tokens = storedTokens(store.records);
const listening = await listen(createServer(runtime, { agents: [clerk], tokens }), { port: 0 });
const { token } = await tokens.create({ name: "page", scope: "run", tenantId: "acme", userId: "ann" });

type Chunk = { readonly type: string } & Readonly<Record<string, unknown>>;

/** Sends a request and returns the chunks of the stream that answers it. */
async function post(path: string, body: object): Promise<readonly Chunk[]> {
  const response = await fetch(listening.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200);
  const frames = (await response.text()).split("\n\n").filter((frame) => frame.startsWith("data: {"));
  return frames.map((frame) => JSON.parse(frame.slice("data: ".length)) as Chunk);
}

const text = (chunks: readonly Chunk[]): string => chunks.map(({ delta = "" }) => delta).join("");

// The AI SDK: the id of the chat is the session. The answer waits for the approval of a tool call.
const question = { id: "m1", role: "user", parts: [{ type: "text", text: "Write to bob" }] };
const asked = await post("/api/chat", { id: "letters", messages: [question] });
const request = asked.find(({ type }) => type === "tool-approval-request");
const [approvalId, toolCallId] = [request?.["approvalId"], request?.["toolCallId"]];
console.log(text(asked), "-> approval requested");
assert.equal(typeof approvalId, "string");

const part = { type: "tool-send", toolCallId, state: "approval-responded", input: { to: "bob" } };
const message = {
  id: "a1",
  role: "assistant",
  parts: [{ ...part, approval: { id: approvalId, approved: true } }],
};
const answered = await post("/api/chat", { id: "letters", messages: [question, message] });
console.log(text(answered));
assert.equal(text(answered), "Bob knows.");
assert.equal(answered.find(({ type }) => type === "tool-output-available")?.["output"], "sent to bob");

// AG-UI, in the same conversation: the thread is the session, and its history is that of the store.
const thanks = {
  threadId: "letters",
  runId: "r1",
  messages: [{ id: "m2", role: "user", content: "Thanks" }],
};
const events = await post("/api/ag-ui/clerk", thanks);
console.log(text(events), events.map(({ type }) => type).join(" "));
assert.equal(events.at(-1)?.type, "RUN_FINISHED");
// The server gives each tenant session ids of its own, so the stored id is longer than the one that the client chose.
const { sessions } = await runtime.sessions.list();
assert.deepEqual(
  sessions.map(({ sessionId }) => sessionId.split("@")[0]),
  ["letters"],
);
assert.equal((await runtime.sessions.path(sessions[0]?.sessionId ?? "")).length, 6);

// A route of one's own answers in the AI SDK's protocol without a server.
const response = clerk.stream("Which way?").toResponse();
assert.match(await response.text(), /Straight on\./);
await listening.close();
await runtime.close();
