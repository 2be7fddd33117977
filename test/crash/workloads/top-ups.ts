import { formatRunId, type Mail, type MailBody } from "../../../src/kernel/index.ts";
import { loop, servedAgent } from "../served-agent.ts";
import { untilEvent } from "../until-event.ts";
import { lengthOf, modelAnswer, toolAnswer, type Workload } from "../workload.ts";

const runId = formatRunId("top-ups");

/**
 * A run whose budget pays for one of its three calls. The run asks for a top-up twice, without a seat. A person in
 * another process approves the first question, and tops the run up instead of answering the second question.
 */
export const topUps: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server) => [
    {
      ...servedAgent(server, {
        name: "beggar",
        tools: ["buy"],
        budget: { maxTurns: 1 },
        run: (ctx) => loop(ctx, "buy it"),
      }),
      onBudget: "ask",
    },
  ],
  drive: async ({ runtime, agent }) => {
    const run = await runtime.submit(agent, "go", { runId });
    await run.result();
    return [runId];
  },
  outputs: ["bought"],
  world: {
    branches: 1,
    answering: ({ name, body }) => {
      if (name !== "model") return toolAnswer(name, body);
      const messages = lengthOf(body);
      return modelAnswer(
        messages,
        messages < 5 ? { calls: [{ name: "buy", input: { messages } }] } : { text: "bought" },
      );
    },
    visitor: async ({ store, signal }) => {
      const asked = (count: number) => {
        const isAsked = (approvalId: string): boolean => approvalId.endsWith(`/${count}`);
        return untilEvent(
          store,
          runId,
          (event) => event.type === "approval_request" && isAsked(event.data.approvalId),
          signal,
        );
      };
      const first = await asked(0);
      if (first.type !== "approval_request") throw new Error("the event is not an approval_request");
      const { approvalId } = first.data;
      const decision = { decision: "approved", input: { maxTurns: 1 }, by: "a person" } as const;
      await store.mailbox.put(mail("decision", { type: "approval", approvalId, decision }));
      const { taskId } = await asked(1);
      await store.mailbox.put(mail("top-up", { type: "top_up", taskId, add: { maxTurns: 1 } }));
    },
  },
};

function mail(id: string, body: MailBody): Mail {
  return { id, runId, from: "a person", at: 1, body };
}
