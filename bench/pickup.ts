import { openRuntime, sha256 } from "reeve";
import { formatAgentId, type Agent } from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";
import { startWriter } from "./stall.ts";

/** From the kill of a worker in the middle of a run to the first step another worker takes in it. */
export async function pickupMs(path: string): Promise<number> {
  const store = await sqliteStore({ path, hash: sha256, durability: "normal" });
  const runtime = await openRuntime({ store });
  const writer = await startWriter(path, "victim", 1_000_000);
  let killedAt = 0;
  let tookAt = 0;
  const agent: Agent = {
    id: formatAgentId({ name: "victim" }),
    run: async (ctx) => {
      for (;;) {
        await ctx.step("work", async () => {
          if (tookAt === 0) tookAt = performance.now();
          return { text: "mine" };
        });
        if (tookAt > 0) return "done";
      }
    },
  };
  runtime.register(agent);
  await new Promise((resolve) => setTimeout(resolve, 200));
  killedAt = performance.now();
  process.kill(writer.pid, "SIGKILL");
  await writer.done;
  while (tookAt === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await runtime.close();
  return tookAt - killedAt;
}
