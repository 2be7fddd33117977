// Models by name, a fallback, an answer that fits a schema, and a recording that is replayed after the server has stopped. The server
// runs in this process and speaks OpenAI's protocol, as Ollama, vLLM and OpenRouter do. The program needs no key and no network.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, fallback, namedModel, openRuntime, structuredOutput, type ModelLike } from "reeve";
import { recordModel, replayModel } from "reeve/testing";
import { z } from "zod";

const answers = ["Three days in Tours, I would say.", JSON.stringify({ town: "Tours", days: 3 })];
const server = createServer((request, response) => {
  let text = "";
  request.on("data", (piece) => (text += String(piece)));
  request.on("end", () => {
    const { model } = JSON.parse(text) as { model: string };
    const busy = model === "busy";
    const content = busy ? "" : answers.shift();
    const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
    const usage = { prompt_tokens: 40, completion_tokens: 12, total_tokens: 52 };
    const answer = busy
      ? { error: { message: "Overloaded" } }
      : { id: "1", created: 1, model, choices, usage };
    response.writeHead(busy ? 503 : 200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = server.address();
assert(typeof address === "object" && address !== null);
const home = { baseUrl: `http://127.0.0.1:${address.port}/v1` };
const folder = await mkdtemp(join(tmpdir(), "reeve-models-"));
const recording = join(folder, "steady.jsonl");

const plan = structuredOutput({ schema: z.object({ town: z.string(), days: z.number() }), name: "plan" });

async function ask(model: ModelLike): Promise<{ town: string; days: number }> {
  const agent = new Agent({ name: "planner", instructions: "Plan a trip.", model, middleware: [plan] });
  const runtime = await openRuntime({ prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 5e-6 }) } });
  const run = await runtime.submit(agent, "Somewhere by the Loire.");
  for await (const event of run.events()) {
    if ("seq" in event && event.type === "model_fallback")
      console.log(`${event.data.from.modelId} is ${event.data.kind}: asking ${event.data.to.modelId}`);
  }
  const { status, output, usage, costUsd } = await run.result();
  console.log(
    `${status}: ${JSON.stringify(output)} (${usage.inputTokens} in, ${usage.outputTokens} out, $${costUsd})`,
  );
  await runtime.close();
  assert.equal(status, "completed");
  assert.equal(usage.inputTokens, 80); // both answers were paid: the one that did not fit, and the one that did
  return plan.parse(output);
}

const steady = recordModel(namedModel("home/steady", home), recording);
assert.deepEqual(await ask(fallback([namedModel("home/busy", home), steady])), { town: "Tours", days: 3 });

server.closeAllConnections();
server.close();
assert.deepEqual(await ask(replayModel(recording)), { town: "Tours", days: 3 });
await rm(folder, { recursive: true });
