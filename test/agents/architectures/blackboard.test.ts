import { describe, expect, test } from "vitest";
import { blackboard, type BlackboardOptions } from "../../../src/agents/architectures/index.ts";
import { Agent, type AgentOptions } from "../../../src/entries/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { asked, company, notesOf, runAlone, seen, worker } from "../company.ts";

const entry = (kind: string, content: string, own = ""): string =>
  JSON.stringify({ kind, content, private: own });
const next = (nextAgent: string, instruction = ""): string =>
  JSON.stringify({ terminate: false, nextAgent, instruction });
const done = JSON.stringify({ terminate: true });

function room(
  scripts: Readonly<Record<string, readonly ScriptStep[]>>,
  options: Partial<BlackboardOptions> = {},
  agentOptions: Partial<AgentOptions> = {},
) {
  const workers = Object.entries(scripts).map(([name, script]) => [name, worker(name, script)] as const);
  const agents = Object.fromEntries(workers.map(([name, { agent }]) => [name, agent]));
  const architecture = blackboard({ agents, ...options });
  const modelOf = (name: string) => Object.fromEntries(workers)[name]?.model ?? scriptedModel([]);
  return { agent: new Agent({ name: "room", architecture, ...agentOptions }), modelOf };
}

function coordinatedRoom(
  coordinator: readonly ScriptStep[],
  scripts: Readonly<Record<string, readonly ScriptStep[]>>,
  options: Partial<BlackboardOptions> = {},
) {
  const model = scriptedModel(coordinator);
  return { model, ...room(scripts, { coordinator: "self", ...options }, { model }) };
}

describe("blackboard()", () => {
  test("the coordinator of blackboard() chooses who writes and when to end; the last answer on the board is the result", async () => {
    const { agent, model, modelOf } = coordinatedRoom([next("ada", "Count them."), next("bob"), done], {
      ada: [entry("note", "There are four.")],
      bob: [entry("answer", "Four.")],
    });
    const { result, notes, events } = await runAlone(agent, "How many?");
    expect(result).toMatchObject({ status: "completed", output: "Four." });
    expect(asked(modelOf("ada"))[0]).toBe(
      "# Question\nHow many?\n\n# Board\n(nothing yet)\n\n# What to look at\nCount them.",
    );
    expect(asked(modelOf("bob"))[0]).toContain("## ada, note\nThere are four.");
    expect(seen(model)[0]?.[0]).toContain("- ada: ada\n- bob: bob");
    expect(asked(model)[1]).toContain("## ada, note\nThere are four.");
    const turn = ["coordinator_decided", "invoking", "contribution"];
    expect(notes).toEqual(
      ["started", ...turn, ...turn, "coordinator_decided", "completed"].map((name) => `blackboard.${name}`),
    );
    expect(notesOf(events)[3]?.data).toEqual({
      round: 1,
      agent: "ada",
      kind: "note",
      content: "There are four.",
    });
    expect(result.metadata).toMatchObject({ blackboard: { rounds: 3, entries: [{}, { kind: "answer" }] } });
  });

  test("blackboard() without a coordinator lets the agents write in turn until one writes an answer, and needs no model", async () => {
    const { agent, modelOf } = room({
      ada: ["I think it is four.", entry("answer", "Four.")],
      bob: [entry("guess", "Five?")],
    });
    const { result } = await runAlone(agent);
    expect(result.output).toBe("Four.");
    expect(asked(modelOf("ada"))[1]).toContain("## ada, note\nI think it is four.\n\n## bob, guess\nFive?");
  });

  test("blackboard() shows a private note only to the agent that wrote it", async () => {
    const { agent, modelOf } = room({
      ada: [entry("note", "Hm.", "the key is 7"), entry("answer", "Done.")],
      bob: [entry("note", "Hm, too.")],
    });
    const { events } = await runAlone(agent);
    expect(asked(modelOf("bob"))[0]).not.toContain("the key is 7");
    expect(asked(modelOf("ada"))[1]).toContain("# Your private notes\nthe key is 7");
    expect(JSON.stringify(notesOf(events))).not.toContain("the key is 7");
  });

  test("a reply of the coordinator of blackboard() that names no known agent uses up one round and calls no agent", async () => {
    const { agent, modelOf } = coordinatedRoom(
      ["Hm.", next("eve"), '{"terminate": false}', next("ada"), done],
      {
        ada: [entry("answer", "Four.")],
      },
    );
    const { result, notes } = await runAlone(agent);
    expect(result.output).toBe("Four.");
    expect(notes.slice(1, 5)).toEqual([
      "blackboard.no_contributor",
      "blackboard.coordinator_decided",
      "blackboard.unknown_agent",
      "blackboard.no_contributor",
    ]);
    expect(modelOf("ada").calls).toHaveLength(1);
  });

  test("the decider of blackboard() writes the answer from the board", async () => {
    const decider = scriptedModel(["About four."]);
    const model = scriptedModel([next("ada"), done]);
    const { agent } = room(
      { ada: ["Three.", "never"] },
      { coordinator: "self", decider: "self" },
      { model, models: { decider } },
    );
    expect((await runAlone(agent, "How many?")).result.output).toBe("About four.");
    expect(asked(decider)).toEqual(["# Question\nHow many?\n\n# Board\n## ada, note\nThree."]);
  });

  test("the coordinator and the decider of blackboard() may be agents, which are then declared as workers", async () => {
    const [chair, judge] = [worker("chair", [next("ada"), done]), worker("wise", ["Four, then."])];
    const { agent } = room({ ada: ["Four."] }, { coordinator: chair.agent, decider: judge.agent });
    expect((await runAlone(agent)).result.output).toBe("Four, then.");
    expect(Object.keys(agent.architecture.declaredWorkers())).toEqual(["ada", "coordinator", "decider"]);
  });

  test("blackboard() returns its last entry if the coordinator ends without an entry of kind answer", async () => {
    const { agent } = coordinatedRoom([next("ada"), done], { ada: ["Four, I think."] });
    expect((await runAlone(agent)).result).toMatchObject({ status: "completed", output: "Four, I think." });
  });

  test("blackboard() without an answer is interrupted with max_rounds after maxRounds, or with blackboard_empty if it is empty", async () => {
    const { agent, modelOf } = room({ ada: Array.from({ length: 10 }, (_, index) => `note ${index}`) });
    expect((await runAlone(agent)).result).toMatchObject({
      status: "max_turns",
      interruptionReason: "max_rounds",
      output: "note 9",
    });
    expect(modelOf("ada").calls).toHaveLength(10);
    const empty = coordinatedRoom([done], { ada: [] });
    expect((await runAlone(empty.agent)).result).toMatchObject({
      status: "failed",
      interruptionReason: "blackboard_empty",
    });
  });

  test("blackboard() writes a problem entry for an agent that fails, and the other agents continue", async () => {
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const { agent, model } = coordinatedRoom([next("ada"), next("bob"), done], {
      ada: [{ error }],
      bob: [entry("answer", "Four.")],
    });
    expect((await runAlone(agent)).result.output).toBe("Four.");
    expect(asked(model)[1]).toContain(
      "## ada, problem\nada ended with status failed: scripted/script failed with HTTP 401: bad key",
    );
  });

  test("B5: blackboard() returns its best entry when the budget is exhausted", async () => {
    const { agent } = coordinatedRoom([next("ada"), next("bob")], {
      ada: [entry("answer", "Four.")],
      bob: ["never"],
    });
    const { result } = await runAlone(agent, "Go.", { budget: { maxTurns: 2 } });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "Four." });
  });

  test("C1: blackboard() calls no model after a cancel while an agent writes", async () => {
    const { runtime, clock, ended } = await company();
    const ada = worker("ada", [{ text: "late", delayMs: 50 }], {}, { clock });
    const bob = worker("bob", ["never"]);
    const architecture = blackboard({ agents: { ada: ada.agent, bob: bob.agent } });
    const run = await runtime.submit(new Agent({ name: "room", architecture }), "Go.");
    await until(() => ada.model.calls.length === 1);
    await run.cancel("enough");
    expect((await ended(run)).result.status).toBe("cancelled");
    await clock.advance(1_000);
    expect([ada.model.calls.length, bob.model.calls.length]).toEqual([1, 0]);
  });

  test("blackboard() refuses missing agents, an invalid maxRounds and a member named like an advisor", () => {
    expect(() => room({})).toThrow("blackboard needs at least one agent: agents has 0");
    expect(() => room({ a: [] }, { maxRounds: 0.5 })).toThrow("invalid maxRounds 0.5 of blackboard()");
    expect(() => room({ decider: [] }, { decider: worker("w", []).agent })).toThrow(
      'blackboard has a decider and a member named "decider"',
    );
  });
});
