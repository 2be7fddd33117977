import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Agent } from "../../../../src/assembly/agent.ts";
import { ExecutionTracker } from "../../../../src/agents/index.ts";
import { Transcript, userMessage, type Exhaustion } from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { agent, setUp } from "../../../runtime/runtime-setup.ts";
import { propertyRuns } from "../../../effort.ts";

describe("ExecutionTracker outside a run", () => {
  it.each([
    [{ maxTokens: 4_000 }, { tokens: 4_200 }, "Token budget exceeded: 4200 > 4000"],
    [{ maxTurns: 1 }, { turns: 2 }, "Turn budget exceeded: 2 > 1"],
    [{ maxCostUsd: 0.3 }, { costUsd: 0.31 }, "Cost budget exceeded: 0.31 > 0.3"],
  ])(
    "consume() of ExecutionTracker reports which cap was exceeded and by how much: %j",
    (budget, used, message) => {
      const tracker = new ExecutionTracker(budget);
      expect(() => tracker.consume(used)).toThrow(
        expect.objectContaining({ code: "budget_exhausted", message }),
      );
    },
  );

  it("B5: consume() of ExecutionTracker accepts amounts up to the cap and throws beyond it until topUp()", () => {
    const tracker = new ExecutionTracker({ maxTokens: 100, maxCostUsd: 0.3 });
    tracker.consume({ tokens: 60, costUsd: 0.1 });
    tracker.consume({ tokens: 40, costUsd: 0.2 });
    expect(tracker.spent).toEqual({ tokens: 100, costUsd: 0.3, turns: 0 });
    expect(() => tracker.consume({ tokens: 1 })).toThrow("Token budget exceeded: 101 > 100");
    expect(() => tracker.consume({ turns: 1 })).toThrow("Token budget exceeded: 101 > 100");
    tracker.topUp({ maxTokens: 50 });
    tracker.consume({ tokens: 49 });
    expect(tracker.limits).toEqual({ maxTokens: 150, maxCostUsd: 0.3, maxTurns: null });
  });

  it("B2: ExecutionTracker is unlimited by default and refuses invalid budgets and amounts", () => {
    const tracker = new ExecutionTracker();
    tracker.consume({ tokens: 1e12, costUsd: 1e6, turns: 1e9 });
    expect(() => new ExecutionTracker({ maxTokens: -1 })).toThrow("maxTokens");
    expect(() => tracker.consume({ tokens: Number.NaN })).toThrow("invalid tokens NaN");
  });

  it("consume() of ExecutionTracker takes amounts by position or by name, cost means dollars, and each default is 0", () => {
    const tracker = new ExecutionTracker({ maxTokens: 10_000, maxCostUsd: 1_000 });
    tracker.consume();
    tracker.consume(4_200);
    tracker.consume(100, 0.5, 1);
    tracker.consume({ cost: 600, turns: 1 });
    expect(tracker.spent).toEqual({ tokens: 4_300, costUsd: 600.5, turns: 2 });
    expect(() => tracker.consume({ cost: 400 })).toThrow("Cost budget exceeded: 1000.5 > 1000");
  });

  it("consume(), reserve() and settle() of ExecutionTracker refuse an unknown name and charge nothing", async () => {
    const tracker = new ExecutionTracker({ maxTokens: 100 });
    const hold = await tracker.reserve({ inputTokens: 10 });
    expect(() => tracker.consume({ usd: 1 } as never)).toThrow('unknown option "usd" of consume()');
    expect(() => tracker.consume({ cost: 1, costUsd: 1 })).toThrow("give one of them");
    expect(() => tracker.consume({ tokens: 1 }, 2)).toThrow("name every amount in the object");
    expect(() => tracker.consume("4200" as never)).toThrow("invalid options of consume()");
    await expect(tracker.reserve({ tokens: 10 } as never)).rejects.toThrow(
      'unknown option "tokens" of reserve()',
    );
    expect(() => tracker.settle(hold, { tokens: 1, cost: 1 } as never)).toThrow(
      'unknown option "cost" of settle()',
    );
    expect([tracker.spent.tokens, tracker.reserved.tokens]).toEqual([0, 10]);
  });

  it("B1: reserve() of ExecutionTracker holds the bound of a call, at most the rest of the budget; settle() returns what is unused", async () => {
    const tracker = new ExecutionTracker({ maxTokens: 100 });
    const first = await tracker.reserve({ inputTokens: 30, maxOutputTokens: 50 });
    expect(first).toMatchObject({ outputTokens: 50, clamped: false });
    expect(tracker.reserved.tokens).toBe(80);
    tracker.settle(first, { tokens: 40 });
    const second = await tracker.reserve({ inputTokens: 30, maxOutputTokens: 50 });
    expect(second).toMatchObject({ outputTokens: 30, clamped: true });
    tracker.lose(second);
    expect([tracker.spent.tokens, tracker.lost.tokens, tracker.reserved.tokens]).toEqual([100, 60, 0]);
    await expect(tracker.reserve({ inputTokens: 1 })).rejects.toThrow(
      "reservation of 1 token does not fit into the remaining 0 tokens (spent 100, 60 of it unreported)",
    );
  });

  it("B1: a reservation of ExecutionTracker that does not fit waits until open ones settle, and is then granted or refused", async () => {
    const tracker = new ExecutionTracker({ maxTokens: 100 });
    const open = await tracker.reserve({ inputTokens: 70 });
    const waits = tracker.reserve({ inputTokens: 60 });
    tracker.refund(open);
    const late = tracker.reserve({ inputTokens: 60 });
    tracker.settle(await waits, { tokens: 50 });
    await expect(late).rejects.toThrow("reservation of 60 tokens does not fit into the remaining 50 tokens");
  });

  it("B1: settle() of ExecutionTracker works once per reservation and throws if the bill exceeds the bound", async () => {
    const tracker = new ExecutionTracker({ maxTokens: 100 });
    const hold = await tracker.reserve({ inputTokens: 10 });
    expect(() => tracker.settle(hold, { tokens: 11 })).toThrow("Token budget exceeded: 11 > 10");
    expect(() => tracker.settle(hold, { tokens: 1 })).toThrow(expect.objectContaining({ code: "not_found" }));
    expect(tracker.spent.tokens).toBe(11);
  });

  it("B4: ExecutionTracker refuses a call without a known price under a budget in dollars, unless unknownPrice is ignore", async () => {
    const refusing = new ExecutionTracker({ maxCostUsd: 1 });
    await expect(refusing.reserve({ inputCostUsd: null })).rejects.toMatchObject({ code: "unknown_price" });
    const ignoring = new ExecutionTracker({ maxCostUsd: 1 }, { unknownPrice: "ignore" });
    ignoring.settle(await ignoring.reserve({ inputCostUsd: null }), { tokens: 0, costUsd: null });
    expect(ignoring.unpriced).toBe(1);
  });

  it("B5: ExecutionTracker warns once per dimension before the cap", () => {
    const warnings: Exhaustion[] = [];
    const tracker = new ExecutionTracker(
      { maxTokens: 100, maxTurns: 4 },
      { warnAt: 0.5, onWarning: (warning) => warnings.push(warning) },
    );
    tracker.consume({ tokens: 49, turns: 1 });
    expect(warnings).toEqual([]);
    tracker.consume({ tokens: 1, turns: 1 });
    tracker.consume({ tokens: 10, turns: 1 });
    expect(warnings.map(({ dimension, used }) => `${dimension} ${used}`)).toEqual(["tokens 50", "turns 2"]);
  });

  it("B1: concurrent reservations of ExecutionTracker never exceed the cap and never wait forever", async () => {
    const call = fc.record({
      inputTokens: fc.nat(30),
      maxOutputTokens: fc.nat(30),
      end: fc.constantFrom("settle", "settle", "lose", "refund"),
      share: fc.nat(10),
    });
    await fc.assert(
      fc.asyncProperty(fc.nat(120), fc.array(call, { maxLength: 12 }), async (maxTokens, calls) => {
        const tracker = new ExecutionTracker({ maxTokens });
        const worker = async ({ end, share, ...asked }: (typeof calls)[number]): Promise<string> => {
          const hold = await tracker.reserve(asked);
          expect(tracker.spent.tokens + tracker.reserved.tokens).toBeLessThanOrEqual(maxTokens);
          await Promise.resolve();
          const most = asked.inputTokens + hold.outputTokens;
          if (end === "settle") tracker.settle(hold, { tokens: Math.floor((most * share) / 10) });
          else tracker[end](hold);
          return "made";
        };
        const ends = await Promise.allSettled(calls.map(worker));
        const faults = ends.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
        for (const fault of faults) expect(fault).toMatchObject({ code: "budget_exhausted" });
        expect(tracker.reserved.tokens).toBe(0);
        expect(tracker.spent.tokens).toBeLessThanOrEqual(maxTokens);
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });
});

describe("ExecutionTracker inside a run", () => {
  const usage = { inputTokens: 40, outputTokens: 10 };

  it("H4: ExecutionTracker inside a run shows the budget of the task and refuses to change it", async () => {
    const { runtime } = await setUp();
    const seen: unknown[] = [];
    const worker = agent(
      "worker",
      async (ctx) => {
        const tracker = new ExecutionTracker(ctx);
        await ctx.llm({ transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 20 });
        seen.push(tracker.spent, tracker.limits, tracker.reserved.tokens);
        for (const move of [
          () => tracker.reserve({}),
          async () => tracker.consume({ tokens: 1 }),
          async () => tracker.topUp({ maxTokens: 1 }),
        ])
          seen.push(
            await move().then(
              () => "booked",
              (error: Error) => error.message,
            ),
          );
        return "done";
      },
      { models: { main: scriptedModel([{ text: "hi", usage }]) } },
    );
    const run = await runtime.submit(worker, null, { budget: { maxTokens: 1_000 } });
    expect((await run.result()).output).toBe("done");
    const refused = (method: string, instead: string): unknown =>
      expect.stringMatching(
        new RegExp(`^ExecutionTracker.${method} is not available inside a run.*${instead}`),
      );
    expect(seen).toEqual([
      { tokens: 50, costUsd: 0, turns: 1 },
      { maxTokens: 1_000, maxCostUsd: null, maxTurns: null },
      0,
      refused("reserve", "ctx.llm"),
      refused("consume", "ctx.llm"),
      refused("topUp", "run.topUp"),
    ]);
  });

  it("B5: a ReAct run stops at its budget of turns with the text so far", async () => {
    const { runtime } = await setUp();
    const model = scriptedModel([
      { text: "thinking", toolCalls: [{ name: "none", input: {} }], usage },
      { text: "never", usage },
    ]);
    const thinker = new Agent({ name: "thinker", model, maxTurns: 9 });
    const run = await runtime.submit(thinker, "go", { budget: { maxTurns: 1 } });
    const { status, output, error: failure } = await run.result();
    expect({ status, output, message: failure?.message }).toEqual({
      status: "budget_exhausted",
      output: "thinking",
      message: "reservation of 1 turn does not fit into the remaining 0 turns (spent 1)",
    });
  });

  it("B6: a child inherits its parent's budget and can only tighten it", async () => {
    const { runtime } = await setUp();
    const child = agent("child", async (ctx) => {
      const { maxTokens, maxTurns } = new ExecutionTracker(ctx).limits;
      return [ctx.meta.supervision?.executionBudget.maxTokens ?? null, maxTokens, maxTurns];
    });
    const parent = agent(
      "parent",
      async (ctx) => {
        const spawned = await ctx.spawn(child.id, null, { budget: { maxTokens: 9_999, maxTurns: 2 } });
        return spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).output : null;
      },
      { subAgents: [child] },
    );
    const run = await runtime.submit(parent, null, { budget: { maxTokens: 500 } });
    const [inherited, , turns] = (await run.result()).output as (number | null)[];
    expect({ inherited, turns }).toEqual({ inherited: 500, turns: 2 });
  });
});
