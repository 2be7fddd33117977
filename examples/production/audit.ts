// The program reads who did what in a run, and detects that an event was changed afterwards.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Agent, auditLog, openRuntime, openStore, tool } from "reeve";
import { scriptedModel } from "reeve/testing";

const folder = mkdtempSync(join(tmpdir(), "reeve-audit-"));
const path = join(folder, "reeve.db");
const auditKey = "kept where those who can write the file cannot read it";

const pay = tool({
  name: "pay",
  description: "Pays a bill",
  inputSchema: { type: "object", properties: { pounds: { type: "number" } } },
  needsApproval: true,
  execute: ({ pounds }) => `paid ${String(pounds)} pounds`,
});
const model = scriptedModel([{ toolCalls: [{ name: "pay", input: { pounds: 40 } }] }, "The bill is paid."]);
const clerk = new Agent({ name: "clerk", model, tools: [pay] });

const runtime = await openRuntime({ store: `sqlite:${path}`, auditKey });
const run = await runtime.submit(clerk, "Pay the miller.", { userId: "alice" });
for await (const event of run.events()) {
  if (event.type === "approval_request")
    await run.as("bob").approve(event.data.approvalId, { decision: "approved" });
}
await runtime.close();

const store = await openStore(`sqlite:${path}`, { auditKey });
const audit = auditLog(store);
const acts: string[] = [];
for await (const { actor, action } of audit.read(run.runId, { outsideOnly: true }))
  acts.push(`${actor}: ${action}`);
console.log(acts);
assert.deepEqual(acts, ["alice: run_start", "bob: approval_decision"]);

const before = await audit.verify(run.runId);
console.log("as it was written:", before);
assert.ok(before.ok && before.keyed);

// Somebody with the file, but without the key.
const intruder = new DatabaseSync(path);
intruder.exec("UPDATE commits SET body = replace(body, 'Pay the miller', 'Pay the thief!')");
const edited = await audit.verify(run.runId);
console.log("edited:", edited);
assert.ok(!edited.ok);

// Made good again, and now the end is cut off: only the head that was kept shows it.
intruder.exec("UPDATE commits SET body = replace(body, 'Pay the thief!', 'Pay the miller')");
intruder.exec("DELETE FROM commits WHERE number > (SELECT max(number) FROM commits) - 2");
const unaware = await audit.verify(run.runId);
const aware = await audit.verify(run.runId, before.head);
console.log("cut:", unaware, aware);
assert.ok(unaware.ok && !aware.ok);

intruder.close();
await store.close();
rmSync(folder, { recursive: true, force: true });
