import { formatRunId, type JsonValue, type Store } from "../../../src/kernel/index.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("lost-race");

/** A branch takes a signal and loses the race. The code after the race must receive the signal. */
export const lostRace: Workload = {
  agents: (server) => [
    servedAgent(server, {
      name: "racer",
      tools: ["start", "deliver"],
      run: async (ctx) => {
        const { winner } = await ctx.race<JsonValue>({
          slow: async (branch) => {
            await branch.waitForSignal("news");
            return (await branch.waitForSignal("never")) ?? null;
          },
          fast: async (branch) => {
            await use(branch, "start");
            return (await branch.waitForSignal("go")) ?? null;
          },
        });
        const news = await ctx.waitForSignal("news");
        await use(ctx, "deliver");
        return [winner, news ?? null];
      },
    }),
  ],
  drive: async ({ runtime, store, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    for (const name of ["news", "go"])
      if (!(await isSent(store, name))) await run.signal(name, `signal ${name}`);
    await run.result();
    return [runId];
  },
  outputs: [["fast", "signal news"]],
  world: { branches: 2, answering: ({ name, body }) => toolAnswer(name, body) },
};

/** Whether an earlier life of the worker has sent the signal. */
async function isSent(store: Store, name: string): Promise<boolean> {
  const mail = await store.mailbox.read(runId);
  if (mail.some(({ body }) => body.type === "resolve" && body.wait.endsWith(name))) return true;
  for await (const event of store.events.read(runId))
    if (event.type === "task_signal" && event.data.name === name) return true;
  return false;
}
