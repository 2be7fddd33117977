// A person is a member of a team. A task for the person waits until the person answers, and a refusal is an answer too.
import assert from "node:assert/strict";
import { OrchestratorAgent, openRuntime, UserProxyAgent } from "reeve";
import { scriptedModel } from "reeve/testing";

const ada = new UserProxyAgent({ name: "ada", description: "The owner. Knows what she likes." });
const painter = new OrchestratorAgent({
  name: "painter",
  model: scriptedModel([
    { toolCalls: [{ name: "handoff_ada", input: { task: "Which colour for the door?" } }] },
    { toolCalls: [{ name: "handoff_ada", input: { task: "May I paint the windows, too?" } }] },
    "The door is blue; the windows stay as they are.",
  ]),
  subAgents: [{ agent: ada }], // her time is not counted: a hand-off's clock stands still while a person thinks
});

const runtime = await openRuntime();
const run = await runtime.submit(painter, "Paint the door.");
for await (const event of run.events({ types: ["approval_request", "tool_execution_end", "run_end"] })) {
  if (event.type === "approval_request") {
    console.log("asked:", event.data.reason);
    const decision = event.data.reason.includes("door")
      ? ({ decision: "approved", input: "Blue." } as const)
      : ({ decision: "denied", reason: "they are new" } as const);
    await run.approve(event.data.approvalId, { ...decision, by: "ada" });
  }
  if (event.type === "tool_execution_end") console.log("said:", JSON.stringify(event.data.result.output));
}
const { output } = await run.result();
console.log(output);
assert.equal(output, "The door is blue; the windows stay as they are.");
await runtime.close();
