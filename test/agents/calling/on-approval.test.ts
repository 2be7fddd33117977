import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Agent, openRuntime, tool, type PendingApproval } from "../../../src/entries/index.ts";
import type { ApprovalDecision, Runtime } from "../../../src/kernel/index.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { setUp, settle } from "../../runtime/runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

function payer(script: readonly ScriptStep[] = [pays(7), "Paid."]) {
  const paid: number[] = [];
  const pay = tool({
    name: "pay",
    description: "Pays.",
    inputSchema: z.object({ euros: z.number() }),
    needsApproval: true,
    execute: async ({ euros }) => {
      paid.push(euros);
      return "ok";
    },
  });
  return { paid, agent: new Agent({ name: "payer", model: scriptedModel(script), tools: [pay] }) };
}

function pays(...euros: number[]): ScriptStep {
  return { toolCalls: euros.map((each) => ({ name: "pay", input: { euros: each } })) };
}

describe('onApproval: "return"', () => {
  test.each(twoStores)(
    'invoke() with onApproval: "return" returns the questions, and another process answers and gets the result (%s)',
    async (_name, prepare) => {
      const open = await prepare();
      const first = await openRuntime({ store: await open() });
      const result = await payer().agent.invoke("Pay 7.", { runtime: first, onApproval: "return" });
      if (result.status !== "waiting") throw new Error(`the run is ${result.status}`);
      const { pendingApprovals, runId, sessionId } = result;
      expect(pendingApprovals).toMatchObject([
        { kind: "tool_call", toolName: "pay", input: { euros: 7 }, taskId: "t0", agentId: "payer" },
      ]);
      expect(sessionId).toBe(result.run.sessionId);
      await first.close();

      const second = await openRuntime({ store: await open() });
      const { agent, paid } = payer(["Paid."]);
      second.register(agent);
      const run = await second.find(runId);
      expect(await run?.pendingApprovals()).toEqual(pendingApprovals);
      await run?.approve(pendingApprovals[0]?.approvalId ?? "", { decision: "approved" });
      expect(await run?.result()).toMatchObject({ status: "completed", output: "Paid." });
      expect(await run?.pendingApprovals()).toEqual([]);
      expect(paid).toEqual([7]);
      await second.close();
    },
  );

  test('invoke() with onApproval: "return" returns the result of a run that needs no person', async () => {
    const { agent } = payer(["Nothing to pay."]);
    expect(await agent.invoke("?", { onApproval: "return" })).toMatchObject({
      status: "completed",
      output: "Nothing to pay.",
    });
  });

  test('invoke() with onApproval: "return" returns once with all questions of a turn, and its handle has the type of the schema', async () => {
    const { agent, paid } = payer([pays(1, 2), '{"total":3}']);
    const result = await agent.invoke("Pay.", {
      onApproval: "return",
      output: z.object({ total: z.number() }),
    });
    if (result.status !== "waiting") throw new Error(`the run is ${result.status}`);
    expect(result.pendingApprovals.map(({ input }) => input)).toEqual([{ euros: 1 }, { euros: 2 }]);
    for (const { approvalId } of result.pendingApprovals)
      await result.run.approve(approvalId, { decision: "approved" });
    const end = await result.run.result();
    expect(end.status === "completed" && end.output.total).toBe(3);
    expect(paid.toSorted((one, other) => one - other)).toEqual([1, 2]);
  });
});

describe("onApproval with a handler function", () => {
  test("invoke() asks the onApproval handler about each question once and continues with its decisions", async () => {
    const { agent, paid } = payer([pays(1, 2), pays(3), "Done."]);
    const asked: PendingApproval[] = [];
    const result = await agent.invoke("Pay.", {
      onApproval: async (request): Promise<ApprovalDecision> => {
        asked.push(request);
        return (request.input as { euros: number }).euros === 2
          ? { decision: "denied", reason: "too much" }
          : { decision: "approved" };
      },
    });
    expect(result).toMatchObject({ status: "completed", output: "Done." });
    expect(asked).toHaveLength(3);
    expect(paid).toEqual([1, 3]);
    expect(result.toolCalls.map(({ status }) => status)).toEqual(["ok", "denied", "ok"]);
  });

  test("an onApproval handler that throws denies the call, and the model sees the reason", async () => {
    const { agent, paid } = payer();
    const { toolCalls } = await agent.invoke("Pay 7.", {
      onApproval: () => {
        throw new Error("no terminal");
      },
    });
    expect(paid).toEqual([]);
    expect(toolCalls).toMatchObject([{ status: "denied" }]);
    expect(JSON.stringify(toolCalls[0]?.output)).toContain("no terminal");
  });

  test("an invalid decision of the onApproval handler fails invoke() and names the question", async () => {
    const { agent } = payer();
    const answer = (() => true) as unknown as () => ApprovalDecision;
    await expect(agent.invoke("Pay 7.", { onApproval: answer })).rejects.toThrow(
      /the decision on .* is true/u,
    );
  });

  test("stream() asks the onApproval handler, also if only the text of the stream is read", async () => {
    const { agent, paid } = payer();
    const stream = agent.stream("Pay 7.", { onApproval: () => ({ decision: "approved" }) });
    let text = "";
    for await (const piece of stream.text()) text += piece;
    expect(text).toBe("Paid.");
    expect(paid).toEqual([7]);
  });
});

describe("onApproval", () => {
  test("onApproval is refused if its value is unknown, and submit() and stream() refuse values that they cannot support", async () => {
    const { agent } = payer();
    const bad = { onApproval: "ask" } as object;
    await expect(agent.invoke("?", bad)).rejects.toThrow('invalid onApproval "ask" of invoke()');
    await expect(agent.submit("?", { onApproval: "return" } as object)).rejects.toThrow(
      'invalid onApproval "return" of submit()',
    );
    expect(() => agent.stream("?", { onApproval: "return" } as object)).toThrow(
      'invalid onApproval "return" of stream()',
    );
  });
});

describe("timeoutWhileWaiting", () => {
  const end = async (runtime: Runtime, clock: FakeClock, timeoutWhileWaiting: boolean) => {
    const { agent, paid } = payer();
    const waiting = await agent.invoke("Pay 7.", {
      runtime,
      timeoutMs: 1_000,
      timeoutWhileWaiting,
      onApproval: "return",
    });
    if (waiting.status !== "waiting") throw new Error(`the run is ${waiting.status}`);
    await clock.advance(60_000);
    const [question] = await waiting.run.pendingApprovals();
    if (question !== undefined) await waiting.run.approve(question.approvalId, { decision: "approved" });
    await settle();
    return { ...(await waiting.run.result()), paid };
  };

  test("B5: timeoutMs does not end a run that waits for a person by default, because its clock stops", async () => {
    const { runtime, clock } = await setUp();
    expect(await end(runtime, clock, false)).toMatchObject({ status: "completed", paid: [7] });
  });

  test("B5: timeoutMs ends a run that waits for a person if the caller asks for that", async () => {
    const { runtime, clock } = await setUp();
    expect(await end(runtime, clock, true)).toMatchObject({ status: "deadline_exceeded", paid: [] });
  });

  test.each(twoStores)(
    "B5: a deadline applies although no process executes the run (%s)",
    async (_name, prepare) => {
      const open = await prepare();
      const clock = new FakeClock();
      const first = await openRuntime({ store: await open(), clock });
      const options = { timeoutMs: 1_000, timeoutWhileWaiting: true, onApproval: "return" } as const;
      const { runId } = await payer().agent.invoke("Pay 7.", { runtime: first, ...options });
      await first.close();
      await clock.advance(5_000);
      const second = await openRuntime({ store: await open(), clock });
      second.register(payer([]).agent);
      const run = await second.find(runId);
      const result = run?.result();
      await clock.advance(5_000);
      expect((await result)?.status).toBe("deadline_exceeded");
      await second.close();
    },
  );

  test("timeoutWhileWaiting is refused without a deadline, because it would have no effect", async () => {
    await expect(payer().agent.invoke("?", { timeoutWhileWaiting: true })).rejects.toThrow(
      "timeoutWhileWaiting of a run of payer has no effect without a deadline: set timeoutMs or budget.deadlineMs",
    );
  });
});
