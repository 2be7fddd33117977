import { describe, expect, test } from "vitest";
import { Agent, openRuntime, type RunHandle } from "../../src/entries/index.ts";
import {
  checkReplay,
  FatalError,
  signal,
  workflow,
  type ReplayReport,
  type WorkflowContext,
} from "../../src/entries/workflow.ts";
import { memoryStore } from "../../src/runtime/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { z } from "zod";

type Code = (ctx: WorkflowContext) => Promise<unknown>;

const paid = signal("paid", z.string());

/** Runs `before` until it ends or waits, then checks its journal against `after`. */
async function check(before: Code, after: Code, isOver = true): Promise<ReplayReport> {
  const store = memoryStore();
  const runtime = await openRuntime({ store, stopGraceMs: 0 });
  try {
    const run = await runtime.start(workflow("order", before as never), null, { runId: "run_order-1" });
    if (isOver) await run.result();
    else await waits(run);
    return await checkReplay({
      store,
      workflows: [workflow("order", after as never)],
      runs: [run.runId],
    });
  } finally {
    await runtime.close();
  }
}

async function waits(run: Pick<RunHandle, "events">): Promise<void> {
  for await (const event of run.events()) if (event.type === "task_suspend") return;
}

const forever = async (ctx: WorkflowContext): Promise<never> => {
  await ctx.sleep("1 hour");
  throw new Error("an hour has passed");
};

const same = async (code: Code, isOver = true): Promise<ReplayReport> => check(code, code, isOver);

describe("checkReplay() on the code that recorded the journal", () => {
  test("checkReplay() finds no difference, executes no body of a step and counts the steps", async () => {
    let bodies = 0;
    const code: Code = async (ctx) => {
      await ctx.step("a", () => ++bodies);
      await ctx.parallel({
        left: (own) => own.step("l", () => ++bodies),
        right: async (own) => {
          await own.sleep(1);
          return own.step("r", () => ++bodies);
        },
      });
      await ctx.race({ fast: (own) => own.step("f", () => ++bodies), slow: forever });
      await ctx.map([1, 2], (item, own) => own.step("m", () => item));
      return [await ctx.now(), await ctx.random(), await ctx.uuid()];
    };
    const report = await same(code);
    expect(report).toMatchObject({ runs: 1, differences: [], skipped: [], uses: [], hasMore: false });
    expect(bodies).toBe(4);
    expect(report.steps).toBeGreaterThan(7);
  });

  test("checkReplay() finds no difference in runs that wait in a race, failed, were compensated or hold a resource", async () => {
    const waiting: Code = async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.race({
        signal: (own) => own.waitForSignal(paid),
        work: async (own) => {
          await own.step("b", () => 1);
          return forever(own);
        },
      });
    };
    const failed: Code = async (ctx) => {
      await ctx.compensate("undo", () => undefined);
      await ctx.uncancellable((own) => own.step("safe", () => 1));
      await ctx.step("a", () => {
        throw new FatalError("no");
      });
    };
    const held: Code = async (ctx) => {
      const db = await ctx.resource(
        async () => ({ rows: 3 }),
        async () => undefined,
      );
      return ctx.step("read", () => db.rows);
    };
    for (const [code, isOver] of [
      [waiting, false],
      [failed, true],
      [held, true],
    ] as const)
      expect(await same(code, isOver)).toMatchObject({ runs: 1, differences: [], skipped: [] });
  });

  test("checkReplay() skips the tasks of agents and says so", async () => {
    const store = memoryStore();
    const clerk = new Agent({ name: "clerk", model: scriptedModel(["Done."]) });
    const code = workflow("office", { agents: [clerk] }, async (ctx) => ctx.agent(clerk, "Work"));
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const { runId } = await (await runtime.start(code, null)).result();
    const report = await checkReplay({ store, workflows: [code], runs: { status: "completed" } });
    expect(report).toMatchObject({ runs: 1, differences: [], skipped: [{ runId, taskId: "t1" }] });
    expect(report.skipped[0]?.reason).toMatch(/only workflows are replayed/u);
    const other = await checkReplay({
      store,
      workflows: [workflow("other", async () => null)],
      runs: [runId],
    });
    expect(other.runs).toBe(0);
    expect(other.skipped[0]?.reason).toMatch(/^the code of office.* was not given$/u);
    await runtime.close();
  });
});

describe("checkReplay() on changed code", () => {
  const before: Code = async (ctx) => {
    await ctx.step("reserve", () => 1);
    await ctx.step("charge", () => 2, { input: { cents: 5 } });
    return 3;
  };

  test.each<[string, Code, string, string | null, string | null, RegExp]>([
    [
      "a renamed step",
      async (ctx) => {
        await ctx.step("reserve", () => 1);
        await ctx.step("pay", () => 2);
      },
      "1",
      "step charge",
      "step pay",
      /formerly/u,
    ],
    [
      "a new step in the middle",
      async (ctx) => {
        await ctx.step("reserve", () => 1);
        await ctx.sleep(5);
        await before(ctx);
      },
      "1",
      "step charge",
      "value sleep until",
      /ctx\.patched/u,
    ],
    [
      "a step that is not asked for any more",
      async (ctx) => ctx.step("reserve", () => 1),
      "1",
      "step charge",
      null,
      /the code returns; .*version/u,
    ],
    [
      "a step that became a branch",
      async (ctx) => {
        await ctx.step("reserve", () => 1);
        await ctx.parallel({ charge: (own) => own.step("charge", () => 2) });
      },
      "1",
      "step charge",
      "step charge",
      /asks for step charge at 1\/charge\/0/u,
    ],
    [
      "a step after the end",
      async (ctx) => {
        await before(ctx);
        await ctx.step("mail", () => 2);
      },
      "2",
      null,
      "step mail",
      /has completed/u,
    ],
    [
      "an error",
      async (ctx) => {
        await before(ctx);
        throw new TypeError("no receipt");
      },
      "end",
      null,
      null,
      /throws no receipt/u,
    ],
  ])(
    "checkReplay() names the first difference of changed code: %s",
    async (_, after, position, recorded, asked, message) => {
      const { differences } = await check(before, after);
      expect(differences).toHaveLength(1);
      expect(differences[0]).toMatchObject({
        runId: "run_order-1",
        taskId: "t0",
        position,
        recorded,
        asked,
        message: expect.stringMatching(message),
      });
    },
  );

  test("checkReplay() accepts code that is guarded by ctx.patched, and a renamed step whose option formerly gives the old name", async () => {
    const { differences, runs } = await check(before, async (ctx) => {
      await ctx.step("hold", () => 1, { formerly: "reserve" });
      if (ctx.patched("check")) await ctx.step("check", () => 1);
      await ctx.step("charge", () => 2, { input: { cents: 5 } });
    });
    expect([runs, differences]).toEqual([1, []]);
  });

  test("checkReplay() finds steps that depend on Math.random() and Date.now(), and reports uses that change nothing", async () => {
    const unsteady: Code = async (ctx) => {
      const name = Math.random() < 2 ? `a${Date.now()}` : "b";
      await ctx.step(name, () => 1);
    };
    const real = [Date, Math.random];
    const { differences } = await same(unsteady);
    expect(differences[0]).toMatchObject({ kind: "unsteady", position: "0" });
    expect(differences[0]?.message).toMatch(/Math\.random\(\) in .*check-replay\.test\.ts.*ctx\.random\(\)/u);
    const harmless: Code = async (ctx) => {
      const from = new Date().getTime();
      await ctx.step("a", () => Date.now());
      return Date.now() - from;
    };
    const report = await same(harmless);
    expect(report.differences).toEqual([]);
    expect(report.uses.map(({ source }) => source)).toEqual(["new Date()", "Date.now()"]);
    expect([Date, Math.random]).toEqual(real);
  });

  test("checkReplay() refuses unknown options, and checks at most `limit` runs", async () => {
    const store = memoryStore();
    const runtime = await openRuntime({ store });
    const order = workflow("order", async (ctx) => ctx.step("a", () => 1));
    for (let count = 0; count < 3; count++) await order.run(null, { runtime });
    const report = await checkReplay({ store, workflows: [order], runs: {}, limit: 2 });
    expect([report.runs, report.hasMore]).toEqual([2, true]);
    expect((await checkReplay({ store, workflows: [order] })).runs).toBe(0);
    await expect(checkReplay({ store, workflow: [order] } as never)).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await runtime.close();
  });
});
