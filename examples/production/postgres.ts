// Two workers share a PostgreSQL database. The first one is killed in the middle of a run; the second one takes the run over
// when the lease has expired, and repeats nothing that is recorded. Needs a server and the package `pg`:
//   POSTGRES_URL=postgres://reeve@127.0.0.1:5432/reeve node examples/production/postgres.ts
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRuntime } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";
import { postgresStore } from "reeve/postgres";

const url = process.env["POSTGRES_URL"] ?? "postgres://reeve@127.0.0.1:5432/reeve";
const isFirst = process.argv[2] !== undefined;
const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), "reeve-postgres-example-"));

const worker: HostedAgent = {
  id: formatAgentId({ name: "worker" }),
  run: async (ctx) => {
    for (const part of ["one", "two", "three"]) {
      await ctx.step(part, async () => {
        appendFileSync(join(folder, "done.txt"), `${part}\n`);
        return part;
      });
      // The first worker dies here, as if its machine had lost power.
      if (part === "two") await ctx.step("dies", async () => isFirst && process.kill(process.pid, "SIGKILL"));
    }
    return "finished";
  },
};

// A worker that is silent for this time counts as dead. The default of 15 seconds is right for machines in a network.
const store = await postgresStore({ url, schema: "reeve_example", leaseMs: 1_500 });
const runtime = await openRuntime({ store });

if (isFirst) {
  const run = await runtime.submit(worker, null);
  console.log(run.runId);
  await run.result();
} else {
  const first = spawnSync(process.execPath, [fileURLToPath(import.meta.url), folder], { encoding: "utf8" });
  assert.equal(first.signal, "SIGKILL", first.stderr);
  const runId = first.stdout.trim();
  console.log(`the first worker started ${runId} and was killed`);

  runtime.register(worker);
  const run = await runtime.find(runId);
  const { output } = (await run?.result()) ?? {};
  console.log("the second worker says:", output);
  assert.equal(output, "finished");
  assert.deepEqual(readFileSync(join(folder, "done.txt"), "utf8").trim().split("\n"), [
    "one",
    "two",
    "three",
  ]);
  console.log("each part was done once");
  rmSync(folder, { recursive: true, force: true });
}
await runtime.close();
await store.close();
