import { formatRunId } from "../../../src/kernel/index.ts";
import { loop, servedAgent } from "../served-agent.ts";
import { lengthOf, modelAnswer, toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("tight-budget");
/** Enough tokens for three calls, but not for one more that a crash loses. */
const maxTokens = 300;

/**
 * A run whose budget is exhausted by an unreported call. Then the run stops, and the billed amount is still within the cap.
 */
export const tightBudget: Workload = {
  agents: (server) => [
    servedAgent(server, {
      name: "miser",
      tools: ["buy"],
      budget: { maxTokens },
      run: (ctx) => loop(ctx, "buy it"),
    }),
  ],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    return [runId];
  },
  outputs: ["bought"],
  world: {
    branches: 1,
    mayExhaust: true,
    answering: ({ name, body }) => {
      if (name !== "model") return toolAnswer(name, body);
      const messages = lengthOf(body);
      return modelAnswer(
        messages,
        messages < 5 ? { calls: [{ name: "buy", input: { messages } }] } : { text: "bought" },
      );
    },
  },
};
