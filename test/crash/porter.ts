import { formatRunId, type HostedAgent, type RunId } from "../../src/kernel/index.ts";
import type { ServerAddress } from "../../src/testing/index.ts";
import { servedAgent, use } from "./served-agent.ts";

/** Three calls, one after the other: the middle one is where a worker is held. */
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

/** The n-th run that a worker submits. */
export function errandRun(worker: string, index: number): RunId {
  return formatRunId(`${worker}-${index}`);
}
