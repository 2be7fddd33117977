import { describe, expect, it } from "vitest";
import { rootTaskId, type Event } from "../../../src/kernel/index.ts";
import { workloads, type World } from "../crash-workloads.ts";
import { runWorkload, type WorkloadResult } from "../simulated-crash.ts";
import { deathsAt } from "../../effort.ts";

/** Number of calls of the workload to the outside. */
function callsOf(world: World): number {
  let sum = 0;
  for (const times of world.values()) sum += times;
  return sum;
}

/**
 * Returns the events that must not depend on the crash. Leaves out events that a recovery adds, and events whose order
 * depends on timing.
 */
function stableEvents({ events }: WorkloadResult): string[] {
  const ignored = new Set([
    "run_recover",
    "budget_lost",
    "seat_pause",
    "seat_yield",
    "seat_recall",
    "seat_grant",
    "spawn_wait",
    "spawn_start",
    "task_suspend",
    "task_wake",
  ]);
  return events
    .filter(({ type }) => !ignored.has(type))
    .map(({ type, taskId }) => `${taskId} ${type}`)
    .toSorted();
}

describe.each(Object.entries(workloads))("a run of the workload %s", (_name, workload) => {
  it("J1, J6, E1, E4: a run has the same output and events wherever its worker crashes, and repeats no recorded call", async () => {
    const calmWorld: World = new Map();
    const calm = await runWorkload(workload(calmWorld), { countCalls: () => callsOf(calmWorld) });
    expect(calm.status).toBe("completed");
    // Write 1 registers the worker, which has no run yet.
    for (let at = 2; at <= calm.writes; at++) {
      for (const when of deathsAt(at)) {
        const world: World = new Map();
        const life = await runWorkload(workload(world), { at, when, countCalls: () => callsOf(world) });
        const promises = {
          at,
          when,
          output: life.output,
          gaps: life.events.filter(({ seq }, index) => seq !== index),
          events: stableEvents(life),
          // J1, J6: the second worker makes the calls that were not recorded, and no others.
          callsAfterCrash: callsOf(world) - life.callsAtCrash,
          endedOnce: endedOnce(life.events),
          // B3: the run has spent what the calm run spends plus the unreported charges, to the nano-dollar.
          overspent: Math.round(((life.costUsd ?? 0) - (calm.costUsd ?? 0) - lostUsd(life.events)) * 1e9) + 0,
        };
        expect(promises).toEqual({
          at,
          when,
          output: calm.output,
          gaps: [],
          events: stableEvents(calm),
          callsAfterCrash: callsOf(calmWorld) - life.recordedAtCrash,
          endedOnce: true,
          overspent: 0,
        });
      }
    }
  });
});

function endedOnce(events: readonly Event[]): boolean {
  const ends = events.filter(({ type }) => type === "task_end").map(({ taskId }) => taskId);
  return new Set(ends).size === ends.length && ends.includes(rootTaskId);
}

function lostUsd(events: readonly Event[]): number {
  const lost = events.filter((event) => event.type === "budget_lost");
  return lost.reduce((sum, { data }) => sum + (data.costUsd ?? 0), 0);
}
