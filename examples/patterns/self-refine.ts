// The agent criticises its answer and rewrites it until the critic finds nothing to change.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { react, selfRefine } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";

const writer = new Agent({
  name: "writer",
  architecture: selfRefine(react(), { maxRounds: 3 }),
  model: scriptedModel(["Reeves worked."]),
  models: {
    critic: scriptedModel(["Say for whom, and what they did.", "No issues."]),
    refiner: scriptedModel(["A reeve ran the manor's work for its lord."]),
  },
});

const stream = writer.stream("What did a reeve do?");
for await (const event of stream) {
  if (event.type === "architecture_event") console.log(event.data.name, JSON.stringify(event.data.data));
}
const { output, turns } = await stream.result();
console.log(output);

assert.equal(output, "A reeve ran the manor's work for its lord.");
assert.equal(turns, 4); // the draft, two critiques, one new version
