import { formatRunId } from "../../../src/kernel/index.ts";
import { callServer } from "../../../src/testing/served-call.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("forgetful");

/**
 * A faulty workload that the harness must detect: its calls bypass `ctx`, and its output depends on how often its code
 * ran.
 */
export const forgetful: Workload = {
  agents: (server) => [
    servedAgent(server, {
      name: "forgetful",
      tools: ["note"],
      run: async (ctx) => {
        for (const key of ["one", "two"]) await callServer(server, { name: "leak", key, body: null });
        await use(ctx, "note");
        return server.caller.replace(/^.* life/, "life");
      },
    }),
  ],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    return [runId];
  },
  outputs: ["life 1"],
  world: { branches: 1, answering: ({ name, body }) => toolAnswer(name, body) },
};
