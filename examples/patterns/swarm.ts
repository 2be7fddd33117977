// Peers without a supervisor: the desk hands over to the bank, with a message or with input for a schema. Two peers that only hand back
// and forth are stopped.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { swarm } from "reeve/architectures";
import { scriptedModel, type ScriptStep } from "reeve/testing";

const peer = (name: string, ...script: readonly ScriptStep[]): Agent =>
  new Agent({ name, description: `The ${name}.`, model: scriptedModel(script) });

const refund = {
  type: "object",
  properties: { invoice: { type: "string" }, euros: { type: "number" } },
  required: ["invoice", "euros"],
} as const;

const shop = new Agent({
  name: "shop",
  architecture: swarm({
    peers: {
      desk: peer("desk", { toolCalls: [{ name: "transfer_to_bank", input: { invoice: "A7", euros: 7 } }] }),
      bank: { agent: peer("bank", "7 euros for A7 are on their way."), input: refund },
    },
  }),
});
const paid = await shop.invoke("I want my money back.");
console.log(paid.output, JSON.stringify(paid.metadata));
assert.equal(paid.output, "7 euros for A7 are on their way.");
assert.deepEqual(paid.metadata, { swarm: { path: ["desk", "bank"] } });

const to = (target: string): ScriptStep => ({
  toolCalls: [{ name: "handoff", input: { target, message: "Not mine." } }],
});
const office = new Agent({
  name: "office",
  architecture: swarm({
    peers: { left: peer("left", to("right"), to("right")), right: peer("right", to("left")) },
  }),
});
const lost = await office.invoke("Who is in charge?");
console.log(lost.status, lost.interruptionReason);
assert.equal(lost.interruptionReason, "swarm_cycle");
