import { describe, expect, inject, test } from "vitest";
import { runCrashes } from "../../src/testing/index.ts";
import { crashServer, openCrashStore } from "../crash/crash-store.ts";
import { isComplete, killPoints } from "../crash/kill-points.ts";
import { workloads } from "../crash/workloads/index.ts";

process.env[crashServer] = inject("postgresUrl");

const isKillPoint = killPoints();

/** Turns, mail that wakes a run, and a timer. `npm run test:crash -- --project postgres` kills at every write of more workloads. */
const chosen = isComplete
  ? ["toolLoop", "approval", "spawnTree", "sleep", "largeValues", "tenants"]
  : ["toolLoop", "approval", "sleep"];

describe.each(chosen)("PostgreSQL, J1, J6, B1, B3, E1, E4, H1, H4: %s", (workload) => {
  test("a worker killed before or after writes that differ in kind leaves a run that ends as without the crash", async () => {
    const { world, outputs } = workloads[workload] ?? {};
    const report = await runCrashes({
      worker: new URL("worker.mjs", inject("crashWorkers")),
      open: openCrashStore,
      workload,
      kills: isKillPoint,
      ...world,
    } as Parameters<typeof runCrashes>[0]);
    expect(report).toMatchObject({ broken: [], outputs });
    expect(report.cases).toBeGreaterThan(1);
  });
});
