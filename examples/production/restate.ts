// A Restate server decides which worker executes a run, and wakes the run up. While the run waits, the worker on which it began is
// replaced by a new version at another address, and the run continues there. Needs a server and the package
// `@restatedev/restate-sdk`:
//   npx @restatedev/restate-server   # the ingress is at port 8080, the admin API at port 9070
//   node examples/production/restate.ts
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRuntime, type Runtime } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";
import { restate, RestateAdmin } from "reeve/restate";

const ingressUrl = process.env["RESTATE_INGRESS_URL"] ?? "http://127.0.0.1:8080";
const admin = new RestateAdmin(process.env["RESTATE_ADMIN_URL"] ?? "http://127.0.0.1:9070");
const service = `example-${process.pid}`;
const folder = mkdtempSync(join(tmpdir(), "reeve-restate-example-"));

/** An agent that records in which version of the worker each of its steps ran. */
const agentOf = (version: string): HostedAgent => ({
  id: formatAgentId({ name: "waiter" }),
  run: async (ctx) => {
    const before = await ctx.step("before", async () => version);
    await ctx.waitForSignal("release", { timeoutMs: 3_600_000 });
    const after = await ctx.step("after", async () => version);
    return `${before}, then ${after}`;
  },
});

/** Opens a worker, and registers its address with Restate, as `reeve worker` and `reeve deploy` do. */
async function startWorker(agent: HostedAgent): Promise<Runtime> {
  const runtime = await openRuntime({
    // The store keeps the journal, the money and the events. Workers on several machines share one in PostgreSQL.
    store: `sqlite:${join(folder, "reeve.db")}`,
    suspendAfterMs: 0,
    engine: restate({
      ingressUrl,
      service,
      listen: { port: 0 },
      onListen: async (port) => void (await admin.deploy(`http://127.0.0.1:${port}`)),
    }),
  });
  runtime.register(agent);
  return runtime;
}

const waiter = agentOf("version 1");
const old = await startWorker(waiter);
const { runId } = await old.submit(waiter, null);
console.log(`version 1 executes ${runId}`);
const waiting = `SELECT id FROM sys_invocation WHERE target_service_name = '${service}' AND status = 'scheduled'`;
while ((await admin.query(waiting)).length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
console.log("the run waits: Restate keeps the timer of its timeout, and no worker owns it");

const current = await startWorker(agentOf("version 2"));
// A slice on version 1 may still be ending. It stays in `remaining` until Restate has recorded its end.
while ((await admin.drain({ service })).remaining.length > 0)
  await new Promise((resolve) => setTimeout(resolve, 50));
const deployments = (await admin.list()).filter(({ services }) =>
  services.some(({ name }) => name === service),
);
assert.equal(deployments.length, 1);
await old.close();
console.log("version 2 is deployed, version 1 is drained and closed");

const run = await current.find(runId);
await run?.signal("release");
const { output } = (await run?.result()) ?? {};
console.log("the run ran on", output);
assert.equal(output, "version 1, then version 2");
await current.close();
rmSync(folder, { recursive: true, force: true });
