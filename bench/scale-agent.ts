import { setTimeout as pause } from "node:timers/promises";
import { formatAgentId, type HostedAgent } from "reeve/kernel";

/** Orders for a worker process of the scale benchmark. */
export interface ScaleWorkerOrders {
  readonly url: string;
  readonly schema: string;
  readonly workerId: string;
  readonly leaseMs: number;
  /** Maximum number of tasks that work at the same time. */
  readonly concurrency: number;
  /** Duration of the call that each step makes. 0 makes steps without a wait. */
  readonly callMs: number;
  /** If given, Restate distributes the runs. */
  readonly site?: ScaleSite;
}

/** How a worker process reaches Restate, and where it sends the port at which it accepts invocations. */
export interface ScaleSite {
  readonly ingressUrl: string;
  readonly service: string;
  readonly registerUrl: string;
  /** The public key of Restate. */
  readonly identityKey?: string;
}

/** An agent that records steps of 1 KB until its process ends. */
export function stepping(callMs: number): HostedAgent {
  const value = { text: "x".repeat(1_000) };
  return {
    id: formatAgentId({ name: "stepping" }),
    run: async (ctx) => {
      for (;;)
        await ctx.step("work", async () => {
          if (callMs > 0) await pause(callMs);
          return value;
        });
    },
  };
}
