// Agents in a fixed order, in parallel, or one of two by a condition. Flows are agents, so they nest and share one budget.
import assert from "node:assert/strict";
import { Agent, Conditional, HookEvent, HookManager, Parallel, Sequential } from "reeve";
import { scriptedModel } from "reeve/testing";

const says = (name: string, ...texts: readonly string[]) => new Agent({ name, model: scriptedModel(texts) });

// Three look at the same question; what most of them say is the answer.
const panel = new Parallel({
  name: "panel",
  branches: [says("ada", "in 1778"), says("bob", "in 1765"), says("cleo", "in 1778")],
  merge: "vote",
});

// Asked of the text so far, once, and recorded.
const publish = new Conditional({
  name: "publish",
  predicate: (text) => text.includes("1778"),
  ifTrue: says("printer", "Printed."),
  ifFalse: says("archivist", "Filed."),
});

const hooks = new HookManager();
hooks.on(HookEvent.FLOW_END, ({ agentName, flow, status }) =>
  console.log(`${agentName} (${flow}): ${status}`),
);

// Each step receives the question and all earlier answers. The last answer is the answer of the flow.
const desk = new Sequential({
  name: "desk",
  steps: [panel, says("writer", "The Pont Wilson was finished in 1778."), publish],
  budget: { maxTurns: 5 },
  hooks,
});

const { status, output, turns } = await desk.invoke("When was the Pont Wilson finished?");
console.log(`${status} in ${turns} turns:\n${output}`);
assert.equal(status, "completed");
assert.equal(output, "Printed.");
assert.equal(turns, 5);

// One turn less, and the flow stops where the money ends, with the latest answer.
const poor = new Sequential({
  name: "poor",
  steps: [says("first", "One."), says("second", "Two.")],
  budget: { maxTurns: 1 },
});
const stopped = await poor.invoke("Count.");
console.log(`${stopped.status}: ${JSON.stringify(stopped.output)}`);
assert.equal(stopped.status, "budget_exhausted");
assert.equal(stopped.output, "One.");
