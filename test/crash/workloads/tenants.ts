import { Fault, formatRunId } from "../../../src/kernel/index.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";

const [own, foreign] = [formatRunId("acme"), formatRunId("other")];

/** Two tenants with a user of the same name work at the same time. After every crash, neither sees the other's run. */
export const tenants: Workload = {
  agents: (server) => [
    servedAgent(server, { name: "clerk", tools: ["book"], run: (ctx) => use(ctx, "book", { seat: 1 }) }),
  ],
  drive: async ({ runtime, agent }) => {
    const acme = runtime.forTenant({ tenantId: "acme", userId: "ann" });
    const other = runtime.forTenant({ tenantId: "other", userId: "ann" });
    const runs = [
      await acme.submit(agent, "go", { runId: own }),
      await other.submit(agent, "go", { runId: foreign }),
    ];
    if ((await acme.find(foreign)) !== undefined) throw new Error("a view found the run of another tenant");
    const { runs: listed } = await acme.list();
    if (listed.some(({ runId }) => runId !== own)) throw new Error("a view listed the run of another tenant");
    await refused(acme.submit(agent, "x", { runId: foreign }));
    for (const run of runs) await run.result();
    return [own, foreign];
  },
  outputs: [{ answer: { with: { seat: 1 } } }, { answer: { with: { seat: 1 } } }],
  world: { branches: 2, answering: ({ name, body }) => toolAnswer(name, body) },
};

async function refused(call: Promise<unknown>): Promise<void> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => Fault.from(reason),
  );
  if (error?.code !== "not_found") throw new Error("a view used the run of another tenant");
}
