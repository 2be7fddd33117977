import { describe, expect, inject, test } from "vitest";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { runCrashes } from "../../src/testing/index.ts";
import { composedWorkloads } from "./composed-workloads.ts";
import { isComplete, killPoints } from "./kill-points.ts";
import { lifeWorkloads } from "./life-workloads.ts";

const kills = killPoints();

describe.each(Object.entries({ ...composedWorkloads, ...lifeWorkloads }))(
  "J1, J6, B1, B3, E1, E4, H1, H4: %s",
  (workload, { world, outputs }) => {
    test("a worker killed after a write, and again after the restart, leaves a run that ends as without the crash", async () => {
      const report = await runCrashes({
        worker: new URL("worker.mjs", inject("crashWorkers")),
        open: (path) => sqliteStore({ path, hash: sha256 }),
        ...world,
        workload,
        when: isComplete ? ["before", "after"] : ["after"],
        kills,
        again: (at) => 1 + ((at * 3) % 8),
      });
      expect(report).toMatchObject({ broken: [], outputs });
      expect(report.kills).toBeGreaterThan(report.cases);
    });
  },
);
