// One model call chooses a specialist, whose answer is the result. Each specialist remembers its own part of the conversation.
import assert from "node:assert/strict";
import { Agent } from "reeve";
import { router } from "reeve/architectures";
import { scriptedModel } from "reeve/testing";

const billing = new Agent({
  name: "billing",
  description: "Invoices and payments.",
  model: scriptedModel(["You paid 7 euros on Monday.", "By card."]),
});
const travel = new Agent({
  name: "travel",
  description: "Trains and trips.",
  model: scriptedModel(["There is a train at 08:12."]),
});

const desk = new Agent({
  name: "desk",
  architecture: router({ routes: { billing, travel }, requireConfidence: 0.5, fallbackRoute: "travel" }),
  model: scriptedModel([
    "route: billing\nconfidence: 0.9",
    "route: billing\nconfidence: 0.2", // not sure: the fallback answers
    "route: billing\nconfidence: 0.8",
  ]),
});

const first = await desk.invoke("What did I pay?");
const { sessionId } = first;
const second = await desk.invoke("And how do I get to Tours?", { sessionId });
const third = await desk.invoke("How did I pay?", { sessionId });
for (const { output, metadata } of [first, second, third]) console.log(metadata, output);

assert.equal(first.output, "You paid 7 euros on Monday.");
assert.equal(second.output, "There is a train at 08:12.");
assert.equal(third.output, "By card.");
assert.equal(third.turns, 2); // one to choose, one to answer
