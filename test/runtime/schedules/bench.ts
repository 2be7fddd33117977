import { onTestFinished } from "vitest";
import type { HostedAgent, RunSummary, Runtime } from "../../../src/kernel/index.ts";
import type { RuntimeOptions } from "../../../src/runtime/index.ts";
import { cronReader } from "../../../src/capabilities/schedules/cron-reader.ts";
import { agent, gate, settle, setUp, type Bench } from "../runtime-setup.ts";

export const minute = 60_000;
export const hour = 60 * minute;

/** A runtime on a memory store and a fake clock that reads cron expressions. */
export async function scheduleBench(options: RuntimeOptions = {}): Promise<Bench> {
  // The fake clock calls every poll of the engine.
  const bench = await setUp({ cron: async () => cronReader, pollMs: hour, ...options });
  onTestFinished(() => bench.runtime.close());
  return bench;
}

/** An agent that records its runs. With `hold`, a run ends only after `release`. */
export interface Porter {
  readonly agent: HostedAgent;
  /** The fire times of the runs that have started, in order. */
  readonly fires: number[];
  /** Lets the oldest run that is held end. */
  readonly release: () => Promise<void>;
}

export function porter(options: { readonly hold?: boolean; readonly name?: string } = {}): Porter {
  const fires: number[] = [];
  const held: PromiseWithResolvers<void>[] = [];
  const run: HostedAgent["run"] = async (ctx) => {
    fires.push(Number(ctx.facts.metadata["fireAt"]));
    if (options.hold !== true) return "done";
    const open = gate();
    held.push(open);
    await ctx.step("hold", async ({ signal }) => {
      signal.addEventListener("abort", () => open.resolve());
      await open.promise;
      return null;
    });
    ctx.check();
    return "done";
  };
  const release = async (): Promise<void> => {
    held.shift()?.resolve();
    await settle();
  };
  return { agent: agent(options.name ?? "porter", run), fires, release };
}

/** The runs of a schedule, oldest first. */
export async function runsOf(runtime: Runtime, schedule: string): Promise<readonly RunSummary[]> {
  const { runs } = await runtime.list({ metadata: { schedule }, limit: 500 });
  return runs.toReversed();
}
