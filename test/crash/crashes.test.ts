import { describe, expect, inject, test } from "vitest";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { runCrashes, type CrashOptions } from "../../src/testing/index.ts";
import { doWorkload } from "./do-workload.ts";
import { composedWorkloads } from "./composed-workloads.ts";
import { experimentWorkloads } from "./experiment-workloads.ts";
import { lifeWorkloads } from "./life-workloads.ts";
import { objectWorkloads } from "./object-workloads.ts";
import { sagaWorkloads } from "./saga-workloads.ts";
import { workflowWorkloads } from "./workflow-workloads.ts";
import { isFull } from "../effort.ts";
import { killPoints } from "./kill-points.ts";
import { forgetful } from "./workloads/forgetful.ts";
import { workloads } from "./workloads/index.ts";

const isKillPoint = killPoints();
const common = {
  worker: new URL("worker.mjs", inject("crashWorkers")),
  inProcess: doWorkload,
  open: (path) => sqliteStore({ path, hash: sha256 }),
} satisfies Partial<CrashOptions>;

const all = {
  ...workloads,
  ...composedWorkloads,
  ...lifeWorkloads,
  ...workflowWorkloads,
  ...sagaWorkloads,
  ...objectWorkloads,
  ...experimentWorkloads,
};

describe.each(Object.entries(all))("J1, J6, B1, B3, E1, E4, H1, H4: %s", (workload, { world, outputs }) => {
  test("a worker that is killed before or after any write leaves a run that ends as it does without the crash", async () => {
    // `npm test` kills every third of these workers twice.
    const again = (at: number, when: string): number | undefined =>
      when === "after" && (isFull || at % 3 === 0) ? 1 + ((at * 3) % 8) : undefined;
    const report = await runCrashes({ ...common, ...world, workload, kills: isKillPoint, again });
    expect(report).toMatchObject({ broken: [], outputs });
    expect(report.cases).toBeGreaterThan(isFull ? 8 : 0);
    expect(report.kills).toBeGreaterThan(isFull ? report.cases : 0);
  });
});

describe("runCrashes()", () => {
  test("runCrashes() reports calls that bypass the journal, and an output that differs from that without a crash", async () => {
    const { world } = forgetful;
    const report = await runCrashes({ ...common, ...world, workload: "forgetful", when: ["after"] });
    const found = new Set(report.broken.map(({ promise }) => promise));
    expect(found).toEqual(new Set(["in_flight_only", "same_output", "events"]));
    for (const { kills } of report.broken) expect(kills).toHaveLength(1);
  });

  test("runCrashes() reports a failing worker and does not throw, in another process and in this one", async () => {
    const { inProcess, ...inProcesses } = common;
    for (const options of [inProcesses, { ...inProcesses, inProcess }]) {
      const report = await runCrashes({ ...options, ...forgetful.world, workload: "no such work" });
      expect(report).toMatchObject({ cases: 0, broken: [{ promise: "finished", kills: [] }] });
      expect(report.broken[0]?.detail).toContain("there is no workload no such work");
    }
  });

  test("runCrashes() reports work in this process that does not finish within boundMs", async () => {
    const inProcess = (): Promise<never> => new Promise(() => {});
    const report = await runCrashes({ ...common, ...forgetful.world, workload: "", inProcess, boundMs: 1 });
    expect(report.broken[0]?.detail).toContain("the work did not finish within 1 ms");
  });

  test("runCrashes() reports work that does not finish within maxKills", async () => {
    const { world } = forgetful;
    const report = await runCrashes({
      ...common,
      ...world,
      workload: "forgetful",
      when: ["before"],
      maxKills: 2,
    });
    expect(report.broken.at(-1)?.detail).toContain("after 2 kills before a write");
  });

  test("runCrashes() reports no endless work if the worker is killed at write maxKills and this is not the last write", async () => {
    const kills = (at: number): boolean => at === 1_000;
    const report = await runCrashes({
      ...common,
      ...forgetful.world,
      workload: "forgetful",
      kills,
      maxKills: 1_000,
    });
    expect(report).toMatchObject({ broken: [], cases: 0 });
  });
});
