import { formatRunId, type Mail } from "../../../src/kernel/index.ts";
import { servedTool } from "../../../src/testing/served-call.ts";
import { servedAgent, use } from "../served-agent.ts";
import { toolAnswer, type Workload } from "../workload.ts";
import { untilEvent } from "../until-event.ts";

const runId = formatRunId("changing-tool");

/**
 * A run that waits for the approval of a tool. The tool's description changes in each process, as if a new version were
 * deployed after each crash. A person approves every question, so the process in which the last question was asked
 * executes the call. Apart from these questions, the log equals that of a run without a crash.
 */
export const changingTool: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    servedAgent(server, {
      name: "clerk",
      tools: [
        {
          ...servedTool(server, "pay"),
          description: `Pays, in ${server.caller.replace(/^.* life/, "life")}`,
          needsApproval: () => true,
        },
      ],
      run: async (ctx) => ({ paid: await use(ctx, "pay", { amount: 100 }) }),
    }),
  ],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    return [runId];
  },
  outputs: [{ paid: { answer: { with: { amount: 100 } } } }],
  world: {
    branches: 1,
    ignore: ["approval_request", "approval_decision", "task_suspend", "task_wake"],
    answering: ({ name, body }) => toolAnswer(name, body),
    visitor: async ({ store, signal }) => {
      let from = -1;
      for (;;) {
        const event = await untilEvent(
          store,
          runId,
          ({ type, seq }) => seq > from && (type === "approval_request" || type === "run_end"),
          signal,
        ).catch((error: unknown) => {
          // The worker has finished before this reader saw the end of the run.
          if (signal.aborted) return undefined;
          throw error;
        });
        if (event?.type !== "approval_request") return;
        from = event.seq;
        await store.mailbox.put(approvalOf(event.data.approvalId));
      }
    },
  },
};

function approvalOf(approvalId: string): Mail {
  const decision = { decision: "approved", by: "a person" } as const;
  return { id: approvalId, runId, from: "a person", at: 1, body: { type: "approval", approvalId, decision } };
}
