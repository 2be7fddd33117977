import { describe, expect, test } from "vitest";
import { reflexion, selfRefine, swarm, type SwarmOptions } from "../../../src/agents/architectures/index.ts";
import { Agent, memoryStore, openRuntime, sha256, tool } from "../../../src/entries/index.ts";
import { parseSessionId, type JsonObject } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { asked, company, notesOf, resultsIn, runAlone, seen, worker } from "../company.ts";
import { findRun } from "../../runtime/find-run.ts";

const to = (target: string, message = `For ${target}.`): ScriptStep => ({
  toolCalls: [{ name: "handoff", input: { target, message } }],
});

function band(
  scripts: Readonly<Record<string, readonly ScriptStep[]>>,
  options: Partial<SwarmOptions> = {},
  tools: Parameters<typeof worker>[2] = {},
) {
  const workers = Object.entries(scripts).map(
    ([name, script]) => [name, worker(name, script, { description: `The ${name}.`, ...tools })] as const,
  );
  const peers = Object.fromEntries(workers.map(([name, { agent }]) => [name, agent]));
  const architecture = swarm({ peers, ...options });
  const modelOf = (name: string) => Object.fromEntries(workers)[name]?.model ?? worker("none", []).model;
  return { agent: new Agent({ name: "band", architecture }), modelOf, peers };
}

describe("swarm()", () => {
  test("the first peer of swarm() starts with the conversation and hands it over to another peer", async () => {
    const { agent, modelOf } = band({
      desk: [to("bank", "She wants her money back.")],
      bank: ["Paid back."],
    });
    const { result, notes, events } = await runAlone(agent, "I want my money back.");
    expect(result).toMatchObject({ status: "completed", output: "Paid back." });
    expect(result.metadata).toEqual({ swarm: { path: ["desk", "bank"] } });
    const [first] = modelOf("desk").calls;
    expect(first?.tools?.map(({ name }) => name)).toEqual(["handoff"]);
    expect(first?.tools?.[0]?.description).toContain("- bank: The bank.");
    expect(modelOf("desk").calls).toHaveLength(1);
    expect(asked(modelOf("bank"))).toEqual(["She wants her money back."]);
    expect(notes).toEqual(
      ["started", "active", "handoff", "active", "completed"].map((name) => `swarm.${name}`),
    );
    expect(notesOf(events)[2]?.data).toEqual({
      from: "desk",
      to: "bank",
      message: "She wants her money back.",
    });
  });

  test("the peers of swarm() keep their own tools, and the agents themselves get no handoff tools", async () => {
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object" },
      execute: () => "seen",
    });
    const { agent, modelOf, peers } = band({ desk: ["Here."], bank: [] }, {}, { tools: [look] });
    await runAlone(agent);
    expect(modelOf("desk").calls[0]?.tools?.map(({ name }) => name)).toEqual(["look", "handoff"]);
    expect(peers["desk"]?.architecture.name).toBe("react");
    expect(peers["desk"]?.id).toBe("desk");
    expect(agent.architecture.declaredWorkers()["desk"]?.id).toBe("desk@desk.bank");
  });

  test("a peer of swarm() sees the whole conversation, including tool calls, after a handoff", async () => {
    const { run } = await company();
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object" },
      execute: () => "7 euros",
    });
    const { agent, modelOf } = band(
      {
        desk: [
          "Hello.",
          { text: "One moment.", toolCalls: [{ name: "look", input: {} }] },
          to("bank", "Pay it back."),
        ],
        bank: ["Paid back."],
      },
      {},
      { tools: [look] },
    );
    const sessionId = parseSessionId("band");
    await run(agent, "Hi.", { sessionId });
    await run(agent, "My money!", { sessionId });
    expect(seen(modelOf("desk"))[1]).toEqual(["Hi.", "Hello.", "My money!"]);
    expect(modelOf("bank").calls[0]?.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
      "tool",
      "assistant",
      "tool",
      "user",
    ]);
    expect(JSON.stringify(modelOf("bank").calls[0]?.messages)).toContain("7 euros");
    expect(asked(modelOf("bank"))).toEqual(["Pay it back."]);
  });

  test("a peer of swarm() with passFullHistory: false sees only the message of the handoff", async () => {
    const { agent, modelOf } = band(
      { desk: [to("bank", "Pay.")], bank: ["Ok."] },
      { passFullHistory: false },
    );
    await runAlone(agent, "A secret.");
    expect(seen(modelOf("bank"))).toEqual([["Pay."]]);
  });

  test("a peer of swarm() with an input schema gets a transfer tool whose arguments are validated", async () => {
    const input = {
      type: "object",
      properties: { euros: { type: "number" } },
      required: ["euros"],
    } as const;
    const transfer = (euros: unknown): ScriptStep =>
      ({ toolCalls: [{ name: "transfer_to_bank", input: { euros } }] }) as ScriptStep;
    const desk = worker("desk", [transfer("many"), transfer(7)]);
    const [bank, shop] = [worker("bank", ["Paid."]), worker("shop", [])];
    const architecture = swarm({
      peers: { desk: desk.agent, bank: { agent: bank.agent, input }, shop: shop.agent },
    });
    const { result } = await runAlone(new Agent({ name: "band", architecture }));
    expect(result.output).toBe("Paid.");
    const [, second] = desk.model.calls;
    expect(second?.tools?.map(({ name }) => name)).toEqual(["handoff", "transfer_to_bank"]);
    expect(second?.tools?.[0]?.description).not.toContain("bank");
    expect(second?.tools?.[1]?.inputSchema).toEqual(input);
    expect(resultsIn(desk.model)[0]).toContain(
      "transfer_to_bank do not fit its schema: euros must be number",
    );
    expect(asked(bank.model)).toEqual(['{"euros":7}']);
  });

  test("the inputFilter of swarm() builds the brief of a peer, once per handoff even across a restart", async () => {
    const { runtime, clock, open } = await company({ closeGraceMs: 0 });
    let filtered = 0;
    const desk = worker("desk", [to("bank", "Card 1234: pay.")]);
    const bank = worker(
      "bank",
      [
        { text: "x", delayMs: 50 },
        { text: "Paid.", delayMs: 50 },
      ],
      {},
      { clock },
    );
    const architecture = swarm({
      peers: {
        desk: desk.agent,
        bank: {
          agent: bank.agent,
          inputFilter: ({ message, history, from, to: target }) => {
            filtered++;
            return {
              prompt: `${from} to ${target}: ${message.replace(/\d+/u, "****")}`,
              instructions: "Be quick.",
              history: history.slice(0, 1),
            };
          },
        },
      },
    });
    const agent = new Agent({ name: "band", architecture });
    let run = await runtime.submit(agent, "Pay me.");
    await until(() => bank.model.calls.length === 1);
    const closed = runtime.close();
    await clock.advance(0);
    await closed;
    const second = await open();
    second.register(agent);
    run = await findRun(second, run);
    await clock.advance(1_000);
    expect((await run.result()).output).toBe("Paid.");
    expect(seen(bank.model).at(-1)).toEqual(["Be quick.", "Pay me.", "desk to bank: Card ****: pay."]);
    expect([filtered, desk.model.calls.length]).toEqual([1, 1]);
  });

  test("swarm() returns a tool result for a handoff to an unknown peer or to the peer itself", async () => {
    const { agent, modelOf } = band({ desk: [to("garden"), to("desk"), "Here I stay."], bank: [] });
    expect((await runAlone(agent)).result.output).toBe("Here I stay.");
    expect(resultsIn(modelOf("desk"))[0]).toContain("target must be one of bank");
  });

  test("swarm() executes the other calls of a turn with a handoff and shows them to the next peer", async () => {
    const look = tool({
      name: "look",
      description: "Looks",
      inputSchema: { type: "object" },
      execute: () => "7 euros",
    });
    const handoff = { name: "handoff", input: { target: "bank", message: "Pay." } };
    const calls = [
      [{ name: "look", input: {} }, handoff],
      [handoff, { name: "look", input: {} }],
      [handoff, { name: "nothing", input: {} }],
    ];
    for (const toolCalls of calls) {
      const { agent, modelOf } = band(
        { desk: [{ toolCalls }, "You are being transferred."], bank: ["Paid."] },
        {},
        { tools: [look] },
      );
      const { result } = await runAlone(agent);
      expect(result).toMatchObject({ status: "completed", output: "Paid." });
      expect(modelOf("desk").calls).toHaveLength(1);
      const done = modelOf("bank").calls[0]?.messages.find(({ role }) => role === "tool");
      expect(done?.role === "tool" && done.content.map(({ toolName }) => toolName)).toEqual(
        toolCalls.map(({ name }) => name),
      );
    }
  });

  test("swarm() uses the first of several handoffs in one turn", async () => {
    const both = {
      toolCalls: ["bank", "shop"].map((target) => ({ name: "handoff", input: { target, message: "Go." } })),
    };
    const { agent, modelOf } = band({ desk: [both], bank: ["By the bank."], shop: [] });
    expect((await runAlone(agent)).result.output).toBe("By the bank.");
    expect(modelOf("shop").calls).toEqual([]);
  });

  test("swarm() interrupts two peers that hand over to each other twice, with swarm_cycle", async () => {
    const { agent, modelOf } = band({
      desk: [{ ...(to("bank") as object), text: "Let me see." }, to("bank")],
      bank: [to("desk"), "never"],
    });
    const { result, notes } = await runAlone(agent);
    expect(result).toMatchObject({
      status: "failed",
      interruptionReason: "swarm_cycle",
      output: "Let me see.",
    });
    expect(notes.at(-1)).toBe("swarm.cycle_detected");
    expect(modelOf("bank").calls).toHaveLength(1);
  });

  test.each([
    ["three", { a: [to("b"), to("b")], b: [to("c"), to("c")], c: [to("a"), "never"] }, 1],
    ["four", { a: [to("b"), to("b")], b: [to("c"), to("c")], c: [to("d"), to("d")], d: [to("a")] }, 1],
  ])(
    "swarm() interrupts a cycle of %s peers with swarm_cycle when it repeats",
    async (_, scripts, lastCalls) => {
      const { agent, modelOf } = band(scripts);
      const { result, events } = await runAlone(agent);
      expect(result).toMatchObject({ status: "failed", interruptionReason: "swarm_cycle" });
      const names = Object.keys(scripts);
      expect(notesOf(events).at(-1)?.data).toEqual({ path: [...names, ...names] });
      expect(modelOf(names.at(-1) ?? "").calls).toHaveLength(lastCalls);
    },
  );

  test("a later invocation of swarm() in a session starts with the peer that gave the last answer, also after a restart", async () => {
    const store = memoryStore({ hash: sha256 });
    const sessionId = parseSessionId("ses_band");
    const scripts = { desk: [to("bank")], bank: ["Paid back.", "In two days."] };
    const { agent, modelOf } = band(scripts);
    const ask = async (input: string): Promise<string> => {
      const runtime = await openRuntime({ store, unknownPrice: "ignore" });
      const { output, metadata } = await (await runtime.submit(agent, input, { sessionId })).result();
      await runtime.close();
      return JSON.stringify([output, metadata["swarm"]]);
    };
    expect(await ask("I want my money.")).toBe('["Paid back.",{"path":["desk","bank"]}]');
    expect(await ask("When?")).toBe('["In two days.",{"path":["bank"]}]');
    expect(modelOf("desk").calls).toHaveLength(1);
    expect(seen(modelOf("bank")).at(-1)).toEqual(["I want my money.", "Paid back.", "When?"]);
  });

  test("swarm() starts with its entry peer if continueWithLastActive is false, and in another session", async () => {
    const { runtime } = await company();
    const first = band({ desk: [to("bank"), "desk 2"], bank: ["bank 1"] }, { continueWithLastActive: false });
    const sessionId = parseSessionId("ses_entry");
    await first.agent.invoke("One.", { sessionId, runtime });
    expect((await first.agent.invoke("Two.", { sessionId, runtime })).output).toBe("desk 2");
    const other = band({ till: [to("safe"), "till 2"], safe: ["safe 1"] });
    await other.agent.invoke("One.");
    expect((await other.agent.invoke("Two.")).output).toBe("till 2");
  });

  test("swarm() with detectCycles: false is interrupted after maxHandoffs, by default 8", async () => {
    const there = Array.from({ length: 9 }, () => to("bank"));
    const back = Array.from({ length: 9 }, () => to("desk"));
    const free = band({ desk: there, bank: back }, { detectCycles: false });
    const { result, notes } = await runAlone(free.agent);
    expect(result).toMatchObject({ status: "max_turns", interruptionReason: "max_handoffs" });
    expect(notes.filter((name) => name === "swarm.handoff")).toHaveLength(8);
    expect(notes.at(-1)).toBe("swarm.max_handoffs");
    const two = band({ desk: [to("bank")], bank: [to("shop")], shop: [to("desk")] }, { maxHandoffs: 2 });
    expect((await runAlone(two.agent)).result.interruptionReason).toBe("max_handoffs");
  });

  test("swarm() does not interrupt a cycle of three peers as if it were a cycle of two", async () => {
    const { agent } = band({ a: [to("b"), to("b")], b: [to("c"), "Round."], c: [to("a")] });
    expect((await runAlone(agent)).result.output).toBe("Round.");
  });

  test("a peer that reaches maxTurns interrupts swarm(), and a peer that fails makes it fail", async () => {
    const again = { text: "So far.", toolCalls: [{ name: "none", input: {} }] };
    const tired = band({ desk: [again], bank: [] }, {}, { maxTurns: 1 });
    const { result, notes } = await runAlone(tired.agent);
    expect(result).toMatchObject({ status: "max_turns", output: "So far." });
    expect(notes).toContain("swarm.peer_interrupted");
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const broken = band({ desk: [{ error }], bank: [] });
    expect((await runAlone(broken.agent)).result.error).toMatchObject({ code: "child_failed" });
  });

  test("B5, C1: swarm() keeps the output so far when the budget is exhausted or the run is cancelled", async () => {
    const replyWithText = { ...(to("bank") as object), text: "I ask the bank." };
    const poor = band({ desk: [replyWithText], bank: ["never"] });
    const { result } = await runAlone(poor.agent, "Go.", { budget: { maxTurns: 1 } });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "I ask the bank." });
    const { runtime, clock, ended } = await company();
    const desk = worker("desk", [replyWithText]);
    const bank = worker("bank", [{ text: "late", delayMs: 50 }, "never"], {}, { clock });
    const architecture = swarm({ peers: { desk: desk.agent, bank: bank.agent } });
    const run = await runtime.submit(new Agent({ name: "band", architecture }), "Go.");
    await until(() => bank.model.calls.length === 1);
    await run.cancel("enough");
    expect((await ended(run)).result).toMatchObject({ status: "cancelled", output: "I ask the bank." });
    await clock.advance(1_000);
    expect(bank.model.calls).toHaveLength(1);
  });

  test("an invalid input schema of a peer fails the run of swarm() before the first model call", async () => {
    const [desk, bank] = [worker("desk", ["Hello."]), worker("bank", [])];
    const make = (input: JsonObject): Agent =>
      new Agent({
        name: "band",
        architecture: swarm({ peers: { desk: desk.agent, bank: { agent: bank.agent, input } } }),
      });
    const { result } = await runAlone(make({ type: "nonsense" }));
    expect(result).toMatchObject({ status: "failed", turns: 0, error: { code: "invalid_argument" } });
    expect(result.error?.message).toContain(
      "input of peer bank of swarm: the schema that was given is not a JSON Schema",
    );
    expect(desk.model.calls).toEqual([]);
    expect(() => make([] as never)).toThrow(
      "input of peer bank of swarm is an array: it must be a JSON Schema",
    );
  });

  test.each([undefined, null, "Pay.", {}, { prompt: 7 }, { prompt: "Pay.", history: "none" }])(
    "an inputFilter of swarm() that returns %j fails the run with a message that says what it must return",
    async (returned) => {
      const [desk, bank] = [worker("desk", [to("bank")]), worker("bank", [])];
      const peers = {
        desk: desk.agent,
        bank: { agent: bank.agent, inputFilter: () => returned as never },
      };
      const { result } = await runAlone(new Agent({ name: "band", architecture: swarm({ peers }) }));
      expect(result).toMatchObject({ status: "failed", error: { code: "invalid_argument" } });
      expect(result.error?.message).toContain("inputFilter of peer bank of swarm returned");
      const wrong = { ...peers, bank: { agent: bank.agent, inputFilter: {} as never } };
      expect(() => swarm({ peers: wrong })).toThrow("inputFilter of peer bank of swarm is an object");
    },
  );

  test("swarm() refuses too few peers, an unknown entry peer and an invalid limit, and two swarms may share an agent", async () => {
    expect(() => band({ desk: [] })).toThrow("swarm needs at least 2 agents: peers has 1");
    expect(() => band({ a: [], b: [] }, { entry: "c" })).toThrow("entry of swarm is c, which is not a peer");
    expect(() => band({ a: [], b: [] }, { maxHandoffs: 0 })).toThrow("invalid maxHandoffs 0 of swarm()");
    const { runtime } = await company();
    const [a, b, c] = ["a", "b", "c"].map((name) => worker(name, []).agent) as [Agent, Agent, Agent];
    runtime.register(new Agent({ name: "one", architecture: swarm({ peers: { a, b } }) }));
    runtime.register(new Agent({ name: "two", architecture: swarm({ peers: { a, c } }) }));
    runtime.register(a);
  });

  describe("swarm() ignores a handoff if the peer's conversation does not end with it", () => {
    test("swarm() ignores a handoff if a stop hook makes the peer continue and the peer then answers", async () => {
      const shouldContinue = ({ continued }: { readonly continued: number }) =>
        continued === 0 ? "Do it yourself." : undefined;
      const desk = worker("desk", [to("bank"), "Paid."], { stopHooks: [{ name: "stay", shouldContinue }] });
      const bank = worker("bank", ["never"]);
      const architecture = swarm({ peers: { desk: desk.agent, bank: bank.agent } });
      const { result } = await runAlone(new Agent({ name: "band", architecture }));
      expect(result.output).toBe("Paid.");
    });

    test("swarm() ignores a handoff that was made in a discarded attempt of reflexion()", async () => {
      const desk = worker("desk", [to("bank"), "Paid."], {
        architecture: reflexion(),
        models: {
          evaluator: scriptedModel(['{"score": 0}', '{"score": 1}']),
          reflector: scriptedModel(["Do it yourself."]),
        },
      });
      const bank = worker("bank", ["never"]);
      const architecture = swarm({ peers: { desk: desk.agent, bank: bank.agent } });
      const { result } = await runAlone(new Agent({ name: "band", architecture }));
      expect(result.output).toBe("Paid.");
    });
  });

  test("selfRefine() does not refine the handoff of a peer of swarm()", async () => {
    const critic = scriptedModel([]);
    const desk = worker("desk", [to("bank")], { architecture: selfRefine(), models: { critic } });
    const bank = worker("bank", ["Paid."]);
    const architecture = swarm({ peers: { desk: desk.agent, bank: bank.agent } });
    const { result } = await runAlone(new Agent({ name: "band", architecture }));
    expect(result).toMatchObject({ output: "Paid.", status: "completed" });
    expect(critic.calls).toHaveLength(0);
  });
});
