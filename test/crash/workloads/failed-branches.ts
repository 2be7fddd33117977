import { Fault, formatRunId, type Branch, type JsonValue } from "../../../src/kernel/index.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";
import { isSent } from "./lost-race.ts";

const runId = formatRunId("failed-branches");

/**
 * A branch takes a signal and is abandoned, first by a race that fails, then by a `parallel` that stops on a fault. The
 * code after both must receive the signal.
 */
export const failedBranches: Workload = {
  agents: (server) => [
    servedAgent(server, {
      name: "racer",
      tools: ["start", "deliver"],
      run: async (ctx) => {
        const slow: Branch<JsonValue> = async (branch) => {
          await branch.waitForSignal("news");
          return (await branch.waitForSignal("never")) ?? null;
        };
        const failing: Branch<JsonValue> = async (branch) => {
          await use(branch, "start");
          await branch.waitForSignal("go");
          throw new Fault("tool_failed", "the branch failed");
        };
        const faults = [
          await codeOf(ctx.race({ slow, failing })),
          await codeOf(ctx.parallel({ slow, failing }, { stopOnFault: true })),
        ];
        const news = await ctx.waitForSignal("news");
        await use(ctx, "deliver");
        return [faults, news ?? null];
      },
    }),
  ],
  drive: async ({ runtime, store, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    if (!(await isSent(store, runId, "news"))) await run.signal("news", "signal news");
    for (let count = 1; count <= 2; count++)
      if (!(await isSent(store, runId, "go", count))) await run.signal("go", `signal go ${count}`);
    await run.result();
    return [runId];
  },
  outputs: [[["tool_failed", "tool_failed"], "signal news"]],
  world: { branches: 2, answering: ({ name, body }) => toolAnswer(name, body) },
};

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "none",
    (error: unknown) => Fault.from(error).code,
  );
}
