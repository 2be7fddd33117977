import { describe, expect, test } from "vitest";
import {
  deepAgent,
  reflexion,
  selfRefine,
  supervisor,
  type SupervisorOptions,
} from "../../../src/agents/architectures/index.ts";
import { Agent, type AgentOptions } from "../../../src/entries/index.ts";
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

function office(
  script: readonly ScriptStep[],
  options: SupervisorOptions,
  agentOptions: Partial<AgentOptions> = {},
) {
  const model = scriptedModel(script);
  return {
    model,
    agent: new Agent({ name: "boss", model, architecture: supervisor(options), ...agentOptions }),
  };
}

describe("supervisor()", () => {
  test("supervisor() delegates tasks to workers and continues with their answers", async () => {
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

  test("supervisor() runs tasks that it delegates in one turn in parallel", async () => {
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

  test("the tool forward_message of supervisor() returns a worker's last answer verbatim without another model call", async () => {
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
    ["after a delegation", [delegate("a", "t"), forward("a")], "from a"],
    ["before another call", [delegate("a", "t"), forward("a"), nothing], "from a"],
    ["after another call", [delegate("a", "t"), nothing, forward("a")], "from a"],
    ["before another delegation", [delegate("a", "t"), forward("a"), delegate("a", "u")], "from a"],
    ["beside a forward_message that fails", [delegate("a", "t"), forward("a"), forward("b")], "from a"],
  ] as const)(
    "the tool forward_message %s in the same turn ends the loop of supervisor()",
    async (_where, calls, output) => {
      const a = worker("a", ["from a", "more from a"]);
      const { agent, model } = office([calling(...calls), "I passed it on."], {
        workers: { a: a.agent, b: worker("b", []).agent },
      });
      const { result, notes } = await runAlone(agent);
      expect(result).toMatchObject({ output, status: "completed" });
      expect(model.calls).toHaveLength(1);
      expect(notes).toContain("supervisor.forwarded");
    },
  );

  test("supervisor() with reflexion() as base returns the answer that the best attempt forwarded", async () => {
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

  test("supervisor() drops a forwarded answer if the model continues after steering input", async () => {
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

  test("supervisor() returns a tool result when it forwards a missing answer or delegates to an unknown worker", async () => {
    const poet = worker("poet", []);
    const { agent, model } = office([calling(forward("poet"), delegate("painter", "x")), "I give up."], {
      workers: { poet: poet.agent },
    });
    expect((await runAlone(agent)).result.output).toBe("I give up.");
    expect(resultsIn(model)).toEqual([
      "error: poet has no answer to forward: delegate to it first, or answer yourself",
      "error: there is no worker painter; there are: poet",
    ]);
  });

  test("supervisor() returns a worker's failure and a refused seat as tool results, which cannot be forwarded", async () => {
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const broken = worker("broken", [{ error }]);
    const { agent, model } = office(
      [calling(delegate("broken", "a")), calling(forward("broken")), "Sorry."],
      {
        workers: { broken: broken.agent },
      },
    );
    expect((await runAlone(agent)).result).toMatchObject({ status: "completed", output: "Sorry." });
    expect(resultsIn(model)[0]).toContain("broken has no answer to forward");
    const idle = worker("idle", []);
    const full = office([calling(delegate("idle", "a")), "Alone, then."], { workers: { idle: idle.agent } });
    await runAlone(full.agent, "Go.", { spawnBudget: { maxAgents: 1 } });
    expect(resultsIn(full.model)).toEqual([
      "error: idle was not spawned: every seat is taken (1 seat). Do it yourself, or try again when another worker has finished",
    ]);
  });

  describe("supervisor() with spawnable", () => {
    test("the model of supervisor() with spawnable creates workers, and each follows its own instructions", async () => {
      const template = worker("hand", ["Done by one.", "Done by two."], { instructions: "Be brief." });
      const reader = worker("reader", []);
      const { agent, model } = office(
        [
          calling(spawn("one"), spawn("two")),
          calling(delegate("one", "a"), delegate("two", "b")),
          calling(forward("one")),
        ],
        { workers: { reader: reader.agent }, spawnable: template.agent },
      );
      const { result, events } = await runAlone(agent);
      expect(result.output).toBe("Done by one.");
      expect(resultsIn(model)).toEqual(["Done by one.", "Done by two."]);
      const messages = seen(template.model);
      expect(messages).toContainEqual(["Be brief.\n\nYou are one.", "a"]);
      expect(messages).toContainEqual(["Be brief.\n\nYou are two.", "b"]);
      const spawned = notesOf(events).filter(({ name }) => name === "supervisor.worker_spawned");
      expect(spawned.map(({ data }) => data["worker"])).toEqual(["one", "two"]);
    });

    test("the model of supervisor() creates at most maxSpawned workers, by default 5, each with a new valid name", async () => {
      const template = worker("hand", []);
      const names = ["reader", "a", "b", "a", "c d", "c", "d", "e", "f"];
      const { agent, model } = office([calling(...names.map((name) => spawn(name))), "Enough."], {
        workers: { reader: worker("reader", []).agent },
        spawnable: template.agent,
      });
      await runAlone(agent);
      expect(resultsIn(model)).toEqual([
        "error: there is already a worker reader: choose another name",
        "created worker a: delegate to it",
        "created worker b: delegate to it",
        "error: there is already a worker a: choose another name",
        "error: c d is not a valid name for a worker: use 1 to 48 letters, digits, _ and -",
        "created worker c: delegate to it",
        "created worker d: delegate to it",
        "created worker e: delegate to it",
        "error: you have created 5 workers, which is the maximum: use one of them",
      ]);
    });

    test("workers that supervisor() has created do not exist in the next invocation", async () => {
      const template = worker("hand", []);
      const { agent, model } = office(
        [calling(spawn("one")), "Made.", calling(delegate("one", "Go on.")), "Gone."],
        { workers: { reader: worker("reader", []).agent }, spawnable: template.agent },
      );
      const { run } = await company();
      await run(agent, "Make one.", { sessionId });
      await run(agent, "Use it.", { sessionId });
      expect(resultsIn(model)).toEqual(["error: there is no worker one; there are: reader"]);
      expect(template.model.calls).toEqual([]);
    });

    test("J7: workers that supervisor() has created exist after a restart in the middle of an invocation", async () => {
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
      const template = worker("hand", ["By hand."]);
      const { agent, model } = office(
        [
          calling(spawn("one")),
          calling(delegate("slow", "Wait.")),
          calling(delegate("one", "a")),
          calling(forward("one")),
        ],
        { workers: { slow: slow.agent }, spawnable: template.agent },
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

  describe("supervisor() with another base", () => {
    test("selfRefine() as the base of supervisor() refines the answer that is based on delegated work", async () => {
      const poet = worker("poet", ["Roses."]);
      const architecture = supervisor({ workers: { poet: poet.agent }, base: selfRefine() });
      const model = scriptedModel([calling(delegate("poet", "a")), "Roses, he says.", "No issues."]);
      const { result } = await runAlone(new Agent({ name: "boss", model, architecture }));
      expect(result.output).toBe("Roses, he says.");
      expect(resultsIn(poet.model)).toEqual([]);
    });

    test("reflexion() as the base of supervisor() can create workers and delegate to them in each attempt", async () => {
      const template = worker("hand", ["Made by hand."]);
      const architecture = supervisor({
        workers: { idle: worker("idle", []).agent },
        spawnable: template.agent,
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

  test("a worker of supervisor() sees only its task, or with remember: true also its earlier tasks for the same user", async () => {
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

  test("supervisor() runs tasks of one turn for a worker that remembers one after another, and the worker remembers all", async () => {
    const clerk = worker("clerk", ["A.", "B.", "C."]);
    const { agent } = office(
      [calling(delegate("clerk", "a"), delegate("clerk", "b")), calling(delegate("clerk", "c")), "Ok."],
      { workers: { clerk: clerk.agent }, remember: true },
    );
    await runAlone(agent);
    expect(seen(clerk.model)).toEqual([["a"], ["a", "A.", "b"], ["a", "A.", "b", "B.", "c"]]);
  });

  test("a worker of supervisor() sees neither the tasks of other workers nor the supervisor's conversation", async () => {
    const [one, two] = [worker("one", ["secret of one"]), worker("two", ["2"])];
    const { agent } = office([calling(delegate("one", "a")), calling(delegate("two", "b")), "Ok."], {
      workers: { one: one.agent, two: two.agent },
    });
    await runAlone(agent, "A secret of the user.");
    expect([seen(one.model), seen(two.model)]).toEqual([[["a"]], [["b"]]]);
  });

  test("B5: supervisor() keeps the output so far and the worker's answer when the budget is exhausted", async () => {
    const reader = worker("reader", ["Three pages."]);
    const first = { text: "I have it read.", ...(calling(delegate("reader", "a")) as object) };
    const { agent } = office([first, "never"], { workers: { reader: reader.agent } });
    const { result } = await runAlone(agent, "Go.", { budget: { maxTurns: 2 } });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "I have it read.\n\nThree pages." });
  });

  test("C1: cancelling supervisor() cancels its workers, and no model is called afterwards", async () => {
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

  test("supervisor() declares its workers, and refuses missing workers, invalid limits and conflicts with its base", () => {
    const { agent } = worker("a", []);
    const inner = deepAgent({ subAgents: { a: agent } });
    expect(
      Object.keys(supervisor({ workers: { b: agent }, spawnable: agent, base: inner }).declaredWorkers()),
    ).toEqual(["a", "b", "(spawned)"]);
    expect(() => supervisor({ workers: {} })).toThrow("supervisor needs at least one agent: workers has 0");
    expect(() => supervisor({ workers: { a: agent }, maxSpawned: 0 })).toThrow(
      "invalid maxSpawned 0 of supervisor()",
    );
    expect(() => supervisor({ workers: { a: agent }, base: inner })).toThrow("both have a worker named a");
    const other = supervisor({ workers: { b: agent } });
    for (const base of [other, reflexion(other), selfRefine(other)])
      expect(() => supervisor({ workers: { a: agent }, base })).toThrow(
        "supervisor has another supervisor as its base",
      );
  });
});
