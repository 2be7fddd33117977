import { describe, expect, test } from "vitest";
import { OrchestratorAgent, UserProxyAgent } from "../../../src/entries/index.ts";
import type { ApprovalDecision, Event } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { company, resultsIn, type Company } from "../company.ts";
import { findRun } from "../../runtime/find-run.ts";

const requests = (events: readonly Event[]) =>
  events.flatMap((event) => (event.type === "approval_request" ? [event.data] : []));

async function question({ events }: Company, runId: Event["runId"]) {
  await until(async () => requests(await events(runId)).length > 0);
  const [first] = requests(await events(runId));
  if (first === undefined) throw new Error("the run ended without an approval request");
  return first;
}

describe("a UserProxyAgent", () => {
  test.each<[string, ApprovalDecision, string]>([
    ["answers", { decision: "approved", input: "Blue.", by: "ada" }, "Blue."],
    ["answers with JSON", { decision: "approved", input: { colour: "blue" } }, '{"colour":"blue"}'],
    ["approves", { decision: "approved" }, "approved"],
    [
      "denies with a reason",
      { decision: "denied", reason: "none of your business" },
      "denied: none of your business",
    ],
    ["denies without a reason", { decision: "denied" }, "denied"],
    ["skips", { decision: "skipped" }, "skipped"],
  ])(
    "the output of a UserProxyAgent reflects the decision when the person %s",
    async (_what, decision, answer) => {
      const team = await company();
      const run = await team.runtime.submit(new UserProxyAgent({ name: "ada" }), "Which colour?");
      const { approvalId, input, toolName } = await question(team, run.runId);
      expect({ input, toolName }).toEqual({ input: { question: "Which colour?" }, toolName: "ask_human" });
      await run.approve(approvalId, decision);
      const { result, events } = await team.ended(run);
      expect(result).toMatchObject({ status: "completed", output: answer });
      const end = events.find(({ type }) => type === "task_end");
      expect(end?.data).toMatchObject({ metadata: { decision: decision.decision } });
    },
  );

  test.each<[unknown]>([
    [{ decision: "deny" }],
    [{ decision: "yes" }],
    [{}],
    [{ approved: false }],
    [true],
    [null],
  ])(
    "approve() of a UserProxyAgent refuses the invalid decision %j, which counts as denied in the mailbox",
    async (said) => {
      const team = await company();
      const run = await team.runtime.submit(new UserProxyAgent({ name: "ada" }), "May I?");
      const { approvalId } = await question(team, run.runId);
      await expect(run.approve(approvalId, said as ApprovalDecision)).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining('"approved" | "denied" | "skipped"'),
      });
      // Imitates a program that writes directly to the mailbox.
      const body = { type: "approval", approvalId, decision: said as ApprovalDecision } as const;
      await team.store.mailbox.put({ id: "forged", runId: run.runId, from: "ada", at: 0, body });
      expect((await team.ended(run)).result.output).toMatch(/^denied: /);
    },
  );

  test("a UserProxyAgent as a sub-agent waits for its answer without a time limit and across a restart", async () => {
    const team = await company({ suspendAfterMs: 100 });
    const model = scriptedModel([
      { toolCalls: [{ name: "handoff_ada", input: { task: "Which colour?" } }] },
      "Blue it is.",
    ]);
    const ada = new UserProxyAgent({ name: "ada", description: "Knows what she likes." });
    const lead = new OrchestratorAgent({ name: "lead", model, subAgents: [{ agent: ada }] });
    let run = await team.runtime.submit(lead, "Paint the door.");
    const { approvalId } = await question(team, run.runId);
    await team.clock.advance(1_000_000);
    await team.runtime.close();
    const second = await team.open();
    second.register(lead);
    run = await findRun(second, run);
    await team.clock.advance(1_000_000);
    await run.approve(approvalId, { decision: "approved", input: "Blue." });
    expect((await run.result()).output).toBe("Blue it is.");
    expect(resultsIn(model)).toEqual(["Blue."]);
    expect(requests(await team.events(run.runId))).toHaveLength(1);
  });
});
