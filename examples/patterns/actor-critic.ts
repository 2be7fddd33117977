// One agent writes and another one judges, until the judge accepts the text.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { actorCritic } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";

const writer = new Agent({
  name: "writer",
  model: scriptedModel(["Tours has a bridge.", "Tours has the Pont Wilson, built of stone in 1778."]),
});
const editor = new Agent({
  name: "editor",
  instructions: "You want names and years.",
  model: scriptedModel([
    '{"score": 0.3, "issues": ["which bridge?", "no year"], "summary": "too thin"}',
    '{"score": 0.95, "issues": [], "summary": "good"}',
  ]),
});

const magazine = new Agent({
  name: "magazine",
  architecture: actorCritic({ actor: writer, critic: editor }),
});
const { output, status, metadata, turns } = await magazine.invoke("A sentence about a bridge in Tours.");
console.log(metadata, output);

assert.equal(status, "completed");
assert.equal(output, "Tours has the Pont Wilson, built of stone in 1778.");
assert.deepEqual(metadata, { actorCritic: { rounds: 2, score: 0.95, approved: true } });
assert.equal(turns, 4);
