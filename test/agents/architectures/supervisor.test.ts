import { describe, expect, test } from "vitest";
import {
  deepAgent,
  reflexion,
  selfRefine,
  supervisor,
  type SupervisorOptions,
} from "../../../src/agents/architectures/index.ts";
import { Agent, type AgentOptions } from "../../../src/index.ts";
import { messageText, parseSessionId } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { asked, company, notesOf, resultsIn, runAlone, seen, worker } from "../company.ts";
import { findRun } from "../../runtime/find-run.ts";

const sessionId = parseSessionId("office");

const delegate = (to: string, task: string) => ({ name: "delegate", input: { worker: to, task } });
const forward = (from: string) => ({ name: "forward_message", input: { worker: from } });
const spawn = (name: string, instructions = `You are ${name}.`) => ({
  name: "spawn_worker",
  input: { name, instructions },
});
const calling = (...toolCalls: readonly { readonly name: string; readonly input: object }[]): ScriptStep =>
  ({ toolCalls }) as ScriptStep;

function office(script: readonly ScriptStep[], options: SupervisorOptions, more: Partial<AgentOptions> = {}) {
  const model = scriptedModel(script);
  return { model, agent: new Agent({ name: "boss", model, architecture: supervisor(options), ...more }) };
}

describe("a supervisor", () => {
  test("delegates to workers and goes on with their answers", async () => {
    const reader = worker("reader", ["Three pages."], { description: "Reads." });
    const { agent, model } = office([calling(delegate("reader", "How long is it?")), "It is short."], {
      workers: { reader: reader.agent },
    });
    const { result, notes } = await runAlone(agent);
    expect(result).toMatchObject({ status: "completed", output: "It is short." });
    const tools = model.calls[0]?.tools?.map(({ name, description }) => [name, description]);
    expect(tools?.map(([name]) => name)).toEqual(["delegate", "forward_message"]);
    expect(tools?.[0]?.[1]).toContain("- reader: Reads.");
    expect(asked(reader.model)).toEqual(["How long is it?"]);
    expect(notes).toEqual(["supervisor.workers_ready", "supervisor.completed"]);
  });

  test("what is delegated in one turn is done side by side", async () => {
    const { runtime, clock, ended } = await company();
    const one = worker("one", [{ text: "1", delayMs: 10 }], {}, { clock });
    const two = worker("two", [{ text: "2", delayMs: 10 }], {}, { clock });
    const { agent, model } = office([calling(delegate("one", "a"), delegate("two", "b")), "Both."], {
      workers: { one: one.agent, two: two.agent },
    });
    const run = await runtime.submit(agent, "Go.");
    await until(() => one.model.calls.length === 1 && two.model.calls.length === 1);
    await clock.advance(10);
    expect((await ended(run)).result.output).toBe("Both.");
    expect(resultsIn(model)).toEqual(["1", "2"]);
  });

  test("forwards a worker's last answer word for word, without another call", async () => {
    const poet = worker("poet", ["Roses.", "  Violets,\n are *blue*.  "]);
    const { agent, model } = office(
      [calling(delegate("poet", "a")), calling(delegate("poet", "b")), calling(forward("poet"))],
      { workers: { poet: poet.agent } },
    );
    const { run, store } = await company();
    const { result, notes } = await run(agent, "A poem!", { sessionId });
    expect(result).toMatchObject({ status: "completed", output: "  Violets,\n are *blue*.  ", turns: 5 });
    expect(model.calls).toHaveLength(3);
    expect(notes).toContain("supervisor.forwarded");
    const last = (await store.sessions.read(sessionId)).at(-1)?.entry;
    expect(last?.type === "message" && messageText(last.message)).toBe("  Violets,\n are *blue*.  ");
  });

  const nothing = { name: "nothing", input: {} };

  test.each([
    ["after what is delegated", [delegate("a", "t"), forward("a")], "from a"],
    ["before another call", [delegate("a", "t"), forward("a"), nothing], "from a"],
    ["after another call", [delegate("a", "t"), nothing, forward("a")], "from a"],
    ["before more is delegated", [delegate("a", "t"), forward("a"), delegate("a", "u")], "from a"],
    ["beside what cannot be forwarded", [delegate("a", "t"), forward("a"), forward("b")], "from a"],
  ] as const)("forwards, without another call, in the same turn %s", async (_where, calls, output) => {
    const a = worker("a", ["from a", "more from a"]);
    const { agent, model } = office([calling(...calls), "I passed it on."], {
      workers: { a: a.agent, b: worker("b", []).agent },
    });
    const { result, notes } = await runAlone(agent);
    expect(result).toMatchObject({ output, status: "completed" });
    expect(model.calls).toHaveLength(1);
    expect(notes).toContain("supervisor.forwarded");
  });

  test("forwards what the attempt that is the answer forwarded", async () => {
    const poet = worker("poet", ["first", "second"]);
    const attempt = [calling(delegate("poet", "a")), calling(forward("poet"))];
    const { agent } = office([...attempt, "score: 0.5", "Try again.", ...attempt, "score: 0.2"], {
      workers: { poet: poet.agent },
      base: reflexion(undefined, { maxAttempts: 2 }),
    });
    const { result, notes } = await runAlone(agent);
    expect(result).toMatchObject({ status: "completed", output: "first" });
    expect(notes.filter((name) => name === "supervisor.forwarded")).toHaveLength(1);
    expect(notes).not.toContain("reflexion.empty_answer");
  });

  test("what was to be forwarded is forgotten once something else is said", async () => {
    const { runtime, ended, clock } = await company();
    const model = scriptedModel(
      [
        calling(delegate("a", "t")),
        { toolCalls: [forward("a")], delayMs: 10 },
        { text: "Wait.", toolCalls: [nothing] },
      ],
      { clock },
    );
    const architecture = supervisor({ workers: { a: worker("a", ["from a"]).agent } });
    const run = await runtime.submit(new Agent({ name: "boss", model, maxTurns: 3, architecture }), "Go.");
    await until(() => model.calls.length === 2);
    await run.steer("And then?");
    await clock.advance(10);
    const { result, notes } = await ended(run);
    expect(result).toMatchObject({ output: "Wait.", status: "max_turns" });
    expect(notes).not.toContain("supervisor.forwarded");
  });

  test("what is not there to be forwarded, or to delegate to, is a result", async () => {
    const poet = worker("poet", []);
    const { agent, model } = office([calling(forward("poet"), delegate("painter", "x")), "I give up."], {
      workers: { poet: poet.agent },
    });
    expect((await runAlone(agent)).result.output).toBe("I give up.");
    expect(resultsIn(model)).toEqual([
      "error: poet has said nothing to forward: delegate to it first, or answer yourself",
      "error: there is no worker painter; there are: poet",
    ]);
  });

  test("a worker's failure and a refused seat are results, and not to be forwarded", async () => {
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const broken = worker("broken", [{ error }]);
    const { agent, model } = office(
      [calling(delegate("broken", "a")), calling(forward("broken")), "Sorry."],
      {
        workers: { broken: broken.agent },
      },
    );
    expect((await runAlone(agent)).result).toMatchObject({ status: "completed", output: "Sorry." });
    expect(resultsIn(model)[0]).toContain("broken has said nothing to forward");
    const idle = worker("idle", []);
    const full = office([calling(delegate("idle", "a")), "Alone, then."], { workers: { idle: idle.agent } });
    await runAlone(full.agent, "Go.", { spawnBudget: { maxAgents: 1 } });
    expect(resultsIn(full.model)).toEqual([
      "error: idle was not hired: every seat is taken (1 seat). Do it yourself, or try again when someone has finished",
    ]);
  });

  describe("that makes workers of its own", () => {
    test("has them do what they are told, each by its instructions", async () => {
      const hand = worker("hand", ["Done by one.", "Done by two."], { instructions: "Be brief." });
      const reader = worker("reader", []);
      const { agent, model } = office(
        [
          calling(spawn("one"), spawn("two")),
          calling(delegate("one", "a"), delegate("two", "b")),
          calling(forward("one")),
        ],
        { workers: { reader: reader.agent }, spawnable: hand.agent },
      );
      const { result, events } = await runAlone(agent);
      expect(result.output).toBe("Done by one.");
      expect(resultsIn(model)).toEqual(["Done by one.", "Done by two."]);
      const told = seen(hand.model);
      expect(told).toContainEqual(["Be brief.\n\nYou are one.", "a"]);
      expect(told).toContainEqual(["Be brief.\n\nYou are two.", "b"]);
      const spawned = notesOf(events).filter(({ name }) => name === "supervisor.worker_spawned");
      expect(spawned.map(({ data }) => data["worker"])).toEqual(["one", "two"]);
    });

    test("makes five at most, unless told, and none twice", async () => {
      const hand = worker("hand", []);
      const names = ["reader", "a", "b", "a", "c d", "c", "d", "e", "f"];
      const { agent, model } = office([calling(...names.map((name) => spawn(name))), "Enough."], {
        workers: { reader: worker("reader", []).agent },
        spawnable: hand.agent,
      });
      await runAlone(agent);
      expect(resultsIn(model)).toEqual([
        "error: there is a worker reader already: choose another name",
        "a is there: delegate to it",
        "b is there: delegate to it",
        "error: there is a worker a already: choose another name",
        "error: c d is no name for a worker: use 1 to 48 letters, digits, _ and -",
        "c is there: delegate to it",
        "d is there: delegate to it",
        "e is there: delegate to it",
        "error: there are 5 workers you made, which is all you may: use one of them",
      ]);
    });

    test("they are gone with the invocation", async () => {
      const hand = worker("hand", []);
      const { agent, model } = office(
        [calling(spawn("one")), "Made.", calling(delegate("one", "Go on.")), "Gone."],
        { workers: { reader: worker("reader", []).agent }, spawnable: hand.agent },
      );
      const { run } = await company();
      await run(agent, "Make one.", { sessionId });
      await run(agent, "Use it.", { sessionId });
      expect(resultsIn(model)).toEqual(["error: there is no worker one; there are: reader"]);
      expect(hand.model.calls).toEqual([]);
    });

    test("J7: they are still there after a restart in the middle of things", async () => {
      const { runtime, clock, open } = await company({ closeGraceMs: 0 });
      const slow = worker(
        "slow",
        [
          { text: "x", delayMs: 50 },
          { text: "late", delayMs: 50 },
        ],
        {},
        { clock },
      );
      const hand = worker("hand", ["By hand."]);
      const { agent, model } = office(
        [
          calling(spawn("one")),
          calling(delegate("slow", "Wait.")),
          calling(delegate("one", "a")),
          calling(forward("one")),
        ],
        { workers: { slow: slow.agent }, spawnable: hand.agent },
      );
      let run = await runtime.submit(agent, "Go.");
      await until(() => slow.model.calls.length === 1);
      const closed = runtime.close();
      await clock.advance(0);
      await closed;
      const second = await open();
      second.register(agent);
      run = await findRun(second, run);
      await clock.advance(1_000);
      expect((await run.result()).output).toBe("By hand.");
      expect(model.calls).toHaveLength(4);
    });
  });

  describe("over another base", () => {
    test("that rewrites what it said in the same session", async () => {
      const poet = worker("poet", ["Roses."]);
      const architecture = supervisor({ workers: { poet: poet.agent }, base: selfRefine() });
      const model = scriptedModel([calling(delegate("poet", "a")), "Roses, he says.", "No issues."]);
      const { result } = await runAlone(new Agent({ name: "boss", model, architecture }));
      expect(result.output).toBe("Roses, he says.");
      expect(resultsIn(poet.model)).toEqual([]);
    });

    test("that thinks in sessions of its own", async () => {
      const hand = worker("hand", ["Made by hand."]);
      const architecture = supervisor({
        workers: { idle: worker("idle", []).agent },
        spawnable: hand.agent,
        base: reflexion(),
      });
      const model = scriptedModel([
        calling(spawn("one")),
        calling(delegate("one", "a")),
        "It is made.",
        '{"score": 1}',
      ]);
      const { result } = await runAlone(new Agent({ name: "boss", model, architecture }));
      expect(result).toMatchObject({ status: "completed", output: "It is made." });
    });
  });

  test("a worker forgets from one task to the next, unless it is to remember", async () => {
    const { run } = await company();
    const script = ["a", "b", "c"].flatMap((task): ScriptStep[] => [calling(delegate("clerk", task)), "Ok."]);
    for (const remember of [false, true]) {
      const clerk = worker("clerk", ["A.", "B.", "C."]);
      const { agent } = office(
        script,
        { workers: { clerk: clerk.agent }, remember },
        { name: `boss${remember}` },
      );
      const named = clerk.agent.with({ name: `clerk${remember}` });
      const own = agent.with({ architecture: supervisor({ workers: { clerk: named }, remember }) });
      await run(own, "1", { sessionId, userId: "ada" });
      await run(own, "2", { sessionId, userId: "ada" });
      await run(own, "3", { sessionId, userId: "grace" });
      expect(seen(clerk.model)).toEqual([["a"], remember ? ["a", "A.", "b"] : ["b"], ["c"]]);
    }
  });

  test("one that remembers does one thing after another, and remembers all of them", async () => {
    const clerk = worker("clerk", ["A.", "B.", "C."]);
    const { agent } = office(
      [calling(delegate("clerk", "a"), delegate("clerk", "b")), calling(delegate("clerk", "c")), "Ok."],
      { workers: { clerk: clerk.agent }, remember: true },
    );
    await runAlone(agent);
    expect(seen(clerk.model)).toEqual([["a"], ["a", "A.", "b"], ["a", "A.", "b", "B.", "c"]]);
  });

  test("workers see nothing of each other, nor of the supervisor's conversation", async () => {
    const [one, two] = [worker("one", ["secret of one"]), worker("two", ["2"])];
    const { agent } = office([calling(delegate("one", "a")), calling(delegate("two", "b")), "Ok."], {
      workers: { one: one.agent, two: two.agent },
    });
    await runAlone(agent, "A secret of the user.");
    expect([seen(one.model), seen(two.model)]).toEqual([[["a"]], [["b"]]]);
  });

  test("B5: money that ends half way leaves what there is", async () => {
    const reader = worker("reader", ["Three pages."]);
    const first = { text: "I have it read.", ...(calling(delegate("reader", "a")) as object) };
    const { agent } = office([first, "never"], { workers: { reader: reader.agent } });
    const { result } = await runAlone(agent, "Go.", { budget: { maxTurns: 2 } });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "I have it read." });
  });

  test("C1: a cancel reaches the workers, and no model is called after it", async () => {
    const { runtime, clock, ended } = await company();
    const slow = worker("slow", [{ text: "late", delayMs: 100 }, "never"], {}, { clock });
    const { agent, model } = office([calling(delegate("slow", "a")), "never"], {
      workers: { slow: slow.agent },
    });
    const run = await runtime.submit(agent, "Go.");
    await until(() => slow.model.calls.length === 1);
    await run.cancel("enough");
    expect((await ended(run)).result.status).toBe("cancelled");
    await clock.advance(1_000);
    expect([model.calls.length, slow.model.calls.length]).toEqual([1, 1]);
  });

  test("names its workers, and refuses what cannot be", () => {
    const { agent } = worker("a", []);
    const inner = deepAgent({ subAgents: { a: agent } });
    expect(
      Object.keys(supervisor({ workers: { b: agent }, spawnable: agent, base: inner }).declaredWorkers()),
    ).toEqual(["a", "b", "(spawned)"]);
    expect(() => supervisor({ workers: {} })).toThrow("supervisor needs at least one agent: workers has 0");
    expect(() => supervisor({ workers: { a: agent }, maxSpawned: 0 })).toThrow(
      "maxSpawned of supervisor is 0",
    );
    expect(() => supervisor({ workers: { a: agent }, base: inner })).toThrow("has a worker a, too");
    const other = supervisor({ workers: { b: agent } });
    for (const base of [other, reflexion(other), selfRefine(other)])
      expect(() => supervisor({ workers: { a: agent }, base })).toThrow(
        "supervisor is wrapped around a supervisor",
      );
  });
});
