// A program that Reeve does not run, here a loop with the packages `openai` and `@anthropic-ai/sdk`, spends at most its
// budget: the gateway reserves each request before it leaves. A local server plays both providers.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { openRuntime, priceCatalog } from "reeve";
import { openGateway } from "reeve/gateway";

let billedTokens = 0;
const provider = createServer((request, response) => {
  let text = "";
  request.on("data", (piece: Buffer) => (text += piece.toString()));
  request.on("end", () => {
    response.writeHead(200, { "content-type": "application/json" });
    if (request.url === "/v1/messages/count_tokens") return response.end('{"input_tokens":20}');
    const { max_completion_tokens, max_tokens = max_completion_tokens } = JSON.parse(text) as Record<
      string,
      number
    >;
    const tokens = Math.min(400, max_tokens ?? 0);
    billedTokens += tokens;
    if (request.url === "/v1/messages") {
      const content = [{ type: "text", text: "Once more." }];
      return response.end(JSON.stringify({ content, usage: { input_tokens: 20, output_tokens: tokens } }));
    }
    const choices = [
      { index: 0, message: { role: "assistant", content: "Once more." }, finish_reason: "stop" },
    ];
    return response.end(JSON.stringify({ choices, usage: { prompt_tokens: 20, completion_tokens: tokens } }));
  });
});
await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;

// A thousand output tokens cost a cent.
const prices = priceCatalog({
  overrides: ["openai", "anthropic"].map((name) => ({
    provider: name,
    model: "house-model",
    usdPerMillion: { input: 0, output: 10 },
  })),
});
const runtime = await openRuntime({ store: "memory:", prices });
const upstream = { baseUrl, apiKey: "the key of the provider" };
const gateway = await openGateway({ upstreams: { openai: upstream, anthropic: upstream } });

const loop = gateway.program(
  "loop",
  async ({ url, token }) => {
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: token });
    const anthropic = new Anthropic({ baseURL: url, apiKey: token });
    const request = { model: "house-model", messages: [{ role: "user" as const, content: "Again!" }] };
    for (let turn = 1; ; turn++)
      try {
        if (turn % 2 === 0) await openai.chat.completions.create(request);
        else await anthropic.messages.create({ ...request, max_tokens: 4_000 });
      } catch (error) {
        assert.equal((error as { status?: number }).status, 402);
        return `stopped in turn ${turn}`;
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
