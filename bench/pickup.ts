import { openRuntime, sha256 } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";
import { startWriter } from "./stall.ts";

/** From the kill of a worker in the middle of a run to the first step another worker takes in it. */
export async function pickupMs(path: string): Promise<number> {
  const store = await sqliteStore({ path, hash: sha256, durability: "normal" });
  const runtime = await openRuntime({ store });
  const writer = await startWriter({ path, name: "victim", steps: 1_000_000, restMs: 0 });
  const taken = Promise.withResolvers<number>();
  let isTaken = false;
  const agent: HostedAgent = {
    id: formatAgentId({ name: "victim" }),
    run: async (ctx) => {
      for (;;) {
        await ctx.step("work", async () => {
          taken.resolve(performance.now());
          isTaken = true;
          return { text: "mine" };
        });
        if (isTaken) return "done";
      }
    },
  };
  runtime.register(agent);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const killedAt = performance.now();
  process.kill(writer.pid, "SIGKILL");
  await writer.done;
  const tookAt = await taken.promise;
  await runtime.close();
  return tookAt - killedAt;
}
