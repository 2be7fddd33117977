// A server whose agents answer programs that speak OpenAI's chat completions API. The package `openai` sends the same
// requests: new OpenAI({ baseURL: `${url}/v1`, apiKey: token }).
import assert from "node:assert/strict";
import { Agent, openRuntime, openStore } from "reeve";
import { createServer, listen, storedTokens } from "reeve/server";
import { scriptedModel } from "reeve/testing";

const store = await openStore("memory:");
const runtime = await openRuntime({ store });
const model = scriptedModel(["Take the train.", "The 9:40."]);
const scout = new Agent({ name: "scout", model, instructions: "You plan trips." });
const tokens = storedTokens(store.records);
const server = createServer(runtime, { agents: [scout], tokens });
const listening = await listen(server, { port: 0 });
const { token } = await tokens.create({ name: "program", scope: "run", tenantId: "acme", userId: "ann" });

interface Completion {
  readonly choices: readonly {
    readonly message: { readonly content: string };
    readonly finish_reason: string;
  }[];
}

async function complete(text: string): Promise<Completion> {
  const response = await fetch(`${listening.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      // The history of a named session is that of the store. Without the header, the messages are the history.
      "x-reeve-session": "trip",
    },
    body: JSON.stringify({ model: "scout", messages: [{ role: "user", content: text }], temperature: 0 }),
  });
  assert.equal(response.status, 200);
  console.log("run:", response.headers.get("x-reeve-run")?.startsWith("run_"));
  return (await response.json()) as Completion;
}

const first = await complete("How do I get to Blois?");
console.log(first.choices[0]?.message.content);
const second = await complete("Which one?");
console.log(second.choices[0]?.message.content);
assert.equal(second.choices[0]?.finish_reason, "stop");
assert.equal(model.calls[1]?.messages.length, 4); // instructions, question, answer, question
assert.equal(model.calls[1]?.temperature, 0);

await listening.close();
await runtime.close();
