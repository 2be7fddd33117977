import { describe, expect, it } from "vitest";
import {
  rootTaskId,
  Transcript,
  userMessage,
  type HostedAgent,
  type Model,
} from "../../../src/kernel/index.ts";
import {
  agent,
  gate,
  setUp,
  settle,
  simpleTool,
  text,
  typesOf,
  until,
  type Bench,
} from "../runtime-setup.ts";

const request = { transcript: Transcript.of([userMessage("hi")]), maxOutputTokens: 100 };
const prices = { find: () => ({ inputUsd: 1e-6, outputUsd: 2e-6 }) };
const usage = {
  inputTokens: 5,
  outputTokens: 5,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};
const never = (): Promise<never> => new Promise(() => {});

/** A model with this `generate`; its stream sends one delta first. */
function modelOf(generate: Model["generate"]): Model {
  return {
    provider: "own",
    modelId: "own",
    generate,
    stream: async function* (...args) {
      yield { type: "text_delta", text: "Well" };
      yield { type: "finish", ...(await generate(...args)) };
    },
  };
}

/** Submits a run, lets it start, and cancels it with the reason `enough`. */
async function cancelledRun({ runtime }: Bench, worker: HostedAgent, streaming = false) {
  const run = await runtime.submit(worker, null, { streaming });
  await settle();
  await run.cancel("enough");
  await settle();
  return run;
}

/** Agents whose one call never settles by itself. */
const hangingCalls = {
  "a tool without a timeout": agent(
    "worker",
    (ctx) => outcomeOfCall(ctx.tool({ callId: "1", toolName: "look", input: {} })),
    {
      tools: [simpleTool({ name: "look", execute: never })],
    },
  ),
  "a tool with a timeout": agent(
    "worker",
    (ctx) => outcomeOfCall(ctx.tool({ callId: "1", toolName: "look", input: {} })),
    {
      tools: [simpleTool({ name: "look", execute: never, timeoutMs: 120_000 })],
    },
  ),
  "a model": agent("worker", (ctx) => outcomeOfCall(ctx.llm(request)), { models: { main: modelOf(never) } }),
  "a step": agent("worker", (ctx) => outcomeOfCall(ctx.step("wait", never))),
  "a step in a tool's body": agent(
    "worker",
    (ctx) => outcomeOfCall(ctx.tool({ callId: "1", toolName: "look", input: {} })),
    {
      tools: [
        simpleTool({
          name: "look",
          execute: async (_input, { ctx }) => text(await ctx.step<string>("wait", never)),
        }),
      ],
    },
  ),
  "two branches": agent("worker", (ctx) =>
    outcomeOfCall(
      ctx.parallel({
        one: (branch) => branch.step("wait", never),
        two: (branch) => branch.step("wait", never),
      }),
    ),
  ),
  "a race": agent("worker", (ctx) =>
    outcomeOfCall(ctx.race({ one: (branch) => branch.step("wait", never) })),
  ),
};

/** Reports what the agent's code received from its call: an error or a result. */
async function outcomeOfCall(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return `caught ${(error as Error).message}`;
  }
  return "answered";
}

describe("C1: a call that ignores the cancellation of its task", () => {
  it.each(Object.entries(hangingCalls))(
    "a call that ignores the cancellation is abandoned after stopGraceMs (%s), and the code around it gets the error",
    async (_name, worker) => {
      for (const streaming of [false, true]) {
        const bench = await setUp({ stopGraceMs: 2_000, prices });
        const run = await cancelledRun(bench, worker, streaming);
        await bench.clock.advance(1_999);
        expect(typesOf(await bench.events(run.runId))).not.toContain("run_end");
        await bench.clock.advance(1);
        const { status, output } = await run.result();
        expect({ status, output }).toEqual({ status: "cancelled", output: "caught enough" });
        expect(bench.errors).toEqual([]);
        await bench.runtime.close();
      }
    },
  );

  it("C2: a call that ignores the cancellation is recorded if it succeeds within stopGraceMs, and its task ends at once", async () => {
    const bench = await setUp({ prices });
    const answer = gate();
    const model = modelOf(async () => {
      await answer.promise;
      return { message: { role: "assistant", content: [] }, stopReason: "stop", usage };
    });
    const worker = agent("worker", async (ctx) => (await ctx.llm(request), await ctx.now()), {
      models: { main: model },
    });
    const run = await cancelledRun(bench, worker);
    await bench.clock.advance(4_999);
    answer.resolve();
    const { status, costUsd, unreported } = await run.result();
    expect({ status, costUsd, unreported }).toEqual({
      status: "cancelled",
      costUsd: 15e-6,
      unreported: { tokens: 0, costUsd: 0 },
    });
    // The timer that the timeouts of model calls share is cleared a moment after the last call has ended.
    await settle();
    expect(bench.clock.pending).toBe(1);
    await bench.runtime.close();
  });

  it.each([false, true])(
    "B3: a call that ignores the cancellation is charged in full once, or its bill if the bill arrives later (streaming: %s)",
    async (streaming) => {
      const bench = await setUp({ prices });
      const answer = gate();
      const model = modelOf(async () => {
        await answer.promise;
        return { message: { role: "assistant", content: [] }, stopReason: "stop", usage };
      });
      const worker = agent(
        "worker",
        async (ctx) => {
          await outcomeOfCall(ctx.llm(request));
          // The code does not end, so that the late answer finds the task still running.
          await never();
        },
        { models: { main: model } },
      );
      const run = await cancelledRun(bench, worker, streaming);
      await bench.clock.advance(5_000);
      const lost = (await bench.events(run.runId)).filter(({ type }) => type === "budget_lost");
      expect(lost).toHaveLength(1);
      const { ledger } = await run.snapshot();
      const before = ledger.accounts[rootTaskId];
      expect(before?.spent).toEqual(before?.lost);
      expect(before?.lost.nanoUsd).toBeGreaterThan(15_000);
      answer.resolve();
      await settle();
      await bench.clock.advance(5_000);
      const result = await run.result();
      const types = typesOf(await bench.events(run.runId));
      expect(result.status).toBe("cancelled");
      expect([result.costUsd, result.unreported]).toEqual([15e-6, { tokens: 0, costUsd: 0 }]);
      expect(types.filter((type) => type === "budget_lost")).toHaveLength(1);
      expect(types.filter((type) => type === "usage_corrected")).toHaveLength(1);
      expect(types).not.toContain("message_end");
      await bench.runtime.close();
    },
  );

  it("a call that ignores the cancellation is abandoned at once with stopGraceMs: 0", async () => {
    const bench = await setUp({ stopGraceMs: 0 });
    const run = await cancelledRun(bench, hangingCalls["a step"]);
    await bench.clock.advance(0);
    expect((await run.result()).output).toBe("caught enough");
    await bench.runtime.close();
  });

  it("an abandoned call cannot continue: steps that its abandoned body takes later never settle", async () => {
    const bench = await setUp();
    const late = gate();
    const trace: string[] = [];
    const look = simpleTool({
      name: "look",
      execute: async (_input, { ctx, signal }) => {
        await late.promise;
        trace.push(signal.aborted ? "aborted" : "not aborted");
        await ctx.step("more", async () => (trace.push("more"), null));
        trace.push("answered");
        return text("late");
      },
    });
    const worker = agent(
      "worker",
      async (ctx) => ctx.tool({ callId: "1", toolName: "look", input: {} }).then(() => null),
      {
        tools: [look],
      },
    );
    const run = await cancelledRun(bench, worker);
    await bench.clock.advance(5_000);
    expect((await run.result()).status).toBe("cancelled");
    late.resolve();
    await settle();
    expect(trace).toEqual(["aborted"]);
    await bench.runtime.close();
  });
});

describe("agent code that ignores the cancellation of its task", () => {
  it("agent code that ignores the cancellation is abandoned after stopGraceMs, and its task ends with the reported output", async () => {
    const bench = await setUp();
    const late = gate();
    const trace: string[] = [];
    const worker = agent("worker", async (ctx) => {
      ctx.report({
        output: "half",
        abandoned: ({ reason, status }) => {
          ctx.report({ metadata: { reason, status } });
          ctx.emitEvent({
            type: "architecture_event",
            data: { architecture: "own", name: "own.abandoned", data: {} },
          });
        },
      });
      await late.promise;
      try {
        await ctx.step("more", async () => null);
      } finally {
        trace.push("continued");
      }
    });
    const run = await cancelledRun(bench, worker);
    await bench.clock.advance(5_000);
    const { status, output, metadata } = await run.result();
    expect({ status, output, metadata }).toEqual({
      status: "cancelled",
      output: "half",
      metadata: { reason: "enough", status: "cancelled" },
    });
    expect(typesOf(await bench.events(run.runId)).slice(-3)).toEqual([
      "architecture_event",
      "task_end",
      "run_end",
    ]);
    late.resolve();
    await settle();
    expect(trace).toEqual([]);
    await bench.runtime.close();
  });

  it("agent code that ignores the cancellation gets stopGraceMs once more after its call was abandoned, and not a third time", async () => {
    const bench = await setUp();
    const worker = agent("worker", async (ctx) => {
      try {
        await ctx.step("wait", never);
      } finally {
        await never();
      }
    });
    const run = await cancelledRun(bench, worker);
    await bench.clock.advance(9_999);
    expect(typesOf(await bench.events(run.runId))).not.toContain("run_end");
    await bench.clock.advance(1);
    expect((await run.result()).status).toBe("cancelled");
    await bench.runtime.close();
  });

  it("agent code that ignores the cancellation ends although its abandoned() callback throws, and the error goes to onError", async () => {
    const bench = await setUp();
    const worker = agent("worker", async (ctx) => {
      ctx.report({
        abandoned: () => {
          throw new Error("no");
        },
      });
      await never();
    });
    const run = await cancelledRun(bench, worker);
    await bench.clock.advance(5_000);
    expect((await run.result()).status).toBe("cancelled");
    expect(bench.errors).toMatchObject([{ message: "no" }]);
    await bench.runtime.close();
  });

  it("agent code that ignores the cancellation ends with its own outcome if one of its resources does not close", async () => {
    const bench = await setUp();
    const worker = agent("worker", async (ctx) => {
      await ctx.resource(async () => null, never);
      return "done";
    });
    const run = await cancelledRun(bench, worker);
    await bench.clock.advance(5_000);
    const { status, output } = await run.result();
    expect({ status, output }).toEqual({ status: "completed", output: "done" });
    await bench.runtime.close();
  });

  it("a cancelled task ends before its code has started, when other tasks hold all slots", async () => {
    const bench = await setUp({ concurrency: 1 });
    const { runtime, clock, events } = bench;
    const hog = await runtime.submit(
      agent("hog", async (ctx) => ctx.step("wait", never)),
      null,
    );
    await settle();
    const child = agent(
      "child",
      async (ctx) => (await ctx.waitForSignal("go"), await ctx.step("wait", never)),
    );
    const run = await runtime.submit(child, null);
    await settle();
    await run.cancel("enough");
    await clock.advance(5_000);
    expect((await run.result()).status).toBe("cancelled");
    expect(typesOf(await events(hog.runId))).not.toContain("run_end");
    await hog.cancel("enough");
    await settle();
    await clock.advance(5_000);
    await until(async () => typesOf(await events(hog.runId)).includes("run_end"));
    await runtime.close();
  });
});

it("agent code that waits for a slot receives the cancellation error at once and is not abandoned", async () => {
  const { runtime } = await setUp({ concurrency: 1, stopGraceMs: 300 });
  const trace: string[] = [];
  const cooperative = agent("cooperative", async (ctx) => {
    await ctx.waitForSignal("go");
    try {
      return await ctx.step("work", async () => "worked");
    } finally {
      trace.push("finally");
    }
  });
  const run = await runtime.submit(cooperative, null);
  await settle();
  const mayEnd = gate();
  const hog = await runtime.submit(
    agent("hog", async (ctx) => ctx.step("hold", () => mayEnd.promise.then(() => null))),
    null,
  );
  await settle();
  await run.signal("go");
  await settle();
  await run.cancel("enough");
  // No time passes.
  expect((await run.result()).status).toBe("cancelled");
  expect(trace).toEqual(["finally"]);
  mayEnd.resolve();
  expect((await hog.result()).status).toBe("completed");
});
