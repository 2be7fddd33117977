import { workflow } from "../../../src/entries/workflow.ts";
import { workload } from "../workload.ts";

interface World {
  /** Number of effective calls by idempotency key. */
  readonly ticks: Map<string, number>;
}

const everyMs = 5_000;
const times = 5;

/** A schedule that starts a run at each of its times, exactly once, while workers die and clocks drift. */
export const schedules = workload<World>("schedules", (seed) => ({
  workers: 1 + (seed % 3),
  world: () => ({ ticks: new Map() }),
  agents: ({ call, world }) => [
    workflow("tick", async (ctx) => {
      await ctx.step("tick", ({ idempotencyKey: key }) =>
        call("tick", () => void world.ticks.set(key, (world.ticks.get(key) ?? 0) + 1), { key }),
      );
      return null;
    }),
  ],
  load: async ({ runtime, sleep }) => {
    await runtime.schedules.create({
      name: "ticker",
      agent: "tick",
      input: null,
      everyMs,
    });
    await sleep(everyMs * times + 500);
    await runtime.schedules.remove("ticker");
    // A start that was on its way may still arrive.
    await sleep(6_000);
  },
  check: ({ runs, world }) => {
    const wrong: string[] = [];
    for (const { run } of runs) if (run.status !== "completed") wrong.push(`${run.runId} is ${run.status}`);
    // Each time of the schedule starts one run.
    const fired = runs.map(({ run }) => Number(run.metadata["fireAt"]));
    if (new Set(fired).size !== fired.length) wrong.push(`a time started two runs: ${fired.join(" ")}`);
    const [first = 0] = fired;
    if (fired.some((at) => (at - first) % everyMs !== 0))
      wrong.push(`fired off its times: ${fired.join(" ")}`);
    if (world.ticks.size !== runs.length) wrong.push(`${runs.length} runs ticked ${world.ticks.size} times`);
    return wrong;
  },
}));
