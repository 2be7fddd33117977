import { describe, expect, test } from "vitest";
import {
  Agent,
  OrchestratorAgent,
  openRuntime,
  type RunUntilOptions,
  type StopHook,
} from "../../src/index.ts";
import { formatRunId, messageText, type Tool } from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
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

  test("the cost cap is that of all iterations together", async () => {
    const paid = scriptedModel(
      ["a", "b", "c"].map((text) => ({ text, usage: { inputTokens: 10, outputTokens: 10, costUsd: 0.4 } })),
    );
    const runtime = await openRuntime({ unknownPrice: "ignore" });
    const agent = new Agent({ name: "dear", model: paid });
    const result = await agent.runUntil("Do it", { until, maxCostUsd: 0.7, runtime });
    expect(["max_turns", "budget_exhausted"]).toContain(result.status);
    expect(paid.calls.length).toBeLessThanOrEqual(2);
    await runtime.close();
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
