// The agent plans a task in steps, executes each step with tools in a session of its own, and gives one answer.
import assert from "node:assert/strict";
import { Agent, tool } from "reeve";
import { drawAgent, planAndExecute } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";
import { z } from "zod";

const trains = tool({
  name: "trains",
  description: "When trains leave for a town",
  inputSchema: z.object({ town: z.string() }),
  execute: ({ town }) => (town === "Tours" ? "08:12, 10:40" : "none"),
});

const guide = new Agent({
  name: "guide",
  architecture: planAndExecute({ maxSteps: 4 }),
  model: scriptedModel([]), // each role has a model of its own here; without one it asks this
  models: {
    planner: scriptedModel(['["Find a train to Tours", "Find a bridge to see there"]']),
    executor: scriptedModel([
      { toolCalls: [{ name: "trains", input: { town: "Tours" } }] },
      "The first leaves at 08:12.",
      "The Pont Wilson.",
    ]),
    synthesizer: scriptedModel(["Take the 08:12 and walk over the Pont Wilson."]),
  },
  tools: [trains],
});

const stream = guide.stream("A day in Tours, please.");
for await (const event of stream) {
  if (event.type === "architecture_event") console.log(event.data.name, JSON.stringify(event.data.data));
}
const { status, output, metadata } = await stream.result();
console.log(status, output);
console.log(drawAgent(guide));

assert.equal(status, "completed");
assert.equal(output, "Take the 08:12 and walk over the Pont Wilson.");
assert.equal((metadata["plan"] as { done: readonly unknown[] }).done.length, 2);
