import {
  formatRunId,
  type JsonObject,
  type SpawnOutcome,
  type TaskHandle,
} from "../../../src/kernel/index.ts";
import { callServer, type ServerAddress } from "../../../src/testing/served-call.ts";
import { loop, servedAgent, use } from "../served-agent.ts";
import { lengthOf, modelAnswer, toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("spawn-tree");

/**
 * Three levels of tasks: the root spawns a lead, which runs two branches concurrently and spawns two sub-agents at the
 * same time.
 */
export const spawnTree: Workload = {
  agents: (server) => {
    const hand = servedAgent(server, {
      name: "hand",
      tools: ["dig"],
      run: async (ctx) => {
        const text = await loop(ctx, `dig at ${JSON.stringify(ctx.input)}`);
        return { text, at: ctx.input };
      },
    });
    const lead = servedAgent(server, {
      name: "lead",
      tools: ["survey"],
      subAgents: [hand],
      run: async (ctx) => {
        await ctx.parallel({
          above: (branch) => use(branch, "survey"),
          below: (branch) => branch.step("map", ({ idempotencyKey: key }) => map(server, key)),
        });
        const left = hired(await ctx.spawn(hand.id, "left"));
        const right = hired(await ctx.spawn(hand.id, "right"));
        const ends = await ctx.joinAll([left, right]);
        return ends.map(({ output }) => output);
      },
    });
    const root = servedAgent(server, {
      name: "root",
      tools: ["report"],
      subAgents: [lead],
      run: async (ctx) => {
        const { output } = await ctx.join(hired(await ctx.spawn(lead.id, null)));
        await use(ctx, "report", { output });
        return output;
      },
    });
    return [root];
  },
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId, spawnBudget: { maxAgents: 4 } });
    await run.result();
    return [runId];
  },
  outputs: [
    [
      { text: "dug", at: "left" },
      { text: "dug", at: "right" },
    ],
  ],
  world: {
    branches: 2,
    // The ends of the two branches of the lead have no fixed order.
    ignore: ["step_end"],
    answering: ({ name, body }) => {
      if (name !== "model") return toolAnswer(name, body);
      const messages = lengthOf(body);
      return modelAnswer(
        messages,
        messages === 1 ? { calls: [{ name: "dig", input: { deep: true } }] } : { text: "dug" },
      );
    },
  },
};

async function map(server: ServerAddress, key: string): Promise<JsonObject> {
  return { ...(await callServer(server, { name: "map", key, body: null })) };
}

export function hired(outcome: SpawnOutcome): TaskHandle {
  if (outcome.kind === "refused") throw new Error(`the task was refused a seat: ${outcome.reason}`);
  return outcome.handle;
}
