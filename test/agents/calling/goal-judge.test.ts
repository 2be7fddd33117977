import { describe, expect, test } from "vitest";
import { Agent, openRuntime, priceCatalog, type JudgedLoopOptions } from "../../../src/entries/index.ts";
import { readVerdict } from "../../../src/agents/calling/goal-judge.ts";
import { messageText, type Model } from "../../../src/kernel/index.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const done = '{"done": true, "reason": "It names a town."}';
const notDone = (next: string): string => JSON.stringify({ done: false, reason: "no town", next });

function author(main: readonly ScriptStep[], judge: readonly ScriptStep[], more: object = {}) {
  const models = { main: scriptedModel(main), judge: scriptedModel(judge) };
  const agent = new Agent({ name: "author", model: models.main, models: { judge: models.judge }, ...more });
  return { agent, ...models };
}

/** A model that never answers. */
function silentModel(onCall: () => void): Model {
  const generate = (): Promise<never> => {
    onCall();
    return new Promise(() => undefined);
  };
  return { provider: "silent", modelId: "m", generate, stream: () => ({}) as never };
}

describe("runUntil({ judge })", () => {
  const judge = "The answer names a town.";

  test("runUntil() sends the judge's text to the agent until the judge accepts the answer", async () => {
    const { agent, main, judge: model } = author(["Somewhere.", "In Sens."], [notDone("Name a town."), done]);
    const result = await agent.runUntil("Where?", { judge });
    expect(result).toMatchObject({ status: "completed", output: "In Sens.", turns: 4 });
    expect(main.calls[1]?.messages.map(messageText)).toEqual(["Where?", "Somewhere.", "Name a town."]);
    // The judge sees the goal and one answer, never the conversation.
    const [system, asked, ...others] = model.calls[1]?.messages ?? [];
    expect(system?.role).toBe("system");
    expect(asked && messageText(asked)).toContain(
      `# Goal\n${judge}\n\n# Answer\n<answer>\nIn Sens.\n</answer>`,
    );
    expect(others).toEqual([]);
  });

  test("runUntil() uses the main model as judge of an agent without the role judge", async () => {
    const model = scriptedModel(["In Sens.", done]);
    const agent = new Agent({ name: "author", model });
    expect(await agent.runUntil("Where?", { judge })).toMatchObject({ status: "completed", turns: 2 });
  });

  test("B6: the cost of the judge's verdicts is in the result of runUntil() and counts against its budget", async () => {
    const tenth = { usage: { inputTokens: 90, outputTokens: 10 } };
    const usdPerMillion = { input: 1_000, output: 1_000 };
    const prices = priceCatalog({ overrides: [{ provider: "scripted", model: "script", usdPerMillion }] });
    await using runtime = await openRuntime({ prices });
    const { agent } = author([{ text: "In Sens.", ...tenth }], [{ text: done, ...tenth }]);
    const result = await agent.runUntil("Where?", { judge, runtime });
    expect(result).toMatchObject({ status: "completed", costUsd: 0.2, turns: 2 });
    const capped = author([{ text: "In Sens.", ...tenth }], [{ text: done, ...tenth }], { name: "capped" });
    const stopped = await capped.agent.runUntil("Where?", { judge, runtime, budget: { maxTurns: 1 } });
    expect(stopped).toMatchObject({
      status: "budget_exhausted",
      interruptionReason: "run_until:max_turns",
      output: "In Sens.",
      turns: 1,
    });
    expect(capped.judge.calls).toEqual([]);
  });

  test("three unreadable verdicts in a row pause runUntil(), and the error says how to continue", async () => {
    const bad = ["maybe", "{}", '{"done": "perhaps"}'];
    const { agent, main, judge: model } = author(["In Sens."], bad);
    const result = await agent.runUntil("Where?", { judge });
    expect(result).toMatchObject({
      status: "paused",
      output: "In Sens.",
      interruptionReason: "run_until:unreadable_verdicts",
      error: { code: "model_format_error" },
    });
    expect(result.error?.message).toContain("call runUntil() with the sessionId of this result");
    expect([main.calls.length, model.calls.length]).toEqual([1, 3]);
  });

  test("runUntil() that was paused continues in the session of its result", async () => {
    await using runtime = await openRuntime();
    const paused = author(["Somewhere."], ["?", "?", "?"]);
    const { sessionId } = await paused.agent.runUntil("Where?", { judge, runtime });
    const { agent, main } = author(["In Sens."], [done], { name: "again" });
    const result = await agent.runUntil("And?", { judge, runtime, sessionId });
    expect(result).toMatchObject({ status: "completed", output: "In Sens." });
    expect(main.calls[0]?.messages.map(messageText)).toEqual(["Where?", "Somewhere.", "And?"]);
  });

  test("runUntil() uses a readable verdict after two unreadable ones, and does not ask the agent in between", async () => {
    const { agent, main } = author(["Somewhere.", "In Sens."], ["?", "?", notDone("Name it."), "?", done]);
    expect(await agent.runUntil("Where?", { judge })).toMatchObject({ status: "completed", turns: 7 });
    expect(main.calls).toHaveLength(2);
  });

  test("maxIterations stops runUntil() if its judge never accepts the answer", async () => {
    const { agent } = author(["a", "b"], [notDone("c"), notDone("d")]);
    expect(await agent.runUntil("Where?", { judge, maxIterations: 2 })).toMatchObject({
      status: "max_turns",
      interruptionReason: "run_until:max_iterations",
      output: "b",
    });
  });

  test("a failed verdict ends runUntil() as failed with the last answer and the judge's error", async () => {
    const refused = { error: Object.assign(new Error("no key"), { status: 401 }) };
    const { agent } = author(["In Sens."], [refused]);
    expect(await agent.runUntil("Where?", { judge })).toMatchObject({
      status: "failed",
      output: "In Sens.",
      error: { code: "model_auth" },
    });
  });

  test("C2: an aborted signal stops runUntil() before the next verdict is paid", async () => {
    const controller = new AbortController();
    const { agent, judge: model } = author(["In Sens."], [done]);
    const abort = { name: "abort", onOutput: () => (controller.abort(), { decision: "allow" as const }) };
    const guarded = agent.with({ guardrails: [abort] });
    const result = await guarded.runUntil("Where?", { judge, signal: controller.signal });
    expect(result.status).toBe("cancelled");
    expect(model.calls).toEqual([]);
  });

  test("the deadline of runUntil() stops a judge that does not answer", async () => {
    const clock = new FakeClock();
    await using runtime = await openRuntime({ clock });
    const asked = Promise.withResolvers<void>();
    const model = silentModel(asked.resolve);
    const agent = new Agent({ name: "author", model: scriptedModel(["In Sens."]), models: { judge: model } });
    const ending = agent.runUntil("Where?", { judge, runtime, timeoutMs: 1_000 });
    await asked.promise;
    await clock.advance(20_000);
    expect(await ending).toMatchObject({
      status: "deadline_exceeded",
      interruptionReason: "run_until:deadline",
      output: "In Sens.",
    });
  });

  test.each(twoStores)(
    "a second runUntil() with the same runId repeats no iteration and no paid verdict, in a second runtime (%s)",
    async (_name, prepare) => {
      const open = await prepare();
      const options = { judge, runId: "run_goal" };
      const first = await openRuntime({ store: await open() });
      const script = [
        ["Somewhere.", "In Sens."],
        ["?", notDone("Name it."), done],
      ] as const;
      const before = author(...script);
      const result = await before.agent.runUntil("Where?", { ...options, runtime: first });
      await first.close();
      const second = await openRuntime({ store: await open() });
      const after = author([], []);
      const again = await after.agent.runUntil("Where?", { ...options, runtime: second });
      expect(again).toMatchObject({ status: "completed", output: "In Sens.", turns: 5, runId: result.runId });
      expect(again.usage).toEqual(result.usage);
      expect([after.main.calls, after.judge.calls]).toEqual([[], []]);
      await second.close();
    },
  );

  test.each(twoStores)(
    "runUntil() with the same runId continues a loop that was left during a verdict, in a second runtime (%s)",
    async (_name, prepare) => {
      const open = await prepare();
      const options = { judge, runId: "run_goal" };
      const first = await openRuntime({ store: await open(), closeGraceMs: 0 });
      const asked = Promise.withResolvers<void>();
      const model = scriptedModel(["In Sens."]);
      const left = new Agent({ name: "author", model, models: { judge: silentModel(asked.resolve) } });
      void left.runUntil("Where?", { ...options, runtime: first }).catch(() => undefined);
      await asked.promise;
      await first.close();
      const second = await openRuntime({ store: await open() });
      const { agent, main, judge: model2 } = author([], [done]);
      const result = await agent.runUntil("Where?", { ...options, runtime: second });
      expect(result).toMatchObject({ status: "completed", output: "In Sens." });
      expect([main.calls.length, model2.calls.length]).toEqual([0, 1]);
      await second.close();
    },
  );

  test.each([
    [{}, "expected either until or judge"],
    [{ judge, until: () => true }, "expected either until or judge, not both"],
    [{ judge: "" }, 'invalid judge "" of runUntil(): expected a text'],
    [{ judge: true }, "invalid judge true of runUntil()"],
    [{ until: "done" }, 'invalid until "done" of runUntil(): expected a function'],
    [{ judge, runId: `run_${"a".repeat(60)}` }, "expected at most 68"],
  ])("runUntil(%j) is refused before anything is paid", async (options, message) => {
    const { agent, main } = author(["In Sens."], [done]);
    const running = agent.runUntil("Where?", options as unknown as JudgedLoopOptions);
    await expect(running).rejects.toThrow(message);
    expect(main.calls).toEqual([]);
  });

  test("runUntil({ judge }) is refused for an agent without a model", async () => {
    const { agent: worker } = author([], []);
    const flow = new Agent({ name: "flow", architecture: { ...emptyArchitecture }, subAgents: [worker] });
    await expect(flow.runUntil("Where?", { judge })).rejects.toThrow("has no model for the role judge");
  });
});

const emptyArchitecture = {
  name: "empty",
  requiresModel: false,
  declaredWorkers: () => ({}),
  async *run() {
    yield* [];
  },
};

describe("readVerdict()", () => {
  test.each([
    ['{"done": true}', true],
    ['Thinking aloud.\n```json\n{"done": false, "next": "Go on."}\n```', "Go on."],
    ['{"done": "yes"}', true],
    ['{"done": "No", "reason": "too short"}', "too short"],
    ['{"done": false}', ""],
    ['<think>{"done": true}</think>{"done": false, "next": "More."}', "More."],
    ["done", undefined],
    ["", undefined],
    ["[true]", undefined],
    ['{"done": null}', undefined],
    ['{"done": 1}', undefined],
  ])("readVerdict() reads the verdict in %j as %j", (text, verdict) => {
    expect(readVerdict(text)).toBe(verdict);
  });
});
