import { describe, expect, test } from "vitest";
import { OrchestratorAgent, UserProxyAgent } from "../../src/index.ts";
import type { ApprovalDecision, Event } from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { until } from "../runtime/runtime-setup.ts";
import { company, resultsIn, type Company } from "./company.ts";
import { findRun } from "../runtime/find-run.ts";

const requests = (events: readonly Event[]) =>
  events.flatMap((event) => (event.type === "approval_request" ? [event.data] : []));

async function question({ events }: Company, runId: Event["runId"]) {
  await until(async () => requests(await events(runId)).length > 0);
  const [first] = requests(await events(runId));
  if (first === undefined) throw new Error("nobody was asked");
  return first;
}

describe("a user proxy", () => {
  test.each<[string, ApprovalDecision, string]>([
    ["says", { decision: "approved", input: "Blue.", by: "ada" }, "Blue."],
    ["says in a form", { decision: "approved", input: { colour: "blue" } }, '{"colour":"blue"}'],
    ["agrees to", { decision: "approved" }, "approved"],
    ["refuses", { decision: "denied", reason: "none of your business" }, "denied: none of your business"],
    ["refuses without a word", { decision: "denied" }, "denied"],
    ["leaves open", { decision: "skipped" }, "skipped"],
  ])("answers what the person %s", async (_what, decision, answer) => {
    const team = await company();
    const run = await team.runtime.submit(new UserProxyAgent({ name: "ada" }), "Which colour?");
    const { approvalId, input, toolName } = await question(team, run.runId);
    expect({ input, toolName }).toEqual({ input: { question: "Which colour?" }, toolName: "ask_human" });
    await run.approve(approvalId, decision);
    const { result, events } = await team.ended(run);
    expect(result).toMatchObject({ status: "completed", output: answer });
    const end = events.find(({ type }) => type === "task_end");
    expect(end?.data).toMatchObject({ metadata: { decision: decision.decision } });
  });

  test.each<[unknown]>([
    [{ decision: "deny" }],
    [{ decision: "yes" }],
    [{}],
    [{ approved: false }],
    [true],
    [null],
  ])("%j is no decision, and allows nothing wherever it comes from", async (said) => {
    const team = await company();
    const run = await team.runtime.submit(new UserProxyAgent({ name: "ada" }), "May I?");
    const { approvalId } = await question(team, run.runId);
    await expect(run.approve(approvalId, said as ApprovalDecision)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining('"approved" | "denied" | "skipped"'),
    });
    // As a program would that writes to the mailbox itself.
    const body = { type: "approval", approvalId, decision: said as ApprovalDecision } as const;
    await team.store.mailbox.put({ id: "forged", runId: run.runId, from: "ada", at: 0, body });
    expect((await team.ended(run)).result.output).toMatch(/^denied: /);
  });

  test("waits over a restart, for as long as it takes, as a sub-agent of whoever wants to know", async () => {
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
