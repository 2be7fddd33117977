// A lead hands tasks to two agents in parallel. One gets no seat; the lead receives the refusal and continues.
import assert from "node:assert/strict";
import { Agent, HookManager, OrchestratorAgent, Priority } from "reeve";
import { scriptedModel } from "reeve/testing";

const reader = (name: string, answer: string): Agent =>
  new Agent({ name, description: "Reads what it is given.", model: scriptedModel([answer]) });

const hooks = new HookManager();
hooks.on("handoff", ({ target, task }) => console.log(`to ${target}: ${task}`));

const lead = new OrchestratorAgent({
  name: "lead",
  instructions: "Have the licences compared.",
  hooks,
  model: scriptedModel([
    {
      toolCalls: [
        { name: "handoff_first", input: { task: "What does the MIT licence ask for?" } },
        { name: "handoff_second", input: { task: "What does the Apache licence ask for?" } },
        { name: "handoff_third", input: { task: "What does the GPL ask for?" } },
      ],
    },
    ({ messages }) => {
      const told = messages.findLast(({ role }) => role === "tool");
      const lines =
        told?.role === "tool"
          ? told.content.map(({ output }) => (output.type === "text" ? output.text : ""))
          : [];
      return lines.join("\n");
    },
  ]),
  subAgents: [
    { agent: reader("first", "To be named."), priority: Priority.HIGH, askTimeoutMs: 120_000 },
    { agent: reader("second", "To be named, and its patents are granted."), budget: { maxTokens: 10_000 } },
    { agent: reader("third", "That what is made of it is free, too.") },
  ],
  spawnBudget: { maxAgents: 3 },
});

const { status, output } = await lead.invoke("Compare the three.");
console.log(output);
assert.equal(status, "completed");
assert.deepEqual(output.split("\n"), [
  "To be named.",
  "To be named, and its patents are granted.",
  "third was not spawned: every seat is taken (3 seats). Do the task yourself, or try again when another agent has finished",
]);
