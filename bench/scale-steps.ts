import type { Runtime } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";

/** The result of each step. */
export const kilobyte = { text: "x".repeat(1_000) };

/** Steps per second from the first step of the runs to the last. All runs have started before the first step. */
export async function timeSteps(runtime: Runtime, name: string, runs: number, each: number): Promise<number> {
  const start = Promise.withResolvers<void>();
  let [started, began, ended] = [0, 0, 0];
  const agent: HostedAgent = {
    id: formatAgentId({ name }),
    run: async (ctx) => {
      if (++started === runs) {
        began = performance.now();
        start.resolve();
      }
      await start.promise;
      for (let index = 0; index < each; index++) await ctx.step("work", async () => kilobyte);
      ended = performance.now();
      return "done";
    },
  };
  await submitAll(runtime, agent, runs);
  return (runs * each) / ((ended - began) / 1_000);
}

/** Starts so many runs of an agent at once and waits for their results. */
export async function submitAll(runtime: Runtime, agent: HostedAgent, runs: number): Promise<void> {
  const handles = await Promise.all(Array.from({ length: runs }, () => runtime.submit(agent, null)));
  await Promise.all(handles.map((run) => run.result()));
}
