import { describe, expect, test } from "vitest";
import { Agent, openRuntime, priceCatalog, type RunUntilOptions } from "../../../src/entries/index.ts";
import { formatRunId, messageText } from "../../../src/kernel/index.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { looks, scout } from "../scout.ts";

describe("runUntil()", () => {
  const ids = { runId: formatRunId("goal") };
  const until: RunUntilOptions["until"] = ({ result }) => result.output === "finished";

  test("runUntil() invokes the agent again in the same session until until() returns true", async () => {
    const { agent, model } = scout(["half way", "finished"]);
    const result = await agent.runUntil("Do it", {
      until: (state) => (state.result.output === "finished" ? true : `not yet (${state.iteration})`),
    });
    expect(result).toMatchObject({ status: "completed", output: "finished" });
    expect(model.calls[1]?.messages.map(messageText)).toEqual(["Do it", "half way", "not yet (1)"]);
  });

  test("runUntil() stops after maxIterations", async () => {
    const { agent, model } = scout(["a", "b", "c", "d"]);
    expect(await agent.runUntil("Do it", { until, maxIterations: 3 })).toMatchObject({
      status: "max_turns",
      output: "c",
      interruptionReason: "run_until:max_iterations",
    });
    expect(model.calls).toHaveLength(3);
  });

  test("runUntil() stops with no_progress when the output stays the same", async () => {
    const { agent, model } = scout(["same", "same", "same", "finished"]);
    expect(await agent.runUntil("Do it", { until })).toMatchObject({
      interruptionReason: "run_until:no_progress",
    });
    expect(model.calls).toHaveLength(3);
  });

  describe("cost of all iterations of runUntil()", () => {
    const tenth = { usage: { inputTokens: 90, outputTokens: 10 } };
    /** One dollar per thousand tokens: an iteration costs 0.1, and the reservation for it is larger. */
    const prices = priceCatalog({
      overrides: [{ provider: "scripted", model: "script", usdPerMillion: { input: 1_000, output: 1_000 } }],
    });
    async function rounds(
      script: readonly ScriptStep[],
      options: Partial<RunUntilOptions>,
      agentOptions: Partial<ConstructorParameters<typeof Agent>[0]> = {},
    ) {
      const runtime = await openRuntime({ prices });
      const { agent, model } = scout(script, { tools: [], ...agentOptions });
      const seen: (number | null)[] = [];
      const watch: RunUntilOptions["until"] = (state) => {
        seen.push(state.costUsd);
        return until(state);
      };
      try {
        return { seen, model, result: await agent.runUntil("Do it", { until: watch, runtime, ...options }) };
      } finally {
        await runtime.close();
      }
    }
    const three = ["a", "b", "finished"].map((text) => ({ text, ...tenth }));

    test("the result of runUntil() contains cost, usage and turns of all iterations", async () => {
      const { result, seen } = await rounds(three, {});
      expect(seen).toEqual([0.1, 0.2, 0.3]);
      expect(result).toMatchObject({ status: "completed", output: "finished", costUsd: 0.3, turns: 3 });
      expect(result.usage).toMatchObject({ inputTokens: 270, outputTokens: 30, costUsd: 0.3 });
    });

    test("an iteration that exceeds maxCostUsd ends runUntil() with the previous answer and the total cost", async () => {
      const { result, model } = await rounds(three, { maxCostUsd: 0.25, until: () => false });
      expect(result).toMatchObject({
        status: "budget_exhausted",
        interruptionReason: "run_until:max_cost",
        output: "b",
        costUsd: 0.2,
        turns: 2,
        error: { code: "budget_exhausted", details: { dimension: "costUsd", limit: 0.05 } },
      });
      expect(model.calls).toHaveLength(2);
    });

    test("runUntil() starts no iteration when maxCostUsd is used up", async () => {
      const { result, model } = await rounds(three, { maxCostUsd: 0.1, until: () => false });
      expect(result).toMatchObject({
        status: "budget_exhausted",
        interruptionReason: "run_until:max_cost",
        output: "a",
        costUsd: 0.1,
        error: null,
      });
      expect(model.calls).toHaveLength(1);
    });

    test("runUntil() reports max_cost if the first iteration already exceeds maxCostUsd", async () => {
      const { result } = await rounds(three, { maxCostUsd: 0.01 });
      expect(result).toMatchObject({
        status: "budget_exhausted",
        interruptionReason: "run_until:max_cost",
        costUsd: 0,
        error: { details: { limit: 0.01 } },
      });
    });

    test("an iteration that does not complete counts towards the cost of runUntil()", async () => {
      const { result } = await rounds(
        [
          { text: "a", ...tenth },
          { ...looks, ...tenth },
        ],
        {},
        { maxTurns: 1 },
      );
      expect(result).toMatchObject({ interruptionReason: "max_turns_exceeded", costUsd: 0.2, turns: 2 });
    });

    test("the agent's own budget applies to each iteration and is not reported as the limit of runUntil()", async () => {
      const { result } = await rounds(three, { maxCostUsd: 5 }, { budget: { maxCostUsd: 0.02 } });
      expect(result).toMatchObject({ status: "budget_exhausted", error: { details: { limit: 0.02 } } });
      expect(result.interruptionReason).not.toMatch(/^run_until/u);
    });
  });

  describe("limits of runUntil() for all iterations together", () => {
    const tenTokens = { usage: { inputTokens: 6, outputTokens: 4 } };
    const often = Array.from({ length: 9 }, (_, index) => ({ text: `answer ${index + 1}`, ...tenTokens }));
    const goOn: RunUntilOptions["until"] = () => false;

    /** Runs the loop on a fake clock: each answer takes 40 ms, each call of `until` takes `untilMs`. */
    async function timed(options: Omit<RunUntilOptions, "until">, untilMs = 0, budget = {}) {
      const clock = new FakeClock();
      const runtime = await openRuntime({ clock });
      const script = often.map((answer) => ({ ...answer, delayMs: 40 }));
      const model = scriptedModel(script, { clock });
      const agent = new Agent({ name: "scout", model, budget });
      const started = clock.now();
      const pause = (): Promise<false> =>
        new Promise((resolve) => void clock.schedule(clock.now() + untilMs, () => resolve(false)));
      const progress = { isOver: false };
      const work = agent
        .runUntil("Do it", { until: untilMs === 0 ? goOn : pause, runtime, ...options })
        .finally(() => (progress.isOver = true));
      while (!progress.isOver) await clock.advance(5);
      const took = clock.now() - started;
      await runtime.close();
      return { result: await work, model, took };
    }

    test.each<Omit<RunUntilOptions, "until">>([
      { timeoutMs: 100 },
      { budget: { deadlineMs: 100 } },
      { timeoutMs: 100, budget: { deadlineMs: 500 } },
      { timeoutMs: 500, budget: { deadlineMs: 100 } },
    ])(
      "runUntil() stops with run_until:deadline and the last answer, with the limits %o",
      async (options) => {
        const { result, model, took } = await timed(options);
        expect(result).toMatchObject({
          status: "deadline_exceeded",
          interruptionReason: "run_until:deadline",
          output: "answer 2",
          error: { code: "cancelled" },
        });
        expect(model.calls).toHaveLength(3);
        expect(took).toBeLessThanOrEqual(120);
      },
    );

    test("the time of until() counts towards timeoutMs, and no iteration starts after the deadline", async () => {
      const { result, model } = await timed({ timeoutMs: 100 }, 70);
      expect(result).toMatchObject({
        status: "deadline_exceeded",
        interruptionReason: "run_until:deadline",
        output: "answer 1",
        error: null,
      });
      expect(model.calls).toHaveLength(1);
    });

    test("a deadline of the agent ends runUntil() with the reason of the iteration", async () => {
      const { result } = await timed({ timeoutMs: 500 }, 0, { deadlineMs: 30 });
      expect(result).toMatchObject({ status: "deadline_exceeded", interruptionReason: "deadline exceeded" });
    });

    test("runUntil() with the same run id returns the same result after a timeout", async () => {
      const clock = new FakeClock();
      const runtime = await openRuntime({ clock });
      const script = ["one", { text: "two", delayMs: 60_000 }, "three"];
      for (const [name, budget] of [
        ["plain", {}],
        ["timed", { deadlineMs: 500 }],
      ] as const) {
        const model = scriptedModel(script, { clock });
        const agent = new Agent({ name, model, budget });
        const ask = async () => {
          const progress = { isOver: false };
          const runId = formatRunId(name);
          const work = agent
            .runUntil("Do it", { until: goOn, runtime, timeoutMs: 1_000, runId })
            .finally(() => (progress.isOver = true));
          while (!progress.isOver) await clock.advance(50);
          return work;
        };
        const first = await ask();
        expect(first).toMatchObject({
          status: "deadline_exceeded",
          interruptionReason: "run_until:deadline",
          output: "one",
        });
        expect(await ask()).toEqual(first);
        expect(model.calls).toHaveLength(2);
      }
      const late = new Agent({
        name: "late",
        model: scriptedModel([{ text: "x", delayMs: 60_000 }], { clock }),
      });
      const options = { until: goOn, runtime, timeoutMs: 100, runId: formatRunId("late") };
      const work = late.runUntil("Do it", options);
      await clock.advance(100);
      await clock.advance(5_000);
      const first = await work;
      expect(first.interruptionReason).toBe("run_until:deadline");
      expect(await late.runUntil("Do it", options)).toEqual(first);
      await runtime.close();
    });

    test("budget: null of runUntil() means no budget for the loop", async () => {
      const { agent } = scout(["finished"], { tools: [] });
      const options = { until, budget: null } as unknown as RunUntilOptions;
      expect(await agent.runUntil("Do it", options)).toMatchObject({ output: "finished" });
    });

    test("runUntil() stops with max_tokens before an iteration that does not fit, and keeps the previous answer", async () => {
      const of = async (maxTokens: number) => {
        const { agent, model } = scout(often, { tools: [] });
        const runtime = await openRuntime();
        const result = await agent.runUntil("Do it", { until: goOn, runtime, budget: { maxTokens } });
        await runtime.close();
        return { result, model };
      };
      const { result, model } = await of(500);
      expect(result).toMatchObject({
        status: "budget_exhausted",
        interruptionReason: "run_until:max_tokens",
        error: { code: "budget_exhausted", details: { dimension: "tokens" } },
      });
      const { calls } = model;
      expect(result).toMatchObject({ output: `answer ${calls.length}`, turns: calls.length });
      expect(result.error?.details).toMatchObject({ limit: 500 - 10 * calls.length });
      expect(await of(0)).toMatchObject({
        result: { status: "budget_exhausted", interruptionReason: "run_until:max_tokens", turns: 0 },
        model: { calls: [] },
      });
    });

    test("runUntil() stops with max_turns and keeps the previous answer", async () => {
      const { agent, model } = scout(often, { tools: [] });
      expect(await agent.runUntil("Do it", { until: goOn, budget: { maxTurns: 2 } })).toMatchObject({
        status: "budget_exhausted",
        interruptionReason: "run_until:max_turns",
        output: "answer 2",
        error: null,
      });
      expect(model.calls).toHaveLength(2);
      const looking = scout(["answer 1", looks, "answer 2"]);
      expect(await looking.agent.runUntil("Do it", { until: goOn, budget: { maxTurns: 2 } })).toMatchObject({
        interruptionReason: "run_until:max_turns",
        output: "answer 1",
        error: { details: { dimension: "turns", limit: 1 } },
      });
    });

    test.each([
      ["budget.maxCostUsd", { budget: { maxCostUsd: 0 } }],
      ["the smaller of budget.maxCostUsd and maxCostUsd", { budget: { maxCostUsd: 0 }, maxCostUsd: 5 }],
    ])("runUntil() stops with max_cost by %s", async (_what, options) => {
      const prices = priceCatalog({
        overrides: [
          { provider: "scripted", model: "script", usdPerMillion: { input: 1_000, output: 1_000 } },
        ],
      });
      const runtime = await openRuntime({ prices });
      const { agent } = scout(often, { tools: [] });
      expect(await agent.runUntil("Do it", { until: goOn, runtime, ...options })).toMatchObject({
        status: "budget_exhausted",
        interruptionReason: "run_until:max_cost",
      });
      await runtime.close();
    });
  });

  test("runUntil() refuses a run id that is too long for the iteration numbers before any model call", async () => {
    const { agent, model } = scout(["finished"]);
    const runId = (length: number) => `run_${"x".repeat(length - 4)}`;
    await expect(agent.runUntil("x", { until, runId: runId(66) })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(/^invalid runId: it has 66 characters.*at most 68$/u),
    });
    await expect(agent.runUntil("x", { until, runId: runId(65), maxIterations: 100 })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    expect(model.calls).toHaveLength(0);
    expect(await agent.runUntil("x", { until, runId: runId(65) })).toMatchObject({ output: "finished" });
  });

  test.each([[""], [" "], [false]])(
    "runUntil() continues with a standard message when until() returns %j",
    async (verdict) => {
      const { agent, model } = scout(["a", "finished"]);
      await agent.runUntil("Do it", { until: ({ iteration }) => iteration === 2 || verdict });
      expect(model.calls[1]?.messages.map(messageText).at(-1)).toBe("Continue: it is not done.");
    },
  );

  test.each([[undefined], [null], [1], [{}]])(
    "runUntil() rejects when until() returns %j",
    async (verdict) => {
      const { agent, model } = scout(["a", "b"]);
      const odd = (() => verdict) as unknown as RunUntilOptions["until"];
      await expect(agent.runUntil("Do it", { until: odd })).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringMatching(/^invalid result .* of until: /u),
      });
      expect(model.calls).toHaveLength(1);
    },
  );

  test("an iteration that does not complete ends runUntil() with that iteration's reason", async () => {
    const { agent } = scout([looks, looks], { maxTurns: 1 });
    expect(await agent.runUntil("Do it", { until })).toMatchObject({
      interruptionReason: "max_turns_exceeded",
    });
  });

  test("J1: runUntil() with the same run id repeats no paid model call", async () => {
    const runtime = await openRuntime();
    const { agent, model } = scout(["half way", "finished"]);
    await agent.runUntil("Do it", { until, runtime, ...ids });
    expect(await agent.runUntil("Do it", { until, runtime, ...ids })).toMatchObject({ output: "finished" });
    expect(model.calls).toHaveLength(2);
    await runtime.close();
  });

  test("runUntil() refuses maxIterations: 0", async () => {
    const { agent } = scout([]);
    await expect(agent.runUntil("x", { until, maxIterations: 0 })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
});
