// Each attempt is scored, and the next one reads why the previous one failed. A memory keeps the lessons for later runs.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "reeve";
import { react, reflexion } from "reeve/architectures";
import { messageText } from "reeve/kernel";
import { openMemory } from "reeve/memory";
import { scriptedModel } from "reeve/testing";

const folder = mkdtempSync(join(tmpdir(), "reeve-reflexion-"));
const memory = await openMemory({ path: join(folder, "memory.db") });

const actor = scriptedModel(["It is in France.", "Tours.", "Blois."]);
const historian = new Agent({
  name: "historian",
  architecture: reflexion(react(), { maxAttempts: 2, threshold: 0.8 }), // any architecture: reflexion(planAndExecute())
  model: actor,
  models: {
    evaluator: scriptedModel(['{"score": 0.2, "reason": "no town"}', '{"score": 1}', '{"score": 0.9}']),
    reflector: scriptedModel(["Name the town, not the country."]),
  },
  memory,
});

const first = await historian.invoke("In which town is the castle with the lions?", { userId: "ada" });
console.log(`${first.output} after`, JSON.stringify(first.metadata["reflexion"]));
assert.equal(first.output, "Tours.");

// Another run, another conversation: the lesson is known from the start.
const second = await historian.invoke("In which town is the castle with the stairs?", { userId: "ada" });
const told = actor.calls.at(-1)?.messages.map(messageText).join("\n");
console.log(`${second.output} told: ${JSON.stringify(told)}`);
assert.match(told ?? "", /Name the town, not the country\./u);

await memory.close();
rmSync(folder, { recursive: true, force: true });
