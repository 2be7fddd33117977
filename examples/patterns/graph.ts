// A graph of agents and functions: two agents research in parallel, a writer receives both results, and an editor sends the draft back
// until it is good. The process ends while the graph waits for a person, and the next one continues from the journal.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, END, Graph, openRuntime, START } from "reeve";
import { scriptedModel } from "reeve/testing";

const folder = mkdtempSync(join(tmpdir(), "reeve-graph-"));
const store = `sqlite:${join(folder, "reeve.db")}` as const;
const asked: string[] = [];

function says(name: string, ...texts: readonly string[]): Agent {
  return new Agent({ name, model: scriptedModel(texts.map((text) => () => (asked.push(name), text))) });
}

// Made anew in every process, as a program would.
function makeArticle(): Graph {
  return new Graph({
    name: "article",
    nodes: {
      history: says("historian", "Finished in 1778."),
      measures: says("surveyor", "434 m long."),
      write: says("writer", "A bridge.", "A bridge of 1778, 434 m long."),
      // A function is a step of the journal: done once, and what it waits for outlives the process.
      review: async (_draft, { text, visit, ctx }) => {
        if (visit === 1) return "again: how old, how long?";
        const verdict = await ctx.waitForSignal("verdict");
        return verdict === "print" ? text : "again";
      },
    },
    edges: [
      [START, "history"],
      [START, "measures"],
      ["history", "write"],
      ["measures", "write"], // both come to the writer, in this order
      ["write", "review"],
    ],
    routers: {
      review: { to: ["write", END], choose: (_value, text) => (text.startsWith("again") ? "write" : END) },
    },
    maxVisits: 5,
  });
}

console.log(makeArticle().toMermaid());

const first = await openRuntime({ store });
const run = await first.submit(makeArticle(), "Tell me about the Pont Wilson.");
for await (const event of run.events()) {
  if (event.type === "flow_step_start" || event.type === "flow_step_end")
    console.log(event.type, event.data.step);
  if (event.type === "task_suspend" && event.data.waitsFor.includes("signal verdict")) break;
}
await first.close();

const second = await openRuntime({ store });
second.register(makeArticle());
const found = await second.find(run.runId);
await found?.signal("verdict", "print");
const result = await found?.result();
console.log(`${result?.status}: ${JSON.stringify(result?.output)}`, result?.metadata["visits"]);
assert.equal(result?.status, "completed");
assert.equal(result?.output, "A bridge of 1778, 434 m long.");
assert.deepEqual(asked.toSorted(), ["historian", "surveyor", "writer", "writer"]);
await second.close();
rmSync(folder, { recursive: true, force: true });
