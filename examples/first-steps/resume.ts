// A run is killed half way and continues in another process, which repeats no finished step.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRuntime } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";

const [folder = "", runId] = process.argv.slice(2);

const worker: HostedAgent = {
  id: formatAgentId({ name: "worker" }),
  run: async (ctx) => {
    for (const part of ["one", "two", "three", "four"]) {
      await ctx.step(part, async () => {
        appendFileSync(join(folder, "done.txt"), `${part}\n`);
        return part;
      });
      // The first process dies here, as a power switch would have it.
      if (part === "two" && runId === undefined) {
        await ctx.step("dies", async () => process.kill(process.pid, "SIGKILL"));
      }
    }
    return "finished";
  },
};

if (folder === "") {
  const own = mkdtempSync(join(tmpdir(), "reeve-resume-"));
  const start = (...args: string[]) =>
    spawnSync(process.execPath, [fileURLToPath(import.meta.url), own, ...args], { encoding: "utf8" });
  const first = start();
  const id = first.stdout.trim();
  console.log(`the first process started ${id} and was ended by ${String(first.signal)}`);
  assert.equal(first.signal, "SIGKILL");
  const second = start(id);
  console.log(`the second says: ${second.stdout.trim()}${second.stderr}`);
  assert.equal(second.stdout.trim(), "finished");
  assert.deepEqual(readFileSync(join(own, "done.txt"), "utf8").trim().split("\n"), [
    "one",
    "two",
    "three",
    "four",
  ]);
  console.log("each part was done once");
  rmSync(own, { recursive: true, force: true });
} else {
  const runtime = await openRuntime({ store: `sqlite:${join(folder, "reeve.db")}` });
  if (runId === undefined) {
    const run = await runtime.submit(worker, null);
    console.log(run.runId);
    await run.result();
  } else {
    runtime.register(worker);
    const run = await runtime.find(runId);
    console.log((await run?.result())?.output);
  }
  await runtime.close();
}
