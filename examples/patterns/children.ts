// A child inside a run, a child of a session, and a reviewer. Each starts with the request of its parent. The program needs no key.
import assert from "node:assert/strict";
import { Agent, openRuntime, reviewer, tool } from "reeve";
import { scriptedModel } from "reeve/testing";

const noInput = { type: "object", properties: {} } as const;
const notes: string[] = [];

const check = tool({
  name: "check",
  description: "Check the work so far",
  inputSchema: noInput,
  execute: async (_input, { ctx }) => {
    const spawned = await ctx.child({ tools: [], prompt: "List the mistakes in your work so far." });
    if (spawned.kind === "refused") return `No seat is free: ${spawned.reason}`;
    const { output } = await ctx.join(spawned.handle);
    return JSON.stringify(output);
  },
});
const note = tool({
  name: "note",
  description: "Note what was learnt",
  inputSchema: noInput,
  execute: () => {
    notes.push("noted");
    return "noted";
  },
});

const model = scriptedModel([
  { toolCalls: [{ name: "check", input: {} }] },
  "No mistakes.", // the child inside the run
  "The invoices are sorted.",
  { toolCalls: [{ name: "note", input: {} }] }, // the review
  "Noted.",
  "Invoices 7, 9 and 12.", // the child of the session
]);
const clerk = new Agent({
  name: "clerk",
  model,
  instructions: "You sort invoices.",
  tools: [check, note],
  reviewers: [reviewer({ every: 1, tools: ["note"], prompt: "Note what was learnt." })],
});

await using runtime = await openRuntime({ store: "memory:" });
const { sessionId, output } = await clerk.invoke("Sort the invoices.", { runtime });
console.log(output);

const { runs } = await runtime.list({ kind: "child" });
for (const { runId } of runs) await (await runtime.find(runId))?.result();
console.log(`the review: ${notes.join()}`);

const child = await clerk.spawnChild({ sessionId, tools: [], prompt: "Name the largest invoices.", runtime });
const largest = await child.result();
console.log(largest.output);

const [parent, inside, last] = model.calls;
// A child's request begins with the parent's last request, and continues with the parent's answer to it.
assert.deepEqual(inside?.messages.slice(0, parent?.messages.length), parent?.messages);
assert.deepEqual(model.calls.at(-1)?.messages.slice(0, last?.messages.length), last?.messages);
assert.deepEqual(notes, ["noted"]);
assert.equal(largest.output, "Invoices 7, 9 and 12.");
