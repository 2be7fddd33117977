import { formatRunId, type HostedAgent, type RunId } from "../../src/kernel/index.ts";
import type { ServerAddress } from "../../src/testing/index.ts";
import { servedAgent, use } from "./served-agent.ts";

/** Three tool calls in sequence. Tests hold a worker at the second one. */
export const errands = ["lift", "carry", "drop"] as const;

export function porter(server: ServerAddress): HostedAgent {
  return servedAgent(server, {
    name: "porter",
    tools: errands,
    run: async (ctx) => {
      for (const errand of errands) await use(ctx, errand);
      return "done";
    },
  });
}

/** Id of the run with this index that a worker submits. */
export function errandRun(worker: string, index: number): RunId {
  return formatRunId(`${worker}-${index}`);
}
