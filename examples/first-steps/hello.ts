// One agent with one tool. A scripted model asks for the weather and answers, so the program needs no key. It prints every event of the run.
import assert from "node:assert/strict";
import { Agent, openRuntime, tool } from "reeve";
import { scriptedModel } from "reeve/testing";
import { z } from "zod";

const weather = tool({
  name: "weather",
  description: "The weather in a town",
  inputSchema: z.object({ town: z.string() }),
  execute: ({ town }) => `It rains in ${town}.`,
});

const model = scriptedModel([
  { toolCalls: [{ name: "weather", input: { town: "Tours" } }] },
  "Take an umbrella to Tours.",
]);

const porter = new Agent({ name: "porter", instructions: "Say what to pack.", model, tools: [weather] });

const runtime = await openRuntime();
const run = await runtime.submit(porter, "I am going to Tours.");

for await (const event of run.events()) {
  if ("seq" in event)
    console.log(`${String(event.seq).padStart(3)}  ${event.type.padEnd(21)} ${JSON.stringify(event.data)}`);
}

const { status, output, usage } = await run.result();
console.log(
  `\n${status}: ${JSON.stringify(output)} (${usage.inputTokens} tokens in, ${usage.outputTokens} out)`,
);
assert.equal(status, "completed");
assert.equal(output, "Take an umbrella to Tours.");
await runtime.close();
