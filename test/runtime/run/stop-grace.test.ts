import { describe, expect, it } from "vitest";
import { Transcript, userMessage, type HostedAgent, type Model } from "../../../src/kernel/index.ts";
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

function answering(generate: Model["generate"]): Model {
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

async function cancelled({ runtime }: Bench, worker: HostedAgent, streaming = false) {
  const run = await runtime.submit(worker, null, { streaming });
  await settle();
  await run.cancel("enough");
  await settle();
  return run;
}

const open = {
  "a tool without a timeout": agent(
    "worker",
    (ctx) => caught(ctx.tool({ callId: "1", toolName: "look", input: {} })),
    {
      tools: [simpleTool({ name: "look", execute: never })],
    },
  ),
  "a tool with a timeout": agent(
    "worker",
    (ctx) => caught(ctx.tool({ callId: "1", toolName: "look", input: {} })),
    {
      tools: [simpleTool({ name: "look", execute: never, timeoutMs: 120_000 })],
    },
  ),
  "a model": agent("worker", (ctx) => caught(ctx.llm(request)), { models: { main: answering(never) } }),
  "a step": agent("worker", (ctx) => caught(ctx.step("wait", never))),
  "a step in a tool's body": agent(
    "worker",
    (ctx) => caught(ctx.tool({ callId: "1", toolName: "look", input: {} })),
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
    caught(
      ctx.parallel({
        one: (branch) => branch.step("wait", never),
        two: (branch) => branch.step("wait", never),
      }),
    ),
  ),
  "a race": agent("worker", (ctx) => caught(ctx.race({ one: (branch) => branch.step("wait", never) }))),
};

/** What the code around a call was given in place of its answer. */
async function caught(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return `caught ${(error as Error).message}`;
  }
  return "answered";
}

describe("a call that ignores that its task was told to stop (C1)", () => {
  it.each(Object.entries(open))(
    "is given up: %s; the code around it is given the stop",
    async (_name, worker) => {
      for (const streaming of [false, true]) {
        const bench = await setUp({ stopGraceMs: 2_000, prices });
        const run = await cancelled(bench, worker, streaming);
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

  it("is recorded and settled if it succeeds in time (C2), and then its task ends at once", async () => {
    const bench = await setUp({ prices });
    const answer = gate();
    const model = answering(async () => {
      await answer.promise;
      return { message: { role: "assistant", content: [] }, stopReason: "stop", usage };
    });
    const worker = agent("worker", async (ctx) => (await ctx.llm(request), await ctx.now()), {
      models: { main: model },
    });
    const run = await cancelled(bench, worker);
    await bench.clock.advance(4_999);
    answer.resolve();
    const { status, costUsd, unreported: lost } = await run.result();
    expect({ status, costUsd, lost }).toEqual({
      status: "cancelled",
      costUsd: 15e-6,
      lost: { tokens: 0, costUsd: 0 },
    });
    expect(bench.clock.pending).toBe(1);
    await bench.runtime.close();
  });

  it.each([false, true])(
    "costs all that was held, once, whatever comes of it later (B3); streamed: %s",
    async (streaming) => {
      const bench = await setUp({ prices });
      const answer = gate();
      const model = answering(async () => {
        await answer.promise;
        return { message: { role: "assistant", content: [] }, stopReason: "stop", usage };
      });
      const worker = agent(
        "worker",
        async (ctx) => {
          await caught(ctx.llm(request));
          // Its code takes its time, so that the answer finds the task at work.
          await never();
        },
        { models: { main: model } },
      );
      const run = await cancelled(bench, worker, streaming);
      await bench.clock.advance(5_000);
      const lost = (await bench.events(run.runId)).filter(({ type }) => type === "budget_lost");
      expect(lost).toHaveLength(1);
      answer.resolve();
      await settle();
      await bench.clock.advance(5_000);
      const result = await run.result();
      const types = typesOf(await bench.events(run.runId));
      expect(result.status).toBe("cancelled");
      expect(result.costUsd).toBe(result.unreported.costUsd);
      expect(result.unreported.costUsd).toBeGreaterThan(0);
      expect(lost[0]?.data).toMatchObject(result.unreported);
      expect(types.filter((type) => type === "budget_lost")).toHaveLength(1);
      expect(types).not.toContain("message_end");
      await bench.runtime.close();
    },
  );

  it("is given up at once with a grace of 0", async () => {
    const bench = await setUp({ stopGraceMs: 0 });
    const run = await cancelled(bench, open["a step"]);
    await bench.clock.advance(0);
    expect((await run.result()).output).toBe("caught enough");
    await bench.runtime.close();
  });

  it("does not keep its strand going: what its body does later is never answered", async () => {
    const bench = await setUp();
    const late = gate();
    const seen: string[] = [];
    const look = simpleTool({
      name: "look",
      execute: async (_input, { ctx, signal }) => {
        await late.promise;
        seen.push(signal.aborted ? "told" : "not told");
        await ctx.step("more", async () => (seen.push("more"), null));
        seen.push("answered");
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
    const run = await cancelled(bench, worker);
    await bench.clock.advance(5_000);
    expect((await run.result()).status).toBe("cancelled");
    late.resolve();
    await settle();
    expect(seen).toEqual(["told"]);
    await bench.runtime.close();
  });
});

describe("code that ignores that its task was told to stop", () => {
  it("is left where it stands, with what it has reported; none of it runs on", async () => {
    const bench = await setUp();
    const late = gate();
    const seen: string[] = [];
    const worker = agent("worker", async (ctx) => {
      ctx.report({
        output: "half",
        abandoned: ({ reason, status }) => {
          ctx.report({ metadata: { reason, status } });
          ctx.emitEvent({
            type: "architecture_event",
            data: { architecture: "own", name: "own.left", data: {} },
          });
        },
      });
      await late.promise;
      try {
        await ctx.step("more", async () => null);
      } finally {
        seen.push("ran on");
      }
    });
    const run = await cancelled(bench, worker);
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
    expect(seen).toEqual([]);
    await bench.runtime.close();
  });

  it("has the grace again after its call was given up, and no more", async () => {
    const bench = await setUp();
    const worker = agent("worker", async (ctx) => {
      try {
        await ctx.step("wait", never);
      } finally {
        await never();
      }
    });
    const run = await cancelled(bench, worker);
    await bench.clock.advance(9_999);
    expect(typesOf(await bench.events(run.runId))).not.toContain("run_end");
    await bench.clock.advance(1);
    expect((await run.result()).status).toBe("cancelled");
    await bench.runtime.close();
  });

  it("tells who hosts it when what it reported to be called throws, and ends", async () => {
    const bench = await setUp();
    const worker = agent("worker", async (ctx) => {
      ctx.report({
        abandoned: () => {
          throw new Error("no");
        },
      });
      await never();
    });
    const run = await cancelled(bench, worker);
    await bench.clock.advance(5_000);
    expect((await run.result()).status).toBe("cancelled");
    expect(bench.errors).toMatchObject([{ message: "no" }]);
    await bench.runtime.close();
  });

  it("ends as it had when what it opened does not close", async () => {
    const bench = await setUp();
    const worker = agent("worker", async (ctx) => {
      await ctx.resource(async () => null, never);
      return "done";
    });
    const run = await cancelled(bench, worker);
    await bench.clock.advance(5_000);
    const { status, output } = await run.result();
    expect({ status, output }).toEqual({ status: "completed", output: "done" });
    await bench.runtime.close();
  });

  it("ends also before it has begun, while others have all the slots", async () => {
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
    await hog.cancel("you too");
    await settle();
    await clock.advance(5_000);
    await until(async () => typesOf(await events(hog.runId)).includes("run_end"));
    await runtime.close();
  });
});

it("code that waits for a slot is told of the stop, and need not be given up", async () => {
  const { runtime } = await setUp({ concurrency: 1, stopGraceMs: 300 });
  const seen: string[] = [];
  const obedient = agent("obedient", async (ctx) => {
    await ctx.waitForSignal("go");
    try {
      return await ctx.step("work", async () => "worked");
    } finally {
      seen.push("finally");
    }
  });
  const run = await runtime.submit(obedient, null);
  await settle();
  const hold = gate();
  const hog = await runtime.submit(
    agent("hog", async (ctx) => ctx.step("hold", () => hold.promise.then(() => null))),
    null,
  );
  await settle();
  await run.signal("go");
  await settle();
  await run.cancel("enough");
  // No time passes.
  expect((await run.result()).status).toBe("cancelled");
  expect(seen).toEqual(["finally"]);
  hold.resolve();
  expect((await hog.result()).status).toBe("completed");
});
