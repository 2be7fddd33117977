// A server whose agents answer agents of other frameworks over A2A 1.0. The client of the package `@a2a-js/sdk` sends the same
// requests: new ClientFactory().createFromUrl(url, "/a2a/clerk/.well-known/agent-card.json").
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
const model = scriptedModel([{ toolCalls: [{ name: "send", input: { to: "bob" } }] }, "Bob knows."]);
const clerk = new Agent({ name: "clerk", description: "Writes letters", model, tools: [send] });

const store = await openStore("memory:");
const runtime = await openRuntime({ store });
const tokens = storedTokens(store.records);
const listening = await listen(createServer(runtime, { agents: [clerk], tokens }), { port: 0 });
const { token } = await tokens.create({ name: "partner", scope: "run", tenantId: "acme" });

interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: {
    readonly state: string;
    readonly message?: { readonly parts: readonly { readonly text?: string }[] };
  };
  readonly artifacts?: readonly { readonly parts: readonly { readonly text?: string }[] }[];
}

// The card needs no token. It says where the agent is.
const card = await fetch(`${listening.url}/a2a/clerk/.well-known/agent-card.json`);
const { supportedInterfaces } = (await card.json()) as { supportedInterfaces: { url: string }[] };
const [{ url } = { url: "" }] = supportedInterfaces;

async function sendMessage(messageId: string, text: string, taskId?: string): Promise<Task> {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "a2a-version": "1.0",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: messageId,
      method: "SendMessage",
      params: {
        message: { messageId, role: "ROLE_USER", parts: [{ text }], ...(taskId !== undefined && { taskId }) },
      },
    }),
  });
  const { result } = (await response.json()) as { readonly result: { readonly task: Task } };
  return result.task;
}

// The task asks before it sends the letter. The next message of the task is the answer.
const asked = await sendMessage("m1", "Write to bob");
console.log(asked.status.state, asked.status.message?.parts[0]?.text);
assert.equal(asked.status.state, "TASK_STATE_INPUT_REQUIRED");
const done = await sendMessage("m2", "approve", asked.id);
console.log(done.status.state, done.artifacts?.[0]?.parts[0]?.text);
assert.equal(done.status.state, "TASK_STATE_COMPLETED");

// A message that is sent again, for example after a lost connection, has no second effect.
assert.deepEqual(await sendMessage("m2", "approve", asked.id), done);
assert.equal((await runtime.list()).runs.length, 1);
await listening.close();
await runtime.close();
