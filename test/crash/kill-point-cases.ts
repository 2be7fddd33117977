import { describe, expect, inject, test } from "vitest";
import { runCrashes } from "../../src/testing/index.ts";
import { openCrashStore } from "./crash-store.ts";
import { doWorkload } from "./do-workload.ts";
import { isFull } from "../effort.ts";
import { killPoints } from "./kill-points.ts";
import { objectWorkloads } from "./object-workloads.ts";
import { sagaWorkloads } from "./saga-workloads.ts";
import { workflowWorkloads } from "./workflow-workloads.ts";
import { workloads } from "./workloads/index.ts";

const known = { ...workloads, ...workflowWorkloads, ...sagaWorkloads, ...objectWorkloads };

/** The workloads of `npm run test:full`. */
const full = [
  "toolLoop",
  "approval",
  "spawnTree",
  "sleep",
  "largeValues",
  "tenants",
  "saga",
  "updates",
  "objects",
] as const;

/**
 * Kills workers before and after writes of workloads on a PostgreSQL store: of the workloads `chosen`, and with `npm run
 * test:full` of `full`.
 */
export function describeKillPoints(title: string, chosen: readonly string[]): void {
  const isKillPoint = killPoints();
  describe.each(isFull ? full : chosen)(`${title}: %s`, (workload) => {
    test("a worker that is killed around writes of every kind leaves a run that ends as it does without the crash", async () => {
      const { world, outputs } = known[workload] ?? {};
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
