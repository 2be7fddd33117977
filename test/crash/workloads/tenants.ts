import { formatRunId } from "../../../src/kernel/index.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";

const chosen = formatRunId("seat");

/** Two tenants choose the same id for runs of users of the same name. After every crash, neither sees the other's run. */
export const tenants: Workload = {
  agents: (server) => [
    servedAgent(server, { name: "clerk", tools: ["book"], run: (ctx) => use(ctx, "book", { seat: 1 }) }),
  ],
  drive: async ({ runtime, agent }) => {
    const acme = runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const other = runtime.forTenant({ tenantId: "other", userId: "ann" });
    const own = await acme.submit(agent, "go", { runId: chosen });
    const foreign = await other.submit(agent, "go", { runId: chosen });
    if (own.runId === foreign.runId) throw new Error("a view used the run of another tenant");
    if ((await acme.find(foreign.runId)) !== undefined)
      throw new Error("a view found the run of another tenant");
    if ((await acme.find(chosen))?.runId !== own.runId)
      throw new Error("a view did not find its run by the chosen id");
    const { runs: listed } = await acme.list();
    if (listed.some(({ runId }) => runId !== own.runId))
      throw new Error("a view listed the run of another tenant");
    for (const run of [own, foreign]) await run.result();
    return [own.runId, foreign.runId];
  },
  outputs: [{ answer: { with: { seat: 1 } } }, { answer: { with: { seat: 1 } } }],
  world: { branches: 2, answering: ({ name, body }) => toolAnswer(name, body) },
};
