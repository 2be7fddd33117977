// A program that Reeve does not run, here a loop with the package `openai`, spends at most its budget: the gateway reserves
// each request before it leaves. A local server plays the provider.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { openRuntime, priceCatalog } from "reeve";
import { openGateway } from "reeve/gateway";

let billedTokens = 0;
const provider = createServer((request, response) => {
  let text = "";
  request.on("data", (piece: Buffer) => (text += piece.toString()));
  request.on("end", () => {
    const { max_completion_tokens } = JSON.parse(text) as { max_completion_tokens: number };
    const completion_tokens = Math.min(400, max_completion_tokens);
    billedTokens += completion_tokens;
    const choices = [
      { index: 0, message: { role: "assistant", content: "Once more." }, finish_reason: "stop" },
    ];
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ choices, usage: { prompt_tokens: 20, completion_tokens } }));
  });
});
await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;

// A thousand output tokens cost a cent.
const prices = priceCatalog({
  overrides: [{ provider: "openai", model: "house-model", usdPerMillion: { input: 0, output: 10 } }],
});
const runtime = await openRuntime({ store: "memory:", prices });
const gateway = await openGateway({ upstreams: { openai: { baseUrl, apiKey: "the key of the provider" } } });

// The package `openai` sends the same requests: new OpenAI({ baseURL: `${url}/v1`, apiKey: token }).
const loop = gateway.program(
  "loop",
  async ({ url, token }) => {
    for (let turn = 1; ; turn++) {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "house-model", messages: [{ role: "user", content: "Again!" }] }),
      });
      if (response.status === 402) return `stopped in turn ${turn}`;
      assert.equal(response.status, 200);
    }
  },
  { budget: { maxCostUsd: 0.05 } },
);

const run = await runtime.submit(loop, null);
const first = await run.result();
console.log(first.status, first.costUsd, "USD");
assert.equal(first.status, "budget_exhausted");
assert.ok(billedTokens <= 5_000);

await run.topUp({ maxCostUsd: 0.05 });
const second = await run.result();
console.log(second.status, second.costUsd, "USD");
assert.ok(billedTokens <= 10_000);

await gateway.close();
await runtime.close();
provider.close();
