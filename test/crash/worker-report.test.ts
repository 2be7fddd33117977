import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WorkerProcess, type WorkerEnd, type WorkerOrders } from "../../src/testing/index.ts";

const orders: WorkerOrders = {
  file: "unused.db",
  workload: "none",
  server: { url: "http://127.0.0.1:1", caller: "c" },
  death: null,
  data: null,
};
const duty = new URL("../../src/testing/worker-duty.ts", import.meta.url).href;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-report-"));
});
afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));

async function endOf(source: string): Promise<WorkerEnd> {
  const script = join(folder, "worker.mjs");
  await writeFile(script, source);
  return WorkerProcess.start(pathToFileURL(script), orders, join(folder, "compiled")).endWithin(120_000);
}

test.each(["", "console.log('ready');"])(
  "a worker script that never calls runWorkerDuty() fails with what to call, if it prints %j",
  async (source) => {
    expect(await endOf(source)).toEqual({
      kind: "failed",
      reason: "the worker script reported no work; call runWorkerDuty() in it, and await it; stderr: nothing",
    });
  },
);

test("a worker process ends once its runs have ended, whatever its code prints before, after and without a line end", async () => {
  const source = `
    import { runWorkerDuty } from ${JSON.stringify(duty)};
    console.log("{}");
    await runWorkerDuty(async () => {
      process.stdout.write("half a line");
      return ["run_1"];
    });
    console.log("closed");
  `;
  expect(await endOf(source)).toEqual({ kind: "finished", runs: ["run_1"], kinds: [] });
});
