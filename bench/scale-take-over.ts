import type { ScaleSite } from "./scale-agent.ts";
import { ScaleFleet } from "./scale-fleet.ts";
import type { Row } from "./row.ts";

/** Runs of the worker that is killed. */
const runs = 16;

interface TakeOverOptions {
  /** What distributes the runs, for the name of the row. */
  readonly engine: string;
  readonly url: string;
  readonly leaseMs: number;
  readonly kills: number;
  /** Longest time, in seconds. */
  readonly goal: number;
  /** If given, Restate distributes the runs. */
  readonly site?: ScaleSite;
}

/** The longest time from the kill of a worker until all its runs have continued in another one. */
export async function takeOver({ engine, url, leaseMs, kills, goal, site }: TakeOverOptions): Promise<Row> {
  const setup = { leaseMs, concurrency: runs, callMs: 50, ...(site !== undefined && { site }) };
  const fleet = await ScaleFleet.open(url, setup);
  const seconds: number[] = [];
  try {
    await fleet.start("worker-0");
    await fleet.submit(runs);
    for (let kill = 0; kill < kills; kill++) {
      await fleet.untilWorking(`worker-${kill}`, runs);
      await fleet.start(`worker-${kill + 1}`);
      await fleet.kill(`worker-${kill}`);
      const began = performance.now();
      await fleet.untilContinued(await fleet.commits());
      seconds.push((performance.now() - began) / 1_000);
    }
  } finally {
    await fleet.close();
  }
  return {
    name: `${engine}: take-over of ${runs} runs after a kill, lease of ${leaseMs / 1_000} s, longest of ${kills}`,
    value: Math.max(...seconds),
    unit: "s",
    against: null,
    goal: { atMost: goal },
  };
}
