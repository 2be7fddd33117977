import {
  Fault,
  formatRunId,
  rootTaskId,
  type Branch,
  type JsonValue,
  type Store,
} from "../../../src/kernel/index.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";
import { isSent } from "./lost-race.ts";
import { hired } from "./spawn-tree.ts";

const runId = formatRunId("failed-branches");

/**
 * A branch spawns a child, takes a signal and is abandoned: first by a race that fails, then by a `parallel` that stops
 * on a fault. The code after both must receive the signal, and each child must be cancelled with its branch.
 */
export const failedBranches: Workload = {
  agents: (server) => {
    const idle = servedAgent(server, {
      name: "idle",
      run: async (ctx) => (await ctx.waitForSignal("never")) ?? null,
    });
    const abandon = (run: (branches: Branches) => Promise<unknown>): Promise<string> => {
      const spawned = Promise.withResolvers<void>();
      const slow: Branch<JsonValue> = async (branch) => {
        hired(await branch.spawn(idle.id, null));
        spawned.resolve();
        await branch.waitForSignal("news");
        return (await branch.waitForSignal("never")) ?? null;
      };
      const failing: Branch<JsonValue> = async (branch) => {
        await use(branch, "start");
        await spawned.promise;
        await branch.waitForSignal("go");
        throw new Fault("tool_failed", "the branch failed");
      };
      return codeOf(run({ slow, failing }));
    };
    const racer = servedAgent(server, {
      name: "racer",
      tools: ["start", "deliver"],
      subAgents: [idle],
      run: async (ctx) => {
        const faults = [
          await abandon((branches) => ctx.race(branches)),
          await abandon((branches) => ctx.parallel(branches, { stopOnFault: true })),
        ];
        const news = await ctx.waitForSignal("news");
        await use(ctx, "deliver");
        return [faults, news ?? null];
      },
    });
    return [racer];
  },
  drive: async ({ runtime, store, agent }) => {
    const run = await runtime.submit(agent, "go", { runId, spawnBudget: { maxAgents: 3 } });
    if (!(await isSent(store, runId, "news"))) await run.signal("news", "signal news");
    for (let count = 1; count <= 2; count++)
      if (!(await isSent(store, runId, "go", count))) await run.signal("go", `signal go ${count}`);
    await run.result();
    await requireCancelled(store);
    return [runId];
  },
  outputs: [[["tool_failed", "tool_failed"], "signal news"]],
  world: { branches: 2, answering: ({ name, body }) => toolAnswer(name, body) },
};

type Branches = Readonly<Record<string, Branch<JsonValue>>>;

/** Throws if a child has ended otherwise than by the end of its branch. */
async function requireCancelled(store: Store): Promise<void> {
  for await (const { type, taskId, data } of store.events.read(runId))
    if (type === "task_end" && taskId !== rootTaskId && !data.failure?.message.includes("was abandoned"))
      throw new Error(`${taskId} ended with ${data.failure?.message ?? data.status}`);
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "none",
    (error: unknown) => Fault.from(error).code,
  );
}
