// A lead hires two readers and waits for both. The third is refused, because the run has three seats.
import assert from "node:assert/strict";
import { openRuntime } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";

const reader: HostedAgent = {
  id: formatAgentId({ name: "reader" }),
  run: async (ctx) => ctx.step("read", async () => `notes on ${JSON.stringify(ctx.input)}`),
};

const lead: HostedAgent = {
  id: formatAgentId({ name: "lead" }),
  subAgents: [reader],
  run: async (ctx) => {
    const handles = [];
    const refused = [];
    for (const chapter of ["chapter 1", "chapter 2", "chapter 3"]) {
      const hired = await ctx.spawn(reader.id, chapter);
      if (hired.kind === "spawned") handles.push(hired.handle);
      else refused.push(`${chapter}: ${hired.reason}`);
    }
    const outcomes = await ctx.joinAll(handles);
    return { notes: outcomes.map(({ output }) => output), refused };
  },
};

const runtime = await openRuntime();
const run = await runtime.submit(lead, null, { spawnBudget: { maxAgents: 3 } });
const { output, status } = await run.result();
console.log(status, output);
assert.deepEqual(output, {
  notes: ['notes on "chapter 1"', 'notes on "chapter 2"'],
  refused: ["chapter 3: full"],
});
await runtime.close();
