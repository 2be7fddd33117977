import { describe, expect, it } from "vitest";
import { rootTaskId, type Event } from "../../../src/kernel/index.ts";
import { workloads, type World } from "../crash-workloads.ts";
import { live, type Life } from "../simulated-crash.ts";

function total(world: World): number {
  let sum = 0;
  for (const times of world.values()) sum += times;
  return sum;
}

/** Events that a death adds, and those whose place among their neighbours depends on who was quicker. */
function told({ events }: Life): string[] {
  const extra = new Set([
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
    .filter(({ type }) => !extra.has(type))
    .map(({ type, taskId }) => `${taskId} ${type}`)
    .toSorted();
}

describe.each(Object.entries(workloads))("%s", (_name, workload) => {
  it("ends alike wherever its worker dies: nothing lost, nothing told twice, nothing recorded done again (J1, J6, E1, E4)", async () => {
    const still: World = new Map();
    const calm = await live(workload(still), { asked: () => total(still) });
    expect(calm.status).toBe("completed");
    // The first write is the worker saying that it is there; it has nothing to lose yet.
    for (let at = 2; at <= calm.writes; at++) {
      for (const when of ["before", "after"] as const) {
        const world: World = new Map();
        const life = await live(workload(world), { at, when, asked: () => total(world) });
        const promises = {
          at,
          when,
          output: life.output,
          gaps: life.events.filter(({ seq }, index) => seq !== index),
          told: told(life),
          // J1, J6: the second worker asks for what was not recorded, and for nothing else.
          askedAfter: total(world) - life.asked,
          endedOnce: endedOnce(life.events),
          // B3: spent = what the calm run spends + lost, to the nano-dollar.
          overspent: Math.round(((life.costUsd ?? 0) - (calm.costUsd ?? 0) - lostUsd(life.events)) * 1e9) + 0,
        };
        expect(promises).toEqual({
          at,
          when,
          output: calm.output,
          gaps: [],
          told: told(calm),
          askedAfter: total(still) - life.recorded,
          endedOnce: true,
          overspent: 0,
        });
      }
    }
  }, 60_000);
});

function endedOnce(events: readonly Event[]): boolean {
  const ends = events.filter(({ type }) => type === "task_end").map(({ taskId }) => taskId);
  return new Set(ends).size === ends.length && ends.includes(rootTaskId);
}

function lostUsd(events: readonly Event[]): number {
  const lost = events.filter((event) => event.type === "budget_lost");
  return lost.reduce((sum, { data }) => sum + (data.costUsd ?? 0), 0);
}
