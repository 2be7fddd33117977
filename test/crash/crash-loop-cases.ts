import { test } from "vitest";
import { formatRunId } from "../../src/kernel/index.ts";
import { deadly, endOf, loopOf, type DeadlySite } from "./deadly-site.ts";

/** Calls a function with a new site. */
type OnSite = (check: (site: DeadlySite) => Promise<void>) => Promise<void>;

/** What every store and every engine must do with a run that kills its process. */
export function crashLoopCases(onSite: OnSite): void {
  crashLoopCore(onSite, ["tool", "model", "code"]);

  test("L7: a run that kills its process completes if it records a step between the crashes, although it crashes nine times in all", ({
    expect,
  }) =>
    onSite(async ({ workUntilDone, events }) => {
      expect(await workUntilDone("steps")).toBe(9);
      expect(endOf(await events(deadly))).toMatchObject({ status: "completed", output: "survived" });
    }));

  test("L7: a run that kills its process completes after its crash loop if it is resumed with code that does not kill the process", ({
    expect,
  }) =>
    onSite(async ({ workUntilDone, attempts, events }) => {
      await workUntilDone("tool");
      expect(await workUntilDone("nowhere")).toBe(0);
      expect((await attempts()).at(-1)).toBe("nowhere");
      expect(endOf(await events(deadly))).toMatchObject({ status: "completed", output: "survived" });
    }));
}

/** The cases that depend on how a store counts recoveries. `npm test` runs only these on further stores and engines. */
export function crashLoopCore(onSite: OnSite, places: readonly string[] = ["model"]): void {
  test.for(places)(
    "L7: a run whose %s kills its process is paused at its fifth recovery, ends no task, and other runs complete",
    (place, { expect }) =>
      onSite(async ({ workUntilDone, attempts, events, summary }) => {
        expect(await workUntilDone(place)).toBe(5);
        expect(await attempts()).toEqual(Array.from({ length: 5 }, () => place));
        const log = await events(deadly);
        expect(loopOf(log)).toMatchObject({ limit: 5, unknown: [] });
        expect(loopOf(log)?.ended).toHaveLength(5);
        const call = { tool: { kind: "tool", name: "explode" }, model: { kind: "model" } }[place];
        expect(loopOf(log)?.calls).toMatchObject(call === undefined ? [] : [{ taskId: "t0", ...call }]);
        expect(log.filter(({ type }) => type === "task_end" || type === "run_end")).toEqual([]);
        expect(await summary(deadly)).toMatchObject({ status: "paused", waitsFor: ["crash_loop"] });
        expect(await summary(formatRunId("peaceful"))).toMatchObject({ status: "completed" });
        // B3: each model call that was cut off is charged.
        const lost = log.filter(({ type }) => type === "budget_lost");
        expect(lost.length).toBe(place === "model" ? 5 : 0);
      }),
  );

  test("L7: a run that kills its process is paused although the process dies before the pause of the fifth recovery is written", ({
    expect,
  }) =>
    onSite(async ({ work, workUntilDone, attempts, events }) => {
      for (let count = 0; count < 5; count++) expect(await work("tool")).toMatchObject({ kind: "failed" });
      expect(await work("pause")).toMatchObject({ kind: "failed" });
      expect(await workUntilDone("tool")).toBe(0);
      expect(await attempts()).toEqual([...Array.from({ length: 5 }, () => "tool"), "pause"]);
      expect(loopOf(await events(deadly))?.ended).toHaveLength(5);
    }));
}
