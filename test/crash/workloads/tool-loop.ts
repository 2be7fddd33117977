import { formatRunId } from "../../../src/kernel/index.ts";
import { loop, servedAgent } from "../served-agent.ts";
import { lengthOf, modelAnswer, toolAnswer, type Said, type Workload } from "../workload.ts";

const runId = formatRunId("tool-loop");
const tools = ["look", "weigh", "note"];

function said(messages: number): Said {
  if (messages === 1) return { calls: tools.map((name) => ({ name, input: { turn: 1 } })) };
  if (messages === 3) return { calls: tools.slice(1).map((name) => ({ name, input: { turn: 2 } })) };
  return { text: "weighed and noted" };
}

/** A model that calls three tools in parallel, then two, and then answers. */
export const toolLoop: Workload = {
  agents: (server) => [servedAgent(server, { name: "looper", tools, run: (ctx) => loop(ctx, "weigh it") })],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    return [runId];
  },
  outputs: ["weighed and noted"],
  world: {
    branches: 3,
    answering: ({ name, body }) =>
      name === "model" ? modelAnswer(lengthOf(body), said(lengthOf(body))) : toolAnswer(name, body),
  },
};
