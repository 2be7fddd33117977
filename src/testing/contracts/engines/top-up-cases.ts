import {
  readProperty,
  Transcript,
  userMessage,
  type HostedAgent,
  type RunContext,
  type RunHandle,
} from "../../../kernel/index.ts";
import { scriptedModel } from "../../scripted-model.ts";
import {
  agentOf,
  casesOf,
  eventOf,
  eventsOf,
  runIn,
  spawnChild,
  type EngineHarness,
} from "./engine-world.ts";

type ScriptedModel = ReturnType<typeof scriptedModel>;

/** Calls the model `turns` times. */
async function talk(ctx: RunContext, turns: number): Promise<string> {
  let last = "";
  for (let turn = 0; turn < turns; turn++) {
    const transcript = Transcript.of([userMessage(`turn ${turn}`)]);
    const { message } = await ctx.llm({ transcript });
    last = JSON.stringify(message.content);
  }
  return last;
}

/** Returns an agent with a budget of one turn that needs three turns, and asks for a top-up. */
function asking(model: ScriptedModel): HostedAgent {
  return agentOf("asker", (ctx) => talk(ctx, 3), {
    models: { main: model },
    budget: { maxTurns: 1 },
    onBudget: "ask",
  });
}

/** Returns the seats that are taken according to the events of a run, without the seat of the root. */
async function seatEvents(run: RunHandle): Promise<readonly string[]> {
  const events = await eventsOf(run);
  return events.flatMap(({ type, taskId }) => (type.startsWith("seat_") ? [`${taskId} ${type}`] : []));
}

/** Cases about `onBudget: "ask"`: a task that waits for money. */
export function topUpCases(harness: EngineHarness): void {
  const { expect } = harness;
  const declare = casesOf(harness);

  declare(
    "B5, onBudget: a task at its budget asks a person, and continues the same call after a top-up",
    async (world) => {
      const runtime = await world.open();
      const model = scriptedModel(["one", "two", "three"]);
      const run = await runtime.submit(asking(model), null);
      const [question] = await run.untilPersonIsNeeded();
      expect([question?.kind, question?.taskId, question?.input]).toEqual([
        "top_up",
        "t0",
        {
          taskId: "t0",
          name: "maxTurns",
          limit: 1,
          short: 1,
          amount: 1,
          message:
            "The budget of 1 turn does not cover the next call. Add 1 turn, so that the task continues?",
        },
      ]);
      const { status, waitsFor } = await run.summary();
      expect([status, waitsFor, model.calls.length]).toEqual(["waiting", ["person"], 1]);
      await run.topUp({ maxTurns: 2 });
      const result = await run.result();
      expect([result.status, result.turns, model.calls.length]).toEqual(["completed", 3, 3]);
      expect(await run.pendingApprovals()).toEqual([]);
      expect(await seatEvents(run)).toEqual(["t0 seat_pause", "t0 seat_recall"]);
      expect((await eventsOf(run)).some(({ type }) => type === "budget_exhausted")).toBe(false);
    },
  );

  declare(
    "B5, onBudget: a task asks again after a top-up that is too small, and ends if the person refuses",
    async (world) => {
      const runtime = await world.open();
      const model = scriptedModel(["one", "two"]);
      const run = await runtime.submit(asking(model), null);
      const first = await eventOf(run, "approval_request");
      await run.approve(first.data.approvalId, { decision: "approved" }, { limited: false });
      const second = await eventOf(run, "approval_request", 2);
      expect(second.data.approvalId === first.data.approvalId).toBe(false);
      await run.approve(second.data.approvalId, { decision: "denied", reason: "too much" });
      const { status, turns } = await run.result();
      expect([status, turns, model.calls.length]).toEqual(["budget_exhausted", 2, 2]);
      await run.topUp({ maxTurns: 1 });
      const third = await (await runIn(runtime, run)).result();
      expect([third.status, third.turns]).toEqual(["failed", 2]);
    },
  );

  declare(
    "H1, H5, onBudget: a child that waits for money frees its seat and is recalled after the top-up",
    async (world) => {
      const runtime = await world.open();
      const [poor, rich] = [scriptedModel(["one", "two"]), scriptedModel(["three"])];
      const child = agentOf("child", (ctx) => talk(ctx, 2), {
        models: { main: poor },
        budget: { maxTurns: 1 },
        onBudget: "ask",
      });
      const other = agentOf("other", (ctx) => talk(ctx, 1), { models: { main: rich } });
      const parent = agentOf(
        "parent",
        async (ctx) => {
          const waiting = await spawnChild(ctx, child);
          await ctx.waitForSignal("asked");
          const second = await ctx.join(await spawnChild(ctx, other));
          const first = await ctx.join(waiting);
          return [first.status, second.status];
        },
        { subAgents: [child, other], spawnBudget: { maxAgents: 2 } },
      );
      const run = await runtime.submit(parent, null);
      await eventOf(run, "seat_pause");
      await run.signal("asked");
      await eventOf(run, "task_end");
      const [question] = await run.untilPersonIsNeeded();
      expect(question?.taskId).toBe("t1");
      expect([poor.calls.length, rich.calls.length]).toEqual([1, 1]);
      await run.topUp({ maxTurns: 1 }, "t1");
      expect((await run.result()).output).toEqual(["completed", "completed"]);
      expect([poor.calls.length, rich.calls.length]).toEqual([2, 1]);
    },
  );

  declare("H5, onBudget: the next owner executes no code of a task that waits for money", async (world) => {
    const [first, second] = [scriptedModel(["one"]), scriptedModel(["two", "three"])];
    const one = await world.open("one");
    const run = await one.submit(asking(first), null);
    await run.untilPersonIsNeeded();
    const next = await world.takeOver(one, run, asking(second));
    await next.resume();
    const [question] = await next.untilPersonIsNeeded();
    expect([question?.kind, second.calls.length]).toEqual(["top_up", 0]);
    await next.topUp({ maxTurns: 5 });
    const { status, turns } = await next.result();
    expect([status, turns, first.calls.length, second.calls.length]).toEqual(["completed", 3, 1, 2]);
  });

  declare(
    "B6, onBudget: the task whose budget is used up asks for money, and its top-up recalls the child",
    async (world) => {
      const runtime = await world.open();
      const model = scriptedModel(["one", "two"]);
      const child = agentOf("child", (ctx) => talk(ctx, 2), { models: { main: model } });
      const parent = agentOf("parent", async (ctx) => (await ctx.join(await spawnChild(ctx, child))).status, {
        subAgents: [child],
        budget: { maxTurns: 1 },
        onBudget: "ask",
      });
      const run = await runtime.submit(parent, null);
      const [question] = await run.untilPersonIsNeeded();
      expect([question?.taskId, readProperty(question?.input, "taskId")]).toEqual(["t1", "t0"]);
      await run.approve(
        question?.approvalId ?? "",
        { decision: "approved", input: { maxTurns: 1 } },
        { limited: false },
      );
      expect((await run.result()).output).toBe("completed");
    },
  );

  declare(
    "C1, onBudget: a cancel ends a task that waits for money, and closes its question",
    async (world) => {
      const runtime = await world.open();
      const run = await runtime.submit(asking(scriptedModel(["one"])), null);
      await run.untilPersonIsNeeded();
      await run.cancel("not needed");
      expect((await run.result()).status).toBe("cancelled");
      expect(await run.pendingApprovals()).toEqual([]);
    },
  );

  declare(
    "B8, onBudget: an approval adds at most the amount that the agent lets callers add",
    async (world) => {
      const runtime = await world.open();
      const model = scriptedModel(["one", "two", "three"]);
      const run = await runtime.submit({ ...asking(model), topUp: { maxTurns: 2 } }, null);
      const [question] = await run.untilPersonIsNeeded();
      const id = question?.approvalId ?? "";
      const refused = await run
        .approve(id, { decision: "approved", input: { maxTurns: 3 } })
        .catch((error: unknown) => (error as { code?: string }).code);
      expect(refused).toBe("permission_denied");
      await run.approve(id, { decision: "approved", input: { maxTurns: 2 } });
      expect((await run.result()).status).toBe("completed");
    },
  );

  declare(
    "B5, onBudget: an attempt whose call waits too long for money ends, and another follows the top-up",
    async (world) => {
      const runtime = await world.open("one", { prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) } });
      const attempts: number[] = [];
      const request = { provider: "contract", model: "metered", inputTokens: 10, maxOutputTokens: 100 };
      const agent = agentOf(
        "employee",
        async (ctx) =>
          ctx.attempt("program", async (attempt) => {
            attempts.push(attempt.number);
            for (let call = 0; call < 3; call++)
              await attempt.metered({ ...request, topUpWaitMs: 0 }, async ({ outputLimit }) => ({
                value: null,
                usage: { inputTokens: 10, outputTokens: outputLimit },
              }));
            return "done";
          }),
        { budget: { maxCostUsd: 0.2 }, onBudget: "ask" },
      );
      const run = await runtime.submit(agent, null);
      const [question] = await run.untilPersonIsNeeded();
      expect([question?.kind, attempts]).toEqual(["top_up", [1]]);
      expect((await seatEvents(run)).at(-1)).toBe("t0 seat_pause");
      await run.topUp({ maxCostUsd: 1 });
      const { status, output } = await run.result();
      expect([status, output, attempts]).toEqual(["completed", "done", [1, 2]]);
    },
  );
}
