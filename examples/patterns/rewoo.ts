// The agent plans all tool calls before the first one, so that it needs two model calls for any number of tools. Independent calls run
// in parallel.
import assert from "node:assert/strict";
import { Agent, tool } from "reeve";
import { rewoo } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";
import { z } from "zod";

const weather = tool({
  name: "weather",
  description: "The weather in a town",
  inputSchema: z.object({ town: z.string() }),
  execute: ({ town }) => (town === "Tours" ? "sun" : "rain"),
});

const pack = tool({
  name: "pack",
  description: "What to pack for weather",
  inputSchema: z.object({ weather: z.string() }),
  execute: ({ weather: kinds }) => `a hat for the sun, a coat for the rain (it is ${kinds})`,
});

const plan = [
  { id: "E1", tool: "weather", args: { town: "Tours" } },
  { id: "E2", tool: "weather", args: { town: "Blois" } },
  { id: "E3", tool: "pack", args: { weather: "{{E1}} and {{E2}}" } }, // waits for both
];
const model = scriptedModel([JSON.stringify(plan), "Take a hat and a coat."]);

const porter = new Agent({ name: "porter", architecture: rewoo(), model, tools: [weather, pack] });
const { output, turns, metadata } = await porter.invoke("I am going to Tours and Blois. What do I pack?");
const evidence = metadata["evidence"] as readonly { readonly id: string; readonly output: string }[];
for (const { id, output: words } of evidence) console.log(`${id}: ${words}`);
console.log(`${turns} model calls: ${output}`);

assert.equal(output, "Take a hat and a coat.");
assert.equal(evidence.at(-1)?.output, "a hat for the sun, a coat for the rain (it is sun and rain)");
assert.equal(turns, 2);
