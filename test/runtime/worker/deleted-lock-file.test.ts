import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Fault } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { sha256 } from "../../../src/runtime/index.ts";
import { sqliteStore } from "../../../src/runtime/stores/sqlite/store.ts";
import { agent } from "../runtime-setup.ts";
import { newPath } from "../stores/sqlite/store-files.ts";

test("a worker reports that its lock file was deleted, keeps its waiting run and completes the run", async () => {
  const path = await newPath();
  const errors: Fault[] = [];
  const open = async (workerId: string) =>
    createRuntime({
      store: await sqliteStore({ path, hash: sha256, watchEveryMs: 5 }),
      workerId,
      pollMs: 10,
      onError: (error) => errors.push(error),
    });
  const runtime = await open("one");
  const waits = agent("waits", async (ctx) => ctx.waitForSignal("go"));
  const run = await runtime.submit(waits, null);
  const folder = `${path}-workers`;
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  await expect.poll(() => errors.length).toBe(1);
  expect(errors[0]).toMatchObject({ code: "store_unavailable", details: { workerId: "one" } });
  expect(readdirSync(folder)).toHaveLength(1);
  // A worker that starts now finds the owner alive and does not take over its run.
  const other = await open("two");
  other.register(waits);
  await run.signal("go", "signalled");
  expect(await run.result()).toMatchObject({ status: "completed", output: "signalled" });
  expect(errors).toHaveLength(1);
  await other.close();
  await runtime.close();
});
