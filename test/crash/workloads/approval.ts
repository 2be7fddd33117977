import {
  formatRunId,
  formatTaskId,
  type Event,
  type Mail,
  type MailBody,
} from "../../../src/kernel/index.ts";
import { servedTool } from "../../../src/testing/served-call.ts";
import { servedAgent, use } from "../served-agent.ts";
import { untilEvent } from "../until-event.ts";
import { toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("approval");

/**
 * A run that waits for a person in another process: first for the approval of a call with changed arguments, then for
 * two signals of one name. The second signal is sent after the first was handled, so that mail that is handled twice is
 * detected.
 */
export const approval: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    servedAgent(server, {
      name: "clerk",
      tools: ["book", { ...servedTool(server, "pay"), needsApproval: () => true }],
      run: async (ctx) => {
        const paid = await use(ctx, "pay", { amount: 100 });
        const first = await ctx.waitForSignal("stamp");
        await use(ctx, "book", { first: first ?? null });
        const second = await ctx.waitForSignal("stamp");
        return { paid, first: first ?? null, second: second ?? null };
      },
    }),
  ],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    return [runId];
  },
  outputs: [{ paid: { answer: { with: { amount: 90 } } }, first: "first", second: "second" }],
  world: {
    branches: 1,
    answering: ({ name, body }) => toolAnswer(name, body),
    visitor: async ({ store, signal }) => {
      const request = await untilEvent(store, runId, ({ type }) => type === "approval_request", signal);
      if (request.type !== "approval_request") throw new Error("the event is not an approval_request");
      const { approvalId } = request.data;
      const decision = { decision: "approved", input: { amount: 90 }, by: "a person" } as const;
      await store.mailbox.put(mail("decision", { type: "approval", approvalId, decision }));
      await store.mailbox.put(mail("first", stamp("first")));
      await untilEvent(store, runId, (event) => isEndOf(event, "book"), signal);
      await store.mailbox.put(mail("second", stamp("second")));
    },
  },
};

function stamp(value: string): MailBody {
  return { type: "resolve", taskId: formatTaskId(0), wait: "signal stamp", value };
}

function isEndOf(event: Event, tool: string): boolean {
  return event.type === "tool_execution_end" && event.data.toolName === tool;
}

function mail(id: string, body: MailBody): Mail {
  return { id, runId, from: "a person", at: 1, body };
}
