import { formatRunId, Priority } from "../../../src/kernel/index.ts";
import { loop, servedAgent, use } from "../served-agent.ts";
import { lengthOf, modelAnswer, toolAnswer, type Workload } from "../workload.ts";
import { hired } from "./spawn-tree.ts";

const runId = formatRunId("preemption");

/**
 * A run with two seats. A LOW task holds the second seat. A new HIGH task preempts it during its second call, which the
 * server answers only after the HIGH task was spawned. When the HIGH task has ended, the LOW task is recalled.
 */
export const preemption: Workload = {
  agents: (server) => {
    const low = servedAgent(server, {
      name: "low",
      tools: ["sweep", "mop"],
      run: async (ctx) => {
        await use(ctx, "sweep");
        await use(ctx, "mop");
        return loop(ctx, "is it clean?");
      },
    });
    const high = servedAgent(server, {
      name: "high",
      tools: ["rescue"],
      run: (ctx) => use(ctx, "rescue"),
    });
    const root = servedAgent(server, {
      name: "warden",
      tools: ["hear", "hired"],
      subAgents: [low, high],
      run: async (ctx) => {
        const sweeper = hired(await ctx.spawn(low.id, null, { priority: Priority.LOW }));
        await use(ctx, "hear");
        const rescuer = hired(await ctx.spawn(high.id, null, { priority: Priority.HIGH }));
        await use(ctx, "hired");
        const ends = await ctx.joinAll([sweeper, rescuer]);
        return ends.map(({ status, output }) => ({ status, output }));
      },
    });
    return [root];
  },
  drive: async ({ runtime, agent }) => {
    const spawnBudget = { maxAgents: 2, allowPreempt: true };
    const run = await runtime.submit(agent, "go", { runId, spawnBudget });
    await run.result();
    return [runId];
  },
  outputs: [[{ status: "completed", output: "clean" }, { status: "completed" }]],
  world: {
    branches: 2,
    answering: ({ name, body }) => {
      if (name === "model") return modelAnswer(lengthOf(body), { text: "clean" });
      const answer = toolAnswer(name, body);
      if (name !== "mop") return answer;
      return {
        ...answer,
        hold: (book) => book.until((calls) => calls.some((call) => call.name === "hired")),
      };
    },
  },
};
