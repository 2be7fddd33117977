import { formatRunId, type HostedAgent, type JsonValue, type RunId } from "../../src/kernel/index.ts";
import { servedTool, type ServerAddress } from "../../src/testing/served-call.ts";
import { loop, servedAgent, use } from "../crash/served-agent.ts";
import { lengthOf, modelAnswer, toolAnswer } from "../crash/workload.ts";
import { hired } from "../crash/workloads/spawn-tree.ts";
import type { ServedAnswer } from "../../src/testing/index.ts";

/** Seats of a run of `clerk`: one for the run itself and two for its children. */
export const seats = 3;

/** Calls that a run has in flight at the same time at most. */
export const branches = 2;

/**
 * Work for a fleet: a model call with a tool, two children that do the same at once, a sleep, a call that a person approves,
 * and a last call.
 */
export function fleetAgents(server: ServerAddress): readonly [HostedAgent, HostedAgent] {
  const child = servedAgent(server, {
    name: "fleet-child",
    tools: ["dig"],
    run: (ctx) => loop(ctx, `dig at ${JSON.stringify(ctx.input)}`),
  });
  const clerk = servedAgent(server, {
    name: "fleet-clerk",
    tools: ["dig", "file", { ...servedTool(server, "pay"), needsApproval: () => true }],
    subAgents: [child],
    run: async (ctx) => {
      const first = await loop(ctx, "dig at the start");
      const left = hired(await ctx.spawn(child.id, "left"));
      const right = hired(await ctx.spawn(child.id, "right"));
      const ends = await ctx.joinAll([left, right]);
      await ctx.sleepUntil((await ctx.now()) + 700);
      await use(ctx, "pay", { amount: 5 });
      await use(ctx, "file");
      return [first, ...ends.map(({ output }) => output)];
    },
  });
  return [clerk, child];
}

/** The answer of the outside server. It depends on the call alone. */
export function fleetAnswer(name: string, body: JsonValue): ServedAnswer {
  if (name !== "model") return toolAnswer(name, body);
  const messages = lengthOf(body);
  const said = messages === 1 ? { calls: [{ name: "dig", input: { deep: true } }] } : { text: "dug" };
  return modelAnswer(messages, said);
}

export function fleetRun(index: number): RunId {
  return formatRunId(`fleet-${index}`);
}
