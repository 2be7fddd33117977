// A process that writes to a store: `writer.ts OPTIONS`, the options as JSON. Prints "ready" in its first step.
import { openRuntime, sha256 } from "reeve";
import { formatAgentId, type HostedAgent } from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";
import type { WriterOptions } from "./stall.ts";

const { path, name, steps, restMs } = JSON.parse(process.argv[2] ?? "{}") as WriterOptions;
const runtime = await openRuntime({ store: await sqliteStore({ path, hash: sha256, durability: "normal" }) });
const agent: HostedAgent = {
  id: formatAgentId({ name }),
  run: async (ctx) => {
    for (let index = 0; index < steps; index++) {
      await ctx.step("work", async () => {
        if (index === 0) console.log("ready");
        return { text: "x".repeat(1_000) };
      });
      if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
    }
    return "done";
  },
};
const run = await runtime.submit(agent, null);
await run.result();
await runtime.close();
