import { expect, test } from "vitest";
import { tool } from "../../../../src/entries/index.ts";
import {
  formatAgentId,
  type ApprovalRequest,
  type BeforeCall,
  type CallVerdict,
  type HostedAgent,
  type JsonValue,
} from "../../../../src/kernel/index.ts";
import { openPlace, places, toldOf, untilTold } from "./place.ts";

/** An agent that pays once. Its only check of tool calls decides with `decide`. */
function payer(decide: BeforeCall["decide"]) {
  const paid: JsonValue[] = [];
  const pay = tool({
    name: "pay",
    description: "Pays",
    inputSchema: { type: "object" } as const,
    execute: (input) => {
      paid.push(input);
      return "paid";
    },
  });
  const agent: HostedAgent = {
    id: formatAgentId({ name: "payer" }),
    tools: [pay],
    callPath: { tool: { before: [{ name: "limit", decide }] } },
    run: async (ctx) => {
      const { output } = await ctx.tool({ callId: "c", toolName: "pay", input: { amount: 1000 } });
      return output as unknown as JsonValue;
    },
  };
  return { agent, paid };
}

/** Returns a check that allows at most `amount`. It first edits larger amounts. */
const upTo =
  (amount: number, verdict: CallVerdict): BeforeCall["decide"] =>
  ({ sent }) =>
    (sent as { amount: number }).amount > amount ? { decision: "edit", input: { amount } } : verdict;

const unanswered: CallVerdict = {
  decision: "ask",
  by: "limit",
  reason: "much money",
  answer: () => new Promise(() => undefined),
};

test.each(places)(
  "%s: a call that hooks, guardrails and rules judge again after a restart runs with the arguments that they allowed",
  async (name) => {
    const place = await openPlace(name);
    const first = await (await place.restart()).submit(payer(upTo(500, unanswered)).agent, null);
    await untilTold(first, "approval_request");
    const { agent, paid } = payer(upTo(10, { decision: "allow" }));
    await place.restart(agent);
    expect((await (await place.find(first.runId)).result()).status).toBe("completed");
    expect(paid).toEqual([{ amount: 10 }]);
  },
);

test.each(places)(
  "%s: if checks ask about other arguments after a restart, the old question is withdrawn and a new one asked",
  async (name) => {
    const place = await openPlace(name);
    const first = await (await place.restart()).submit(payer(upTo(500, unanswered)).agent, null);
    await untilTold(first, "approval_request");
    const asked: ApprovalRequest[] = [];
    const { agent, paid } = payer(
      upTo(10, {
        decision: "ask",
        by: "limit",
        reason: "some money",
        answer: (request) => {
          asked.push(request);
          return { decision: "approved" };
        },
      }),
    );
    await place.restart(agent);
    const run = await place.find(first.runId);
    expect((await run.result()).status).toBe("completed");
    expect(asked.map(({ input }) => input)).toEqual([{ amount: 10 }]);
    expect(paid).toEqual([{ amount: 10 }]);
    const decisions = (await toldOf(run, "approval_decision")).map(({ data }) => data.decision);
    expect(decisions).toMatchObject([{ decision: "denied", by: "runtime" }, { decision: "approved" }]);
  },
);
