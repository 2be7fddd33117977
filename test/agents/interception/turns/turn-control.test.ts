import { describe, expect, test } from "vitest";
import { Agent, hasToolCall, openRuntime, tool } from "../../../../src/entries/index.ts";
import { type TurnStart } from "../../../../src/kernel/index.ts";
import { planAndExecute } from "../../../../src/agents/architectures/index.ts";
import { messageText, type Event } from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../../runtime/two-stores.ts";
import { company, resultsIn, runAlone, worker } from "../../company.ts";
import { reopen } from "../../reopened.ts";

removeStoresAfterEach();

const named = (name: string) =>
  tool({ name, description: name, inputSchema: { type: "object" } as const, execute: () => `${name} done` });
const tools = [named("look"), named("finish")];
const ask = tool({
  name: "ask",
  description: "Asks the page.",
  inputSchema: { type: "object" } as const,
  clientSide: true,
});
const calling = (...names: readonly string[]) => ({
  text: `calling ${names.join(" and ")}`,
  toolCalls: names.map((name) => ({ name, input: {}, callId: name })),
});
const isRequest = ({ type }: Event): boolean => type === "approval_request";

describe("the option stopWhen", () => {
  test("the agent ends with the latest text after a turn for which stopWhen returns true", async () => {
    const { agent, model } = worker("scout", [calling("look"), calling("look", "finish"), "never"], {
      tools,
      stopWhen: hasToolCall("finish"),
    });
    const { result } = await runAlone(agent);
    expect(result).toMatchObject({ status: "completed", output: "calling look and finish", turns: 2 });
    expect(model.calls).toHaveLength(2);
  });

  test("stopWhen receives turn, calls, results and usage, and one of several conditions is enough", async () => {
    const seen: unknown[] = [];
    const { agent } = worker("scout", [calling("look"), calling("look"), "never"], {
      tools,
      stopWhen: [
        ({ turn, toolCalls, results, messages, usage, facts }) => {
          const names = toolCalls.map(({ toolName }) => toolName);
          const length = messages.length;
          seen.push([turn, names, results.length, length, usage.inputTokens > 0, facts.sessionId]);
          return false;
        },
        ({ turn }) => turn === 2,
      ],
    });
    const { result } = await runAlone(agent, "Go.", { sessionId: "chat" });
    expect(result.status).toBe("completed");
    expect(seen).toEqual([
      [1, ["look"], 1, 3, true, "chat"],
      [2, ["look"], 1, 5, true, "chat"],
    ]);
  });

  test.each(twoStores)(
    "a second runtime uses the recorded decisions of stopWhen and asks only about new turns (%s)",
    async (_name, prepare) => {
      const asked: number[] = [];
      const { agent, model } = worker("scout", [calling("look"), calling("ask"), "never"], {
        tools: [...tools, ask],
        stopWhen: ({ turn }) => {
          asked.push(turn);
          return turn === 2;
        },
      });
      await using second = await reopen(await prepare(), agent, isRequest);
      await second.run.toolResult("ask", "yes");
      expect(await second.run.result()).toMatchObject({ status: "completed", output: "calling ask" });
      expect(asked).toEqual([1, 2]);
      expect(model.calls).toHaveLength(2);
    },
  );

  test("a run fails if stopWhen throws or returns no boolean, and the error says so", async () => {
    const { agent } = worker("scout", [calling("look")], { tools, stopWhen: (() => "yes") as never });
    const { result } = await runAlone(agent);
    expect(result.status).toBe("failed");
    expect(result.error?.message).toBe('invalid result "yes" of stopWhen: expected true or false');
  });
});

describe("the option prepareStep", () => {
  test("prepareStep chooses the role, the tools and appended messages of a turn", async () => {
    const cheap = scriptedModel(["Cheap."]);
    const starts: Partial<TurnStart>[] = [];
    const { agent, model } = worker("scout", [calling("look")], {
      tools,
      models: { cheap },
      prepareStep: ({ turn, toolNames }) => {
        starts.push({ turn, toolNames });
        return turn === 1
          ? { tools: ["look"], toolChoice: "required" }
          : { role: "cheap", messages: ["Be brief."] };
      },
    });
    const { result } = await runAlone(agent);
    expect(result).toMatchObject({ status: "completed", output: "Cheap." });
    expect(model.calls[0]).toMatchObject({ toolChoice: "required", tools: [{ name: "look" }] });
    expect(cheap.calls[0]?.tools).toHaveLength(2);
    expect(cheap.calls[0]?.messages.at(-1)).toMatchObject({ role: "user" });
    expect(JSON.stringify(cheap.calls[0]?.messages.at(-1))).toContain("Be brief.");
    expect(starts).toEqual([
      { turn: 1, toolNames: ["look", "finish"] },
      { turn: 2, toolNames: ["look", "finish"] },
    ]);
  });

  test("a call of a tool that prepareStep did not choose is not executed, and the model sees which it may call", async () => {
    const { agent, model } = worker("scout", [calling("finish", "look"), "Done."], {
      tools,
      prepareStep: ({ turn }) => (turn === 1 ? { tools: ["look"] } : undefined),
    });
    await runAlone(agent);
    expect(resultsIn(model)).toEqual([
      "error: finish may not be called in this turn; you may call: look",
      "look done",
    ]);
  });

  test.each(twoStores)(
    "the result and the streamed text contain the turns of the role that prepareStep chose (%s)",
    async (_name, prepare) => {
      const writer = scriptedModel([calling("look"), { deltas: ["It ", "rains."] }, "never"]);
      const judge = scriptedModel(["fine"]);
      const { agent } = worker("scout", [{ ...calling("look"), text: "I look." }], {
        tools,
        models: { writer, judge },
        prepareStep: ({ turn }) => (turn > 1 ? { role: "writer", messages: [`Turn ${turn}.`] } : undefined),
      });
      await using runtime = await openRuntime({ store: await (await prepare())() });
      const stream = agent.stream("Weather?", { runtime });
      const pieces: string[] = [];
      for await (const text of stream.text()) pieces.push(text);
      expect(pieces).toEqual(["I look.", "\n\ncalling look", "\n\nIt ", "rains."]);
      const { messages, steps, toolCalls } = await stream.result();
      expect(messages.map((message) => `${message.role}: ${messageText(message)}`)).toEqual([
        "assistant: I look.",
        "tool: ",
        "user: Turn 2.",
        "assistant: calling look",
        "tool: ",
        "user: Turn 3.",
        "assistant: It rains.",
      ]);
      expect(steps.map(({ role }) => role)).toEqual(["main", "writer", "writer"]);
      expect(toolCalls).toHaveLength(2);
    },
  );

  test("a message of prepareStep may have a text as its content", async () => {
    const { agent, model } = worker("scout", ["Done."], {
      prepareStep: () => ({ messages: [{ role: "user", content: "Be brief." } as never] }),
    });
    expect((await runAlone(agent)).result.status).toBe("completed");
    expect(model.calls[0]?.messages.at(-1)).toMatchObject({ content: [{ type: "text", text: "Be brief." }] });
  });

  test("an empty list of tools from prepareStep forbids all tools of the turn", async () => {
    const { agent, model } = worker("scout", ["Done."], { tools, prepareStep: () => ({ tools: [] }) });
    await runAlone(agent);
    expect(model.calls[0]).toMatchObject({ toolChoice: "none", tools: [{}, {}] });
  });

  test.each(twoStores)(
    "a second runtime uses the recorded results of prepareStep and asks only about new turns (%s)",
    async (_name, prepare) => {
      const asked: number[] = [];
      const { agent, model } = worker("scout", [calling("ask"), "Done."], {
        tools: [...tools, ask],
        prepareStep: ({ turn }) => {
          asked.push(turn);
          // A second call for a turn would give another message, which the journal would refuse.
          return { messages: [`Note ${asked.length} for turn ${turn}.`] };
        },
      });
      await using second = await reopen(await prepare(), agent, isRequest);
      await second.run.toolResult("ask", "yes");
      expect(await second.run.result()).toMatchObject({ status: "completed", output: "Done." });
      expect(asked).toEqual([1, 2]);
      const sent = JSON.stringify(model.calls.at(-1)?.messages);
      expect(sent).toContain("Note 1 for turn 1.");
      expect(sent).toContain("Note 2 for turn 2.");
    },
  );

  test.each([
    ["role", { role: "cheep" }, 'invalid role "cheep" of prepareStep of agent scout: expected one of main'],
    [
      "tool",
      { tools: ["lok"] },
      'invalid tool "lok" of prepareStep: expected names of this turn\'s tools: look',
    ],
    [
      "message",
      { messages: [{ role: "system", content: "x" }] },
      "of prepareStep: expected a text or a message",
    ],
    ["option", { activeTools: ["look"] }, "activeTools"],
    ["tool choice", { toolChoice: "must" }, 'invalid toolChoice "must" of prepareStep: expected "auto"'],
    [
      "tool as the choice",
      { toolChoice: { toolName: "lok" } },
      'invalid toolChoice "lok" of prepareStep: expected names of this turn\'s tools: look, finish',
    ],
    [
      "tool as the choice among its tools",
      { tools: ["finish"], toolChoice: { toolName: "look" } },
      'invalid toolChoice "look" of prepareStep: expected names of this turn\'s tools: finish',
    ],
    ["kind of list of tools", { tools: "look" }, 'invalid tools "look" of prepareStep: expected a list'],
    ["kind of list of messages", { messages: "x" }, 'invalid messages "x" of prepareStep: expected a list'],
    ["content of a message", { messages: [{ role: "user", content: 7 }] }, "it has the content 7"],
    [
      "text",
      { messages: [" "] },
      "of prepareStep: expected a text or a message with the role user, but it is empty",
    ],
  ])(
    "a run fails before the model is called if prepareStep returns an unknown %s",
    async (_what, changes, message) => {
      const { agent, model } = worker("scout", ["never"], { tools, prepareStep: () => changes as never });
      const { result } = await runAlone(agent);
      expect(result.status).toBe("failed");
      expect(result.error?.message).toContain(message);
      expect(model.calls).toHaveLength(0);
    },
  );
});

describe("the options prepareStep and stopWhen", () => {
  test.each([
    ["no step", "without them", {}, []],
    [
      "one step per turn",
      "with them",
      { prepareStep: () => undefined, stopWhen: () => false },
      ["prepare_step", "stop_when", "prepare_step"],
    ],
  ])(
    "the journal has %s as the steps of prepareStep and stopWhen for an agent %s",
    async (_what, _which, options, names) => {
      const { runtime, run, store } = await company();
      const { agent } = worker("scout", [calling("look"), "Done."], { tools, ...options });
      const { result } = await run(agent, "Go.");
      const steps: string[] = [];
      for await (const commit of store.journal.read(result.runId))
        for (const { kind, name } of commit.steps ?? []) if (kind === "step") steps.push(name);
      expect(steps).toEqual(names);
      await runtime.close();
    },
  );

  test("new Agent() refuses prepareStep and stopWhen that are no functions or that its architecture ignores", () => {
    const base = { name: "scout", model: scriptedModel([]) };
    expect(() => new Agent({ ...base, stopWhen: 5 as never })).toThrow(/invalid stopWhen 5 of agent scout/u);
    expect(() => new Agent({ ...base, prepareStep: {} as never })).toThrow(
      /invalid prepareStep of agent scout: expected a function, not an object/u,
    );
    const architecture = planAndExecute();
    expect(() => new Agent({ ...base, architecture, stopWhen: () => true })).toThrow(
      /invalid option stopWhen of agent scout: its architecture plan-and-execute/u,
    );
  });
});
