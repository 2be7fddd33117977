import { describe, expect, test } from "vitest";
import {
  Agent,
  OrchestratorAgent,
  openRuntime,
  priceCatalog,
  type RunUntilOptions,
  type StopHook,
} from "../../src/index.ts";
import { formatRunId, messageText, type Tool } from "../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../src/testing/index.ts";
import { look, looks, scout } from "./scout.ts";

describe("runUntil", () => {
  const ids = { runId: formatRunId("goal") };
  const until: RunUntilOptions["until"] = ({ result }) => result.output === "finished";

  test("invokes it again in the session until what it says will do", async () => {
    const { agent, model } = scout(["half way", "finished"]);
    const result = await agent.runUntil("Do it", {
      until: (state) => (state.result.output === "finished" ? true : `not yet (${state.iteration})`),
    });
    expect(result).toMatchObject({ status: "completed", output: "finished" });
    expect(model.calls[1]?.messages.map(messageText)).toEqual(["Do it", "half way", "not yet (1)"]);
  });

  test("max_iterations caps the loop", async () => {
    const { agent, model } = scout(["a", "b", "c", "d"]);
    expect(await agent.runUntil("Do it", { until, maxIterations: 3 })).toMatchObject({
      status: "max_turns",
      output: "c",
      interruptionReason: "run_until:max_iterations",
    });
    expect(model.calls).toHaveLength(3);
  });

  test("no progress stops it when the output does not change", async () => {
    const { agent, model } = scout(["same", "same", "same", "finished"]);
    expect(await agent.runUntil("Do it", { until })).toMatchObject({
      interruptionReason: "run_until:no_progress",
    });
    expect(model.calls).toHaveLength(3);
  });

  describe("the cost of all iterations", () => {
    const tenth = { usage: { inputTokens: 90, outputTokens: 10 } };
    /** A dollar for a thousand tokens: a round costs 0.1, and more is held for it. */
    const prices = priceCatalog({
      overrides: [{ provider: "scripted", model: "script", usdPerMillion: { input: 1_000, output: 1_000 } }],
    });
    async function rounds(
      script: readonly ScriptStep[],
      options: Partial<RunUntilOptions>,
      agentOptions: Partial<ConstructorParameters<typeof Agent>[0]> = {},
    ) {
      await using stack = new AsyncDisposableStack();
      const runtime = await openRuntime({ prices });
      stack.defer(() => runtime.close());
      const { agent, model } = scout(script, { tools: [], ...agentOptions });
      const seen: (number | null)[] = [];
      const watch: RunUntilOptions["until"] = (state) => {
        seen.push(state.costUsd);
        return until(state);
      };
      return { seen, model, result: await agent.runUntil("Do it", { until: watch, runtime, ...options }) };
    }
    const three = ["a", "b", "finished"].map((text) => ({ text, ...tenth }));

    test("is that of the result, with their usage and turns", async () => {
      const { result, seen } = await rounds(three, {});
      expect(seen).toEqual([0.1, 0.2, 0.3]);
      expect(result).toMatchObject({ status: "completed", output: "finished", costUsd: 0.3, turns: 3 });
      expect(result.usage).toMatchObject({ inputTokens: 270, outputTokens: 30, costUsd: 0.3 });
    });

    test("has one cap: an iteration that no longer fits leaves the last answer and the whole bill", async () => {
      const { result, model } = await rounds(three, { maxCostUsd: 0.25, until: () => false });
      expect(result).toMatchObject({
        status: "budget_exhausted",
        interruptionReason: "run_until:max_cost",
        output: "b",
        costUsd: 0.2,
        turns: 2,
        failure: { code: "budget_exhausted", details: { dimension: "costUsd", limit: 0.05 } },
      });
      expect(model.calls).toHaveLength(2);
    });

    test("has one cap: nothing is begun when nothing is left", async () => {
      const { result, model } = await rounds(three, { maxCostUsd: 0.1, until: () => false });
      expect(result).toMatchObject({
        status: "budget_exhausted",
        interruptionReason: "run_until:max_cost",
        output: "a",
        costUsd: 0.1,
        failure: null,
      });
      expect(model.calls).toHaveLength(1);
    });

    test("has one cap: what there is of a first answer is given, too", async () => {
      const { result } = await rounds(three, { maxCostUsd: 0.01 });
      expect(result).toMatchObject({
        status: "budget_exhausted",
        interruptionReason: "run_until:max_cost",
        costUsd: 0,
        failure: { details: { limit: 0.01 } },
      });
    });

    test("counts an iteration that did not complete", async () => {
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

    test("a cap of the agent's own, which is of each run, is not that of the loop", async () => {
      const { result } = await rounds(three, { maxCostUsd: 5 }, { budget: { maxCostUsd: 0.02 } });
      expect(result).toMatchObject({ status: "budget_exhausted", failure: { details: { limit: 0.02 } } });
      expect(result.interruptionReason).not.toMatch(/^run_until/u);
    });
  });

  test("an iteration that does not complete ends it", async () => {
    const { agent } = scout([looks, looks], { maxTurns: 1 });
    expect(await agent.runUntil("Do it", { until })).toMatchObject({
      interruptionReason: "max_turns_exceeded",
    });
  });

  test("asked again under its id it pays for nothing that was answered", async () => {
    const runtime = await openRuntime();
    const { agent, model } = scout(["half way", "finished"]);
    await agent.runUntil("Do it", { until, runtime, ...ids });
    expect(await agent.runUntil("Do it", { until, runtime, ...ids })).toMatchObject({ output: "finished" });
    expect(model.calls).toHaveLength(2);
    await runtime.close();
  });

  test("a bound that makes no sense is refused", async () => {
    const { agent } = scout([]);
    await expect(agent.runUntil("x", { until, maxIterations: 0 })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
});

describe("stop hooks", () => {
  const twice: StopHook = {
    name: "twice",
    shouldContinue: ({ continued }) => (continued < 2 ? `again ${continued}` : undefined),
  };

  test("may send it on, in the same session, within one run", async () => {
    const { agent, model } = scout(["a", "b", "c"], { stopHooks: [twice] });
    expect(await agent.invoke("Go")).toMatchObject({ status: "completed", output: "c", turns: 3 });
    expect(model.calls[2]?.messages.map(messageText)).toEqual(["Go", "a", "again 0", "b", "again 1"]);
  });

  test("the first that has something to say is heard; one that throws is recorded and counts as nothing", async () => {
    const broken: StopHook = {
      name: "broken",
      shouldContinue: () => {
        throw new Error("hook broke");
      },
    };
    const { agent } = scout(["a", "b"], {
      stopHooks: [
        broken,
        { ...twice, shouldContinue: ({ continued }) => (continued === 0 ? "more" : undefined) },
      ],
    });
    const stream = agent.stream("Go");
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types.filter((type) => type === "hook_error")).toHaveLength(2);
    expect(await stream.result()).toMatchObject({ output: "b" });
  });

  test("15 times at most", async () => {
    const script = Array.from({ length: 20 }, (_, index) => `answer ${index}`);
    const { agent, model } = scout(script, { stopHooks: [{ name: "never", shouldContinue: () => "more" }] });
    expect(await agent.invoke("Go")).toMatchObject({
      status: "max_turns",
      interruptionReason: "max_continuations",
    });
    expect(model.calls).toHaveLength(16);
  });
});

describe("tools that come and go", () => {
  test.each(["alone", "as an orchestrator"])("are there from the next invocation on: %s", async (kind) => {
    const list: Tool[] = [];
    const model = scriptedModel([looks, "nothing to look with", looks, "rain"]);
    const options = { name: "lead", model, tools: list };
    const worker = new Agent({ name: "worker", model: scriptedModel([]) });
    const agent =
      kind === "alone"
        ? new Agent(options)
        : new OrchestratorAgent({ ...options, subAgents: [{ agent: worker }] });
    const own = kind === "alone" ? [] : ["handoff_worker"];
    await agent.invoke("Look");
    list.push(look);
    await agent.invoke("Look");
    const offered = model.calls.map(({ tools = [] }) => tools.map(({ name }) => name));
    expect(offered).toEqual([own, own, ["look", ...own], ["look", ...own]]);
    const [missing, found] = [model.calls[1], model.calls[3]].map((call) =>
      JSON.stringify(call?.messages.at(-1)),
    );
    expect(missing).toContain("there is no tool look");
    expect(found).toContain("rain in Sens");
  });
});
