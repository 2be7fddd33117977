import { describe, expect, test } from "vitest";
import { debate, type DebateOptions } from "../../../src/agents/architectures/index.ts";
import { Agent, Priority, type AgentOptions } from "../../../src/entries/index.ts";
import { parseSessionId } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { settle, until } from "../../runtime/runtime-setup.ts";
import { asked, company, notesOf, runAlone, seen, worker } from "../company.ts";

function forum(
  scripts: Readonly<Record<string, readonly ScriptStep[]>>,
  options: Partial<DebateOptions> = {},
  agentOptions: Partial<AgentOptions> = {},
) {
  const workers = Object.entries(scripts).map(([name, script]) => [name, worker(name, script)] as const);
  const debaters = Object.fromEntries(workers.map(([name, { agent }]) => [name, agent]));
  const models = Object.fromEntries(workers.map(([name, { model }]) => [name, model]));
  const architecture = debate({ debaters, ...options });
  return { agent: new Agent({ name: "forum", architecture, ...agentOptions }), models };
}

const model = (foundModel: ReturnType<typeof scriptedModel> | undefined) => foundModel ?? scriptedModel([]);

describe("debate()", () => {
  test("each agent of debate() answers alone and then with the answers of the others, and the most frequent answer wins", async () => {
    const { agent, models } = forum({
      ada: ["Tea", "Tea"],
      bob: ["Coffee", "tea."],
      eve: ["Milk", "Coffee"],
    });
    const { result, notes, events } = await runAlone(agent, "What to drink?");
    expect(result).toMatchObject({ status: "completed", output: "Tea" });
    const [first, second] = seen(model(models["bob"]));
    expect(first).toEqual(["What to drink?"]);
    for (const part of ["What to drink?", "# Your answer so far\nCoffee", "## ada\nTea", "## eve\nMilk"])
      expect(second?.[0]).toContain(part);
    expect(second?.[0]).not.toContain("## bob");
    const round = ["round_started", "response", "response", "response"];
    expect(notes).toEqual([...round, ...round, "synthesized"].map((name) => `debate.${name}`));
    expect(notesOf(events)[1]?.data).toEqual({ round: 0, debater: "ada", answer: "Tea" });
    expect(result.metadata).toEqual({
      debate: { rounds: 2, answers: { ada: "Tea", bob: "tea.", eve: "Coffee" } },
    });
  });

  test("the agents of debate() answer in parallel within one round", async () => {
    const { runtime, clock, ended } = await company();
    const slow = (name: string) => worker(name, [{ text: "x", delayMs: 5 }], {}, { clock });
    const [ada, bob] = [slow("ada"), slow("bob")];
    const architecture = debate({ debaters: { ada: ada.agent, bob: bob.agent } });
    const run = await runtime.submit(new Agent({ name: "forum", architecture }), "Go.");
    await until(() => ada.model.calls.length === 1 && bob.model.calls.length === 1);
    await clock.advance(5);
    expect((await ended(run)).result.output).toBe("x");
  });

  test("debate() ends as soon as all answers are nearly the same, even in the first round", async () => {
    const { agent, models } = forum({
      ada: ["The sea is blue today, said he."],
      bob: ["the sea IS blue today said he"],
    });
    const { result, notes } = await runAlone(agent);
    expect(result.output).toBe("The sea is blue today, said he.");
    expect(notes.slice(-2)).toEqual(["debate.converged", "debate.synthesized"]);
    expect(model(models["ada"]).calls).toHaveLength(1);
    expect(result.metadata).toMatchObject({ debate: { rounds: 1 } });
  });

  test.each([
    ["continues if answers are less similar than the threshold", "a b c d e f g h i x", 0.85, false],
    ["converges if answers reach a lower threshold", "a b c d e f g h i x", 0.8, true],
  ])("debate() %s", async (_what, other, convergenceThreshold, converges) => {
    const { agent } = forum(
      { ada: ["a b c d e f g h i j", "a"], bob: [other, "b"] },
      { convergenceThreshold },
    );
    expect((await runAlone(agent)).notes.includes("debate.converged")).toBe(converges);
  });

  test("debate() runs every round if detectConvergence is false", async () => {
    const { agent, models } = forum(
      { ada: ["x", "x", "x"], bob: ["x", "x", "x"] },
      { rounds: 3, detectConvergence: false },
    );
    expect((await runAlone(agent)).notes).not.toContain("debate.converged");
    expect(model(models["bob"]).calls).toHaveLength(3);
  });

  test.each([
    [["7", "-7", "-7"], "-7"],
    [["3.5", "35", "35."], "35"],
    [["**Paris**", "paris!", "Rome"], "**Paris**"],
    [["one", "two", "three"], "one"],
    [["b", "a", "A", "B"], "b"],
  ])("debate() with the votes %j elects %j", async (answers, won) => {
    const scripts = Object.fromEntries(answers.map((answer, index) => [`d${index}`, [answer]]));
    const { agent } = forum(scripts, { rounds: 1 });
    expect((await runAlone(agent)).result.output).toBe(won);
  });

  test('debate() with judge: "self" lets the model of the role judge write the answer', async () => {
    const judge = scriptedModel(["Both, mixed."]);
    const { agent } = forum(
      { ada: ["Tea"], bob: ["Coffee"] },
      { rounds: 1, judge: "self" },
      { model: scriptedModel([]), models: { judge }, instructions: "You run a café." },
    );
    const { result, notes } = await runAlone(agent, "What to drink?");
    expect(result.output).toBe("Both, mixed.");
    expect(asked(judge)).toEqual(["# Question\nWhat to drink?\n\n# Answers\n## ada\nTea\n\n## bob\nCoffee"]);
    expect(seen(judge)[0]?.[0]).toContain("You run a café.");
    expect(notes.slice(-2)).toEqual(["debate.judging", "debate.synthesized"]);
  });

  test("a judge of debate() that is an agent is spawned as a worker and writes the answer", async () => {
    const judge = worker("wise", ["Neither."]);
    const { agent } = forum({ ada: ["Tea"], bob: ["Coffee"] }, { rounds: 1, judge: judge.agent });
    expect((await runAlone(agent)).result.output).toBe("Neither.");
    expect(agent.architecture.declaredWorkers()).toHaveProperty("judge", judge.agent);
  });

  test("an output schema of debate() applies to the debaters, or to the judge if there is one", async () => {
    const output = {
      type: "object",
      properties: { drink: { type: "string" } },
      required: ["drink"],
    } as const;
    const question = { prompt: "What to drink?", output };
    const tea = '{"drink":"tea"}';
    const voting = forum({ ada: [tea], bob: [tea] });
    expect((await runAlone(voting.agent, question)).result.output).toEqual({ drink: "tea" });
    const judge = worker("wise", [tea]);
    const judged = forum({ ada: ["Tea"], bob: ["Milk"] }, { rounds: 1, judge: judge.agent });
    expect((await runAlone(judged.agent, question)).result.output).toEqual({ drink: "tea" });
    expect(judge.model.calls[0]?.responseFormat).toMatchObject({ type: "json" });
  });

  test("a debater that fails leaves debate(), and the other debaters continue", async () => {
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const { agent, models } = forum({ ada: ["Tea", "Tea"], bob: [{ error }], eve: ["Milk", "Tea"] });
    const { result, events } = await runAlone(agent);
    expect(result).toMatchObject({ status: "completed", output: "Tea" });
    expect(notesOf(events)[2]?.data["why"]).toContain(
      "bob ended with status failed: scripted/script failed with HTTP 401: bad key",
    );
    expect(model(models["bob"]).calls).toHaveLength(1);
  });

  test("the last remaining debater of debate() wins without a judge, and debate() without any answer fails", async () => {
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const one = forum({ ada: [{ error }], bob: ["Tea"] }, { judge: worker("wise", []).agent });
    expect((await runAlone(one.agent)).result.output).toBe("Tea");
    const none = forum({ ada: [{ error }], bob: [{ error }] });
    expect((await runAlone(none.agent)).result.error).toMatchObject({ code: "child_failed" });
  });

  test("the agents of debate() do not remember earlier rounds, and the next invocation sees the conversation with the user", async () => {
    const { run } = await company();
    const { agent, models } = forum({ ada: ["Tea", "Hot"], bob: ["tea", "hot"] });
    const sessionId = parseSessionId("forum");
    await run(agent, "What to drink?", { sessionId });
    await run(agent, "How?", { sessionId });
    expect(seen(model(models["bob"]))).toEqual([["What to drink?"], ["What to drink?", "Tea", "How?"]]);
  });

  test("B5: debate() returns the vote of the first round when the budget is exhausted in the second round", async () => {
    const { agent } = forum({ ada: ["Tea", "x"], bob: ["Milk", "y"] });
    const { result } = await runAlone(agent, "Go.", { budget: { maxTurns: 2 } });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "Tea" });
  });

  test("C1: debate() starts no second round after a cancel in the first round", async () => {
    const { runtime, clock, ended } = await company();
    const slow = (name: string) => worker(name, [{ text: name, delayMs: 50 }, "never"], {}, { clock });
    const [ada, bob] = [slow("ada"), slow("bob")];
    const architecture = debate({ debaters: { ada: ada.agent, bob: bob.agent } });
    const run = await runtime.submit(new Agent({ name: "forum", architecture }), "Go.");
    await until(() => bob.model.calls.length === 1);
    await run.cancel("enough");
    expect((await ended(run)).result.status).toBe("cancelled");
    await clock.advance(1_000);
    expect([ada.model.calls.length, bob.model.calls.length]).toEqual([1, 1]);
  });

  test("debate() refuses too few debaters, invalid numbers, a debater named judge and a missing model", () => {
    expect(() => forum({ ada: [] })).toThrow("debate needs at least 2 agents: debaters has 1");
    expect(() => forum({ ada: [], bob: [] }, { rounds: 0 })).toThrow("invalid rounds 0 of debate()");
    expect(() => forum({ ada: [], bob: [] }, { convergenceThreshold: -1 })).toThrow("convergenceThreshold");
    expect(() => forum({ judge: [], bob: [] }, { judge: worker("w", []).agent })).toThrow(
      'debate has a judge and a member named "judge"',
    );
    expect(() => forum({ ada: [], bob: [] }, { judge: "self" })).toThrow("set the option `model`");
  });

  test("H3, H5: debate() waits for a debater that loses its seat, and does not repeat the debater's model call", async () => {
    const { runtime, clock, ended } = await company();
    const minor = worker("minor", [{ text: "small", delayMs: 10 }, "small"], {}, { clock });
    const major = worker("major", ["big", "big"]);
    const agent = new Agent({
      name: "panel",
      architecture: debate({
        debaters: {
          minor: { agent: minor.agent, priority: Priority.LOW },
          major: { agent: major.agent, priority: Priority.HIGH },
        },
        rounds: 1,
      }),
      spawnBudget: { maxAgents: 2, allowPreempt: true },
    });
    const run = await runtime.submit(agent, "Go.");
    await until(() => minor.model.calls.length === 1);
    await settle();
    await clock.advance(10);
    const { result, events } = await ended(run);
    expect(result.metadata["debate"]).toEqual({ rounds: 1, answers: { minor: "small", major: "big" } });
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(["spawn_wait", "seat_yield"]));
    expect([minor.model.calls.length, major.model.calls.length]).toEqual([1, 1]);
  });

  test.for([1, 2])(
    "H4: debate() with maxAgents %i continues with the debaters that get a seat, or fails without any",
    async (maxAgents) => {
      const names = ["a", "b"].map((name) => [name, worker(name, ["It is so."]).agent]);
      const architecture = debate({ debaters: Object.fromEntries(names) as Record<string, Agent> });
      const { result } = await runAlone(
        new Agent({ name: "panel", architecture, spawnBudget: { maxAgents } }),
      );
      expect(result).toMatchObject(
        maxAgents === 1
          ? { status: "failed", error: { code: "child_failed" } }
          : { status: "completed", output: "It is so." },
      );
    },
  );
});
