import { formatRunId } from "../../../src/kernel/index.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("sleeper");

/** Works, sleeps long enough to be suspended even on a slow machine, and works again. */
export const sleep: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    servedAgent(server, {
      name: "sleeper",
      tools: ["close", "open"],
      run: async (ctx) => {
        await use(ctx, "close");
        await ctx.sleepUntil((await ctx.now()) + 300);
        return use(ctx, "open");
      },
    }),
  ],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    return [runId];
  },
  outputs: [{ answer: { did: "open" } }],
  world: { branches: 1, answering: ({ name, body }) => toolAnswer(name, body) },
};
