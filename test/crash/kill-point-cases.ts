import { describe, expect, inject, test } from "vitest";
import { runCrashes } from "../../src/testing/index.ts";
import { openCrashStore } from "./crash-store.ts";
import { doWorkload } from "./do-workload.ts";
import { isFull } from "../effort.ts";
import { killPoints } from "./kill-points.ts";
import { workloads } from "./workloads/index.ts";

/**
 * Kills workers around the writes of workloads on a PostgreSQL store: of `chosen`, and in `npm run test:full` of six.
 */
export function describeKillPoints(title: string, chosen: readonly string[]): void {
  const isKillPoint = killPoints();
  const all = ["toolLoop", "approval", "spawnTree", "sleep", "largeValues", "tenants"];
  describe.each(isFull ? all : chosen)(`${title}: %s`, (workload) => {
    test("a worker killed before or after writes that differ in kind leaves a run that ends as without the crash", async () => {
      const { world, outputs } = workloads[workload] ?? {};
      const report = await runCrashes({
        worker: new URL("worker.mjs", inject("crashWorkers")),
        inProcess: doWorkload,
        open: openCrashStore,
        workload,
        kills: isKillPoint,
        ...world,
      } as Parameters<typeof runCrashes>[0]);
      expect(report).toMatchObject({ broken: [], outputs });
      expect(report.cases).toBeGreaterThan(0);
    });
  });
}
