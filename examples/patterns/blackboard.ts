// Agents write on a board that all of them read. A coordinator chooses who writes next, and a decider turns the board into an answer.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { blackboard } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";

const surveyor = new Agent({
  name: "surveyor",
  description: "Measures.",
  model: scriptedModel(['{"kind": "note", "content": "It is 434 m long.", "private": "measured twice"}']),
});
const historian = new Agent({
  name: "historian",
  description: "Knows when.",
  model: scriptedModel(["Finished in 1778."]), // no JSON: a note
});

const room = new Agent({
  name: "room",
  architecture: blackboard({
    agents: { surveyor, historian },
    coordinator: "self",
    decider: "self",
    maxRounds: 5,
  }),
  model: scriptedModel([]),
  models: {
    coordinator: scriptedModel([
      '{"nextAgent": "surveyor", "instruction": "How long is it?"}',
      '{"nextAgent": "painter"}', // no agent has that name: the round is lost, and nothing else
      '{"nextAgent": "historian"}',
      '{"terminate": true}',
    ]),
    decider: scriptedModel(["The Pont Wilson, 434 m long, was finished in 1778."]),
  },
});

const stream = room.stream("Tell me about the Pont Wilson.");
for await (const event of stream) {
  if (event.type === "architecture_event") console.log(event.data.name, JSON.stringify(event.data.data));
}
const { status, output } = await stream.result();
console.log(output);

assert.equal(status, "completed");
assert.equal(output, "The Pont Wilson, 434 m long, was finished in 1778.");
