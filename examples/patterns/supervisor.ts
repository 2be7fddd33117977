// A supervisor gives work to two workers in parallel, creates a third one for the rest, and passes its answer on unchanged.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { supervisor } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";

const worker = (name: string, answer: string): Agent =>
  new Agent({ name, description: `Knows all about ${name}.`, model: scriptedModel([answer]) });

const boss = new Agent({
  name: "boss",
  instructions: "Have others do the work.",
  architecture: supervisor({
    workers: { trains: worker("trains", "08:12."), bridges: worker("bridges", "The Pont Wilson.") },
    spawnable: new Agent({
      name: "hand",
      model: scriptedModel(["Over the bridge at nine,\nthe river runs like wine."]),
    }),
  }),
  model: scriptedModel([
    {
      toolCalls: [
        { name: "delegate", input: { worker: "trains", task: "When does the first train to Tours leave?" } },
        { name: "delegate", input: { worker: "bridges", task: "Which bridge is worth a walk?" } },
      ],
    },
    {
      toolCalls: [
        { name: "spawn_worker", input: { name: "poet", instructions: "You write two lines that rhyme." } },
      ],
    },
    {
      toolCalls: [
        { name: "delegate", input: { worker: "poet", task: "08:12 to Tours, over the Pont Wilson." } },
      ],
    },
    { toolCalls: [{ name: "forward_message", input: { worker: "poet" } }] },
  ]),
});

const stream = boss.stream("A day in Tours, as a poem.");
for await (const event of stream) {
  if (event.type === "spawn_start") console.log("hired", event.data.agentId, event.data.childTaskId);
  if (event.type === "architecture_event") console.log(event.data.name, JSON.stringify(event.data.data));
}
const { status, output } = await stream.result();
console.log(output);

assert.equal(status, "completed");
assert.equal(output, "Over the bridge at nine,\nthe river runs like wine.");
