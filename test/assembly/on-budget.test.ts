import { describe, expect, test } from "vitest";
import { answering } from "../../src/agents/calling/on-approval.ts";
import { Agent, openRuntime } from "../../src/entries/index.ts";
import { workflow } from "../../src/entries/workflow.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { withRuntime } from "./with-runtime.ts";

describe("onBudget", () => {
  test('B5: an agent with onBudget "ask" returns with the question, and a top-up continues its answer', () =>
    withRuntime(async (runtime) => {
      const model = scriptedModel(["Done."]);
      const agent = new Agent({ name: "clerk", model, budget: { maxTurns: 0 }, onBudget: "ask" });
      const waiting = await agent.invoke("File it.", { runtime, onApproval: "return" });
      if (waiting.status !== "waiting") throw new Error(`the status is ${waiting.status}`);
      expect(waiting.pendingApprovals).toMatchObject([
        { kind: "top_up", input: { name: "maxTurns", amount: 1 } },
      ]);
      await waiting.run.topUp({ maxTurns: 1 });
      const { status, output } = await waiting.run.result();
      expect([status, output, model.calls.length]).toEqual(["completed", "Done.", 1]);
    }));

  test("B5: the handler of onApproval is not asked a question about money", () =>
    withRuntime(async (runtime) => {
      const agent = new Agent({
        name: "clerk",
        model: scriptedModel(["Done."]),
        budget: { maxTurns: 0 },
        onBudget: "ask",
      });
      const asked: string[] = [];
      const run = await runtime.submit(agent, "File it.");
      const result = answering(run, ({ kind }) => {
        asked.push(kind);
        return { decision: "approved" };
      });
      const [question] = await run.untilPersonIsNeeded();
      await run.approve(question?.approvalId ?? "", { decision: "denied" });
      expect([(await result()).status, asked]).toEqual(["budget_exhausted", []]);
    }));

  test("B1, B5: an answer that was cut because the budget ran out is made again after the top-up", async () => {
    const runtime = await openRuntime({ prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) } });
    const model = scriptedModel([
      { text: "Once upon", stopReason: "length", usage: { inputTokens: 1, outputTokens: 100 } },
      { text: "Once upon a time.", usage: { inputTokens: 1, outputTokens: 200 } },
    ]);
    const agent = new Agent({ name: "teller", model, budget: { maxCostUsd: 0.1 }, onBudget: "ask" });
    const run = await runtime.submit(agent, "Tell a story.");
    await run.untilPersonIsNeeded();
    await run.topUp({ maxCostUsd: 1 });
    const { status, output, costUsd, turns } = await run.result();
    expect([status, output, costUsd, turns]).toEqual(["completed", "Once upon a time.", 0.3, 1]);
    await runtime.close();
  });

  test("B5: a workflow whose agent asks for money waits for the top-up of the agent", () =>
    withRuntime(async (runtime) => {
      const clerk = new Agent({ name: "clerk", model: scriptedModel(["Done."]) });
      const filing = workflow(
        "filing",
        { agents: [clerk], budget: { maxTurns: 0 }, onBudget: "ask" },
        async (ctx) => ctx.agent(clerk, "File it."),
      );
      const { runId } = await runtime.start(filing, null);
      const run = await runtime.find(runId);
      const [question] = (await run?.untilPersonIsNeeded()) ?? [];
      expect([question?.taskId, question?.input]).toMatchObject(["t1", { taskId: "t0" }]);
      await run?.approve(question?.approvalId ?? "", { decision: "approved" }, { limited: false });
      expect((await run?.result())?.output).toBe("Done.");
    }));

  test("an unknown value of onBudget is refused with the values that exist", () => {
    const options = { name: "clerk", model: scriptedModel(["Done."]), onBudget: "wait" } as never;
    expect(() => new Agent(options)).toThrow(/onBudget.*"ask".*"end"|onBudget.*ask, end/u);
  });
});
