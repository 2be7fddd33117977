import { describe, expect, it } from "vitest";
import {
  Fault,
  Priority,
  Transcript,
  userMessage,
  type HostedAgent,
  type RunContext,
  type RunFacts,
  type TaskHandle,
} from "../../../src/kernel/index.ts";
import { getRunContext } from "../../../src/runtime/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, gate, setUp, settle, simpleTool, text, typesOf, until } from "../runtime-setup.ts";

async function hire(
  ctx: RunContext,
  who: HostedAgent,
  priority: Priority = Priority.NORMAL,
): Promise<TaskHandle> {
  const spawned = await ctx.spawn(who.id, null, { priority });
  if (spawned.kind === "refused") throw new Error(`refused: ${spawned.reason}`);
  return spawned.handle;
}

describe("a tool that suspends", () => {
  const askPerson = (lives: { count: number }) =>
    simpleTool({
      name: "ask",
      suspends: true,
      // A tool that suspends has no timeout, whatever its timeoutMs is.
      timeoutMs: 10,
      execute: async (_input, { ctx }) => {
        lives.count++;
        const before = await ctx.step("post the question", async () => 1);
        const answer = await ctx.waitForSignal("answer");
        return text(`${before} ${JSON.stringify(answer)}`);
      },
    });

  it("J7: a tool that suspends may wait without a time limit while its task is not in memory, and repeats none of its steps", async () => {
    const { runtime, clock, events } = await setUp({ suspendAfterMs: 100 });
    const lives = { count: 0 };
    const clerk = agent(
      "clerk",
      async (ctx) => (await ctx.tool({ callId: "1", toolName: "ask", input: {} })).output as never,
      { tools: [askPerson(lives)] },
    );
    const run = await runtime.submit(clerk, null);
    await settle();
    await clock.advance(60_000);
    await run.signal("answer", "yes");
    expect((await run.result()).output).toEqual({ type: "text", text: '1 "yes"' });
    expect(lives.count).toBe(2);
    const types = typesOf(await events(run.runId)).filter((type) => type.startsWith("tool_execution"));
    expect(types).toEqual(["tool_execution_start", "tool_execution_end"]);
  });

  it("H2: a tool that waits for a signal has no call in flight, so its task yields its seat at once", async () => {
    const { runtime, events } = await setUp();
    const clerk = agent(
      "clerk",
      async (ctx) => (await ctx.tool({ callId: "1", toolName: "ask", input: {} })).isError,
      { tools: [askPerson({ count: 0 })] },
    );
    const urgent = agent("urgent", async (ctx) => ctx.step("work", async () => "done"));
    const boss = agent(
      "boss",
      async (ctx) => {
        const low = await hire(ctx, clerk, Priority.LOW);
        await ctx.waitForSignal("it asks");
        const high = await hire(ctx, urgent, Priority.HIGH);
        return (await ctx.joinAll([low, high])).map(({ output }) => output);
      },
      { subAgents: [clerk, urgent] },
    );
    const run = await runtime.submit(boss, null, { spawnBudget: { maxAgents: 2, allowPreempt: true } });
    await settle();
    await run.signal("it asks");
    await until(async () => typesOf(await events(run.runId)).includes("seat_recall"));
    const types = typesOf(await events(run.runId));
    expect(types).not.toContain("seat_yield");
    expect(types).toContain("seat_pause");
    await run.signal("answer", "yes", "t1");
    expect((await run.result()).output).toEqual([false, "done"]);
  });
});

it("B1: a run stops at its next call when a provider billed above the reservation", async () => {
  const { runtime, events } = await setUp({ prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 1e-6 }) } });
  const usage = { inputTokens: 900_000, outputTokens: 900_000 };
  const model = scriptedModel([{ text: "dear", usage }, "never"]);
  const done: string[] = [];
  const talker = agent(
    "talker",
    async (ctx) => {
      for (const said of ["one", "two"]) {
        await ctx.llm({ transcript: Transcript.of([userMessage(said)]), maxOutputTokens: 10 });
        done.push(said);
      }
    },
    { models: { main: model } },
  );
  const run = await runtime.submit(talker, null, { budget: { maxCostUsd: 1 } });
  const { status, error: failure, costUsd } = await run.result();
  expect({ status, done, calls: model.calls.length }).toEqual({
    status: "budget_exhausted",
    done: ["one"],
    calls: 1,
  });
  expect(failure).toMatchObject({ code: "budget_exhausted", details: { dimension: "costUsd" } });
  // The billed amount is reported as spent.
  expect(costUsd).toBeCloseTo(1.8, 6);
  expect(typesOf(await events(run.runId))).toContain("budget_overrun");
  await run.topUp({ maxCostUsd: 10 });
  expect((await run.result()).status).toBe("completed");
});

it("J8: journal_warning is emitted once, also after a replay", async () => {
  const { runtime, clock, events } = await setUp({ suspendAfterMs: 100 });
  const walker = agent("walker", async (ctx) => {
    for (let step = 0; step < 5_001; step++) await ctx.random();
    await ctx.waitForSignal("go");
  });
  const run = await runtime.submit(walker, null);
  await until(async () => typesOf(await events(run.runId)).includes("task_suspend"));
  await clock.advance(101);
  await run.signal("go");
  await run.result();
  const warnings = (await events(run.runId)).filter(({ type }) => type === "journal_warning");
  expect(warnings.map(({ data }) => data)).toEqual([{ steps: 5_000 }]);
});

it("getRunContext() returns the facts of each of two parallel runs", async () => {
  const { runtime } = await setUp();
  const both = gate();
  let waiting = 0;
  const seen: Record<string, (RunFacts | undefined)[]> = {};
  const note = (who: string): void => void (seen[who] ??= []).push(getRunContext());
  const tool = simpleTool({
    name: "look",
    execute: async (_input, { facts }) => {
      const who = String(facts.userId);
      note(who);
      if (++waiting === 2) both.resolve();
      await both.promise;
      note(who);
      return text("seen");
    },
  });
  const worker = agent(
    "worker",
    async (ctx) => {
      const who = String(ctx.facts.userId);
      note(who);
      await ctx.tool({ callId: "1", toolName: "look", input: {} });
      await ctx.parallel({ branch: (branch) => branch.step("inside", async () => (note(who), null)) });
      ctx.signal.addEventListener("abort", () => undefined);
      await Promise.resolve().then(() => note(who));
      return ctx.facts.runId;
    },
    { tools: [tool] },
  );
  const runs = [];
  for (const userId of ["ada", "bob"])
    runs.push(await runtime.submit(worker, null, { userId, metadata: { userId } }));
  for (const [index, run] of runs.entries()) {
    const { runId, sessionId } = run;
    await run.result();
    const userId = ["ada", "bob"][index] ?? "";
    expect(seen[userId]).toEqual(
      Array.from({ length: 5 }, () => ({ tenantId: null, userId, runId, sessionId, metadata: { userId } })),
    );
  }
  expect(getRunContext()).toBeUndefined();
});

it("J5, H1: resume() restarts every child that the run needs, one after another if seats are missing", async () => {
  const { runtime, events } = await setUp({ runRetry: { maxRetries: 0 } });
  let healthy = false;
  const ran: string[] = [];
  const weak = agent("weak", async (ctx) =>
    ctx.step("weak", async () => (ran.push("weak"), healthy ? "weak" : Promise.reject(new Error("down")))),
  );
  const patient = agent("patient", async (ctx) => {
    await ctx.waitForSignal("go");
    return ctx.step("patient", async () => (ran.push("patient"), "patient"));
  });
  const boss = agent(
    "boss",
    async (ctx) => {
      const first = await hire(ctx, weak);
      // The child has failed and released its seat at this point.
      await ctx.waitForSignal("next");
      const second = await hire(ctx, patient);
      const outcome = await ctx.join(first);
      if (outcome.status !== "completed") throw new Error("the first failed");
      return [outcome.output, (await ctx.join(second)).output];
    },
    { subAgents: [weak, patient] },
  );
  const run = await runtime.submit(boss, null, { spawnBudget: { maxAgents: 2 } });
  await until(() => ran.includes("weak"));
  await settle();
  await run.signal("next");
  expect((await run.result()).status).toBe("failed");
  healthy = true;
  await run.resume();
  await run.signal("go", null, "t2");
  expect((await run.result()).output).toEqual(["weak", "patient"]);
  const seats = (await events(run.runId)).filter(
    ({ type }) => type === "seat_pause" || type === "seat_recall",
  );
  expect(seats.map(({ type, taskId }) => `${type} ${taskId}`)).toEqual(["seat_pause t2", "seat_recall t2"]);
});

describe("a programming error in an agent's code", () => {
  function thrownBy(work: () => unknown): unknown {
    try {
      return work();
    } catch (error) {
      return error;
    }
  }

  const wrong = (isMended: () => boolean, thrown: () => unknown, ran: string[]): HostedAgent =>
    agent("coder", async (ctx) => {
      await ctx.step("paid", async () => (ran.push("paid"), 1));
      if (!isMended()) throw thrown();
      return "done";
    });

  it.for([
    { thrown: () => new TypeError("plan is not iterable") },
    { thrown: () => new ReferenceError("plan is not defined") },
    { thrown: () => Fault.from(new TypeError("plan is undefined")) },
  ])(
    "a programming error in an agent's code ends the run at once without a restart; after a fix the run can be resumed",
    async ({ thrown }) => {
      const { runtime, events } = await setUp();
      const ran: string[] = [];
      let isMended = false;
      const run = await runtime.submit(
        wrong(() => isMended, thrown, ran),
        null,
      );
      const { status, error: failure } = await run.result();
      expect({ status, code: failure?.code }).toEqual({ status: "failed", code: "internal" });
      expect(typesOf(await events(run.runId))).not.toContain("task_retry");
      isMended = true;
      await run.resume();
      await until(async () => typesOf(await events(run.runId)).includes("run_resume"));
      expect((await run.result()).output).toBe("done");
      expect(ran).toEqual(["paid"]);
    },
  );

  it.for([
    { thrown: () => new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") }) },
    { thrown: () => thrownBy(() => JSON.parse("<html>502 Bad Gateway</html>")) },
    { thrown: () => thrownBy(() => JSON.parse("")) },
    { thrown: () => Fault.from(new RangeError("Array buffer allocation failed")) },
  ])(
    "a programming error in an agent's code leads to a restart if another error has caused it",
    async ({ thrown }) => {
      const { runtime, clock, events } = await setUp({ runRetry: { maxRetries: 1 } });
      let calls = 0;
      const run = await runtime.submit(
        wrong(() => ++calls > 1, thrown, []),
        null,
      );
      await settle();
      await clock.advance(5_000);
      expect((await run.result()).output).toBe("done");
      expect(typesOf(await events(run.runId))).toContain("task_retry");
    },
  );
});
