// A program writes to an agent through a signed webhook, repeats its message, and approves a tool call in the channel.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { Agent, openRuntime, openStore, tool } from "reeve";
import { createChannels, createServer, listen, webhookChannel } from "reeve/server";
import { scriptedModel } from "reeve/testing";

const secret = "0123456789abcdef0123456789abcdef";
let refunds = 0;
const refund = tool({
  name: "refund",
  description: "Refund an order",
  inputSchema: { type: "object", properties: { order: { type: "number" } }, required: ["order"] } as const,
  needsApproval: true,
  execute: () => {
    refunds++;
    return "refunded";
  },
});
const model = scriptedModel([
  "It left this morning.",
  { toolCalls: [{ name: "refund", input: { order: 17 } }] },
  "Order 17 is refunded.",
]);

const store = await openStore("memory:");
const runtime = await openRuntime({ store, unknownPrice: "ignore" });
const agents = [new Agent({ name: "clerk", model, tools: [refund] })];
const channel = webhookChannel({ name: "shop", secret });
const allow = [{ sender: "till-1", user: "ann" }];
const channels = createChannels(runtime, { store, agents, channels: [{ channel, allow }] });
const server = createServer(runtime, { agents, tokens: null, routes: channels.routes });
const listening = await listen(server, { port: 0 });
channels.start();

interface Answer {
  readonly state: string;
  readonly text?: string;
  readonly questions?: readonly { readonly choices: readonly { readonly data: string }[] }[];
}

/** The time of the last request. A request with the same time and body would be refused as a replay. */
let seconds = Math.floor(Date.now() / 1_000);

async function post(body: object): Promise<Answer> {
  const text = JSON.stringify(body);
  seconds++;
  const mac = createHmac("sha256", secret).update(`${seconds}.${text}`).digest("hex");
  const response = await fetch(`${listening.url}/channels/shop`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-reeve-signature": `t=${seconds},v1=${mac}` },
    body: text,
  });
  return (await response.json()) as Answer;
}

const question = { type: "message", senderId: "till-1", messageId: "1", text: "Where is order 17?" };
console.log((await post(question)).text);
// The message arrives again: the same answer, and no second run.
assert.equal((await post(question)).text, "It left this morning.");
assert.equal((await runtime.list()).runs.length, 1);

const order = { type: "message", senderId: "till-1", messageId: "2", text: "Refund it." };
const { questions } = await post(order);
const data = questions?.[0]?.choices[0]?.data;
assert.equal(refunds, 0);
await post({ type: "decision", senderId: "till-1", data });
console.log((await post(order)).text);
assert.equal(refunds, 1);

await channels.close();
await listening.close();
await runtime.close();
