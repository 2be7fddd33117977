// A process that writes to a store: `writer.ts PATH AGENT STEPS`. Prints "ready" in its first step.
import { openRuntime, sha256 } from "reeve";
import { formatAgentId } from "reeve/kernel";
import { sqliteStore } from "reeve/sqlite";

const [path = "", name = "", count = "0"] = process.argv.slice(2);
const runtime = await openRuntime({ store: await sqliteStore({ path, hash: sha256, durability: "normal" }) });
const agent = {
  id: formatAgentId({ name }),
  run: async (ctx: Parameters<Parameters<typeof runtime.register>[0]["run"]>[0]) => {
    for (let index = 0; index < Number(count); index++) {
      await ctx.step("work", async () => {
        if (index === 0) console.log("ready");
        return { text: "x".repeat(1_000) };
      });
    }
    return "done";
  },
};
const run = await runtime.submit(agent, null);
await run.result();
await runtime.close();
