import { formatRunId, type RunId, type Store } from "../../../src/kernel/index.ts";
import { loop, servedAgent } from "../served-agent.ts";
import { lengthOf, modelAnswer, toolAnswer, type Said, type Workload } from "../workload.ts";

const runId = formatRunId("origin");

function said(messages: number): Said {
  if (messages === 1) return { calls: [{ name: "sow", input: { field: 1 } }] };
  if (messages === 3) return { calls: [{ name: "reap", input: { field: 1 } }] };
  return { text: "reaped" };
}

/** A run, and a fork of it after the result of its first tool. */
export const fork: Workload = {
  agents: (server) => [
    servedAgent(server, { name: "farmer", tools: ["sow", "reap"], run: (ctx) => loop(ctx, "farm") }),
  ],
  drive: async ({ runtime, store, agent, pinned }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    const at = await seqAfterTool(store, runId);
    const forked = await pinned("forked", () => run.fork({ at }));
    await forked.result();
    return [runId, forked.runId];
  },
  outputs: ["reaped", "reaped"],
  world: {
    branches: 1,
    answering: ({ name, body }) =>
      name === "model" ? modelAnswer(lengthOf(body), said(lengthOf(body))) : toolAnswer(name, body),
  },
};

/** Last seq of the commit that records the first tool, because a fork contains whole commits. */
export async function seqAfterTool(store: Store, origin: RunId): Promise<number> {
  for await (const { steps = [], events = [] } of store.journal.read(origin)) {
    const last = events.at(-1);
    if (last !== undefined && steps.some(({ kind }) => kind === "tool")) return last.seq;
  }
  throw new Error(`${origin} has no recorded tool call`);
}
