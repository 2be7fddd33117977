import { formatRunId } from "../../../src/kernel/index.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";
import { hired } from "./spawn-tree.ts";

const runId = formatRunId("deadline");

/**
 * A parent and its child have the same deadline. The parent only awaits the child, which works and then waits until the
 * deadline. The parent must never complete, whichever of the two tasks notices the deadline first and whenever the
 * worker dies. The restarts decide how much the child has done by then.
 */
export const deadline: Workload = {
  agents: (server) => {
    const child = servedAgent(server, {
      name: "digger",
      tools: ["dig"],
      run: async (ctx) => {
        for (let count = 0; count < 5; count++) await use(ctx, "dig");
        await ctx.waitForSignal("never");
      },
    });
    const parent = servedAgent(server, {
      name: "foreman",
      subAgents: [child],
      run: async (ctx) => {
        await ctx.join(hired(await ctx.spawn(child.id, null)));
        return "the parent continued after its deadline";
      },
    });
    return [parent];
  },
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId, budget: { deadlineMs: 1_000 } });
    const { status } = await run.result();
    if (status !== "deadline_exceeded")
      throw new Error(`the run ended as ${status} instead of deadline_exceeded`);
    return [runId];
  },
  outputs: [null],
  world: { branches: 1, mayExhaust: true, answering: ({ name, body }) => toolAnswer(name, body) },
};
