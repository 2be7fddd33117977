import { formatRunId } from "../../../src/kernel/index.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("unreadable-output");

/** A run whose reported output throws when it is read ends nevertheless. */
export const unreadableOutput: Workload = {
  agents: (server) => [
    servedAgent(server, {
      name: "reporter",
      tools: ["open", "look", "close", "lock"],
      run: async (ctx) => {
        ctx.report({
          output: () => {
            throw new Error("the output cannot be read");
          },
        });
        for (const name of ["open", "look", "close", "lock"]) await use(ctx, name);
        throw new TypeError("the work failed");
      },
    }),
  ],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    const { status } = await run.result();
    if (status !== "failed") throw new Error(`the run ended as ${status} instead of failed`);
    return [runId];
  },
  outputs: [null],
  world: { branches: 1, answering: ({ name, body }) => toolAnswer(name, body) },
};
