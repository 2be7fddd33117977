import { formatRunId, type JsonValue, type RunId, type Store } from "../../../src/kernel/index.ts";
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
      if (!(await isSent(store, runId, name))) await run.signal(name, `signal ${name}`);
    await run.result();
    return [runId];
  },
  outputs: [["fast", "signal news"]],
  world: { branches: 2, answering: ({ name, body }) => toolAnswer(name, body) },
};

/** Whether earlier processes of the worker have sent the signal at least `count` times. */
export async function isSent(store: Store, to: RunId, name: string, count = 1): Promise<boolean> {
  const mail = await store.mailbox.read(to);
  let sent = mail.filter(({ body }) => body.type === "resolve" && body.wait.endsWith(name)).length;
  for await (const event of store.events.read(to))
    if (event.type === "task_signal" && event.data.name === name) sent++;
  return sent >= count;
}
