// A server whose agents answer the Responses API of OpenAI (Open Responses), with a function that the client executes. The
// package `openai` sends the same requests: new OpenAI({ baseURL: `${url}/v1`, apiKey: token }).
import assert from "node:assert/strict";
import { Agent, openRuntime, openStore } from "reeve";
import { createServer, listen, storedTokens } from "reeve/server";
import { scriptedModel } from "reeve/testing";

const store = await openStore("memory:");
const runtime = await openRuntime({ store });
const model = scriptedModel([
  { toolCalls: [{ name: "weather", input: { city: "Blois" } }] },
  "Take an umbrella.",
  "Prends un parapluie.",
]);
const scout = new Agent({ name: "scout", model, instructions: "You plan trips." });
const tokens = storedTokens(store.records);
const server = createServer(runtime, { agents: [scout], tokens });
const listening = await listen(server, { port: 0 });
const { token } = await tokens.create({ name: "program", scope: "run", tenantId: "acme", userId: "ann" });

interface Item {
  readonly type: string;
  readonly call_id?: string;
  readonly name?: string;
  readonly content?: readonly { readonly text: string }[];
}
interface Answer {
  readonly id: string;
  readonly status: string;
  readonly output: readonly Item[];
}

async function respond(body: object): Promise<Answer> {
  const response = await fetch(`${listening.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "scout", ...body }),
  });
  assert.equal(response.status, 200);
  return (await response.json()) as Answer;
}

const weather = {
  type: "function",
  name: "weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const asked = await respond({ input: "What do I need in Blois?", tools: [weather] });
const [call] = asked.output;
console.log("the client executes:", call?.name);

// The run waits, also while the server restarts. It is found by the id of the call.
const outputs = [{ type: "function_call_output", call_id: call?.call_id, output: "rain" }];
const answer = await respond({ input: outputs, previous_response_id: asked.id });
console.log(answer.output[0]?.content?.[0]?.text);

// An older answer would be continued in a copy of the conversation.
const next = await respond({ input: "In French.", previous_response_id: answer.id, background: true });
const run = await runtime.find(`run_${next.id.slice("resp_".length)}`);
await run?.result();
const retrieved = await fetch(`${listening.url}/v1/responses/${next.id}`, {
  headers: { authorization: `Bearer ${token}` },
});
const { status, output } = (await retrieved.json()) as Answer;
console.log(status, output[0]?.content?.[0]?.text);
assert.equal(model.calls.length, 3);

await listening.close();
await runtime.close();
