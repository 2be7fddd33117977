import { describe, expect, test } from "vitest";
import { rewoo } from "../../../src/agents/architectures/index.ts";
import { permissions, tool } from "../../../src/entries/index.ts";
import type { JsonObject } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { architectureEventData, cancellingTool, promptOf, runAgent, transcriptLines } from "./run-agent.ts";

const shout = tool({
  name: "shout",
  description: "Says it louder",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const,
  execute: ({ text }) => text.toUpperCase(),
});

const fail = tool({
  name: "fail",
  description: "Fails",
  inputSchema: { type: "object" },
  execute: () => {
    throw new Error("no such luck");
  },
});

const plan = (...calls: readonly (readonly [string, string, JsonObject])[]) =>
  JSON.stringify(calls.map(([id, name, args]) => ({ id, tool: name, args })));

describe("rewoo()", () => {
  test("rewoo() does not make a call whose args would repeat outputs beyond 4,194,304 characters", async () => {
    const solver = scriptedModel(["Enough."]);
    const planner = scriptedModel([
      plan(
        ["E1", "shout", { text: "x".repeat(100_000) }],
        ["E2", "shout", { text: "{{E1}}".repeat(42) }],
        ["E3", "shout", { text: "{{E2}} again" }],
      ),
    ]);
    const { result } = await runAgent({
      architecture: rewoo(),
      model: scriptedModel([]),
      models: { planner, solver },
      tools: [shout],
    });
    expect(result).toMatchObject({ status: "completed", output: "Enough." });
    const asked = promptOf(solver.calls[0] as never);
    expect(asked).toContain("Not called: its args would have more than 4194304 characters.");
    expect(asked).toContain("Not called: no output is known for {{E2}} in its args.");
  });

  test("rewoo() plans all calls, makes them level by level, and answers with two model calls in total", async () => {
    const planner = scriptedModel([
      plan(
        ["E1", "shout", { text: "a" }],
        ["E2", "shout", { text: "b" }],
        ["E3", "shout", { text: "{{E1}} and {{ E2 }}" }],
      ),
    ]);
    const solver = scriptedModel(["It is A and B."]);
    const { result, eventNames, events, conversation } = await runAgent({
      architecture: rewoo(),
      model: scriptedModel([]),
      models: { planner, solver },
      tools: [shout],
    });
    expect(result).toMatchObject({ status: "completed", output: "It is A and B.", turns: 2 });
    expect(eventNames).toEqual([
      "rewoo.planner_started",
      "rewoo.plan_created",
      "rewoo.level_started",
      "rewoo.step_completed",
      "rewoo.step_completed",
      "rewoo.level_started",
      "rewoo.step_completed",
      "rewoo.solver_started",
      "rewoo.completed",
    ]);
    expect(architectureEventData(events, "rewoo.level_started")).toEqual([
      { level: 1, steps: ["E1", "E2"] },
      { level: 2, steps: ["E3"] },
    ]);
    expect(architectureEventData(events, "rewoo.step_completed")).toMatchObject([
      { output: "A" },
      { output: "B" },
      { output: "A AND B" },
    ]);
    expect(promptOf(planner.calls[0] as never)).toContain('- shout: Says it louder\n  args: {"properties"');
    expect(promptOf(solver.calls[0] as never)).toContain('E3 = shout {"text":"A and B"}\nA AND B');
    expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: It is A and B."]);
  });

  test("rewoo() makes the calls of a level in parallel, or one after another with parallelLevels: false", async () => {
    let open = 0;
    let most = 0;
    let meet: () => void = () => undefined;
    const meeting = new Promise<void>((resolve) => (meet = resolve));
    const wait = (needed: number) =>
      tool({
        name: "wait",
        description: "Waits for the others",
        inputSchema: { type: "object" },
        execute: async () => {
          most = Math.max(most, ++open);
          if (open === needed) meet();
          await meeting;
          open--;
          return "met";
        },
      });
    const calls = plan(["E1", "wait", {}], ["E2", "wait", {}], ["E3", "wait", {}]);
    const model = () => scriptedModel([calls, "done"]);
    await runAgent({ architecture: rewoo(), model: model(), tools: [wait(3)] });
    expect(most).toBe(3);
    most = 0;
    const { eventNames } = await runAgent({
      architecture: rewoo({ parallelLevels: false }),
      model: model(),
      tools: [wait(1)],
    });
    expect(most).toBe(1);
    expect(eventNames.filter((name) => name === "rewoo.level_started")).toHaveLength(1);
  });

  test("a tool call of rewoo() that fails, names an unknown tool or has wrong arguments becomes evidence for the answer", async () => {
    const solver = scriptedModel(["I do not know."]);
    const { result } = await runAgent({
      architecture: rewoo(),
      model: solver,
      models: {
        planner: scriptedModel([
          plan(
            ["E1", "fail", {}],
            ["E2", "missing", {}],
            ["E3", "shout", { text: 7 }],
            ["E4", "shout", { text: "got {{E1}}" }],
          ),
        ]),
      },
      tools: [shout, fail],
    });
    expect(result.status).toBe("completed");
    const asked = promptOf(solver.calls[0] as never);
    expect(asked).toContain("E1 = fail {} (failed)\nno such luck");
    expect(asked).toContain("there is no tool missing");
    expect(asked).toContain("text must be string");
    expect(asked).toContain("GOT NO SUCH LUCK");
    expect(result.metadata["evidence"]).toMatchObject([
      { isError: true },
      { isError: true },
      { isError: true },
      { isError: false },
    ]);
  });

  test("rewoo() reports a planned call that it cannot make as evidence, and every call that needs its output too", async () => {
    const solver = scriptedModel(["I do not know."]);
    const called: string[] = [];
    const echo = tool({
      name: "echo",
      description: "Says it again",
      inputSchema: { type: "object", properties: { text: { type: "string" } } } as const,
      execute: ({ text = "nothing" }) => {
        called.push(text);
        return text;
      },
    });
    const calls = [
      { id: 1, tool: "echo", args: null },
      { id: 2, tool: "echo", args: { text: "{{1}} and {{E1}}" } },
      { id: 3, tool: "echo", args: ["a"] },
      { id: 4, tool: "echo", args: "b" },
      { id: 5, tool: "echo", args: '{"text": "c"}' },
      { id: 6, tool: "echo", arguments: { text: "d" } },
      { id: 7, args: { text: "e" } },
      { id: 8, tool: "echo", args: { text: "{{3}}, {{ 7 }}, {{missing}}, {{5}}" } },
    ];
    const { result } = await runAgent({
      architecture: rewoo(),
      model: solver,
      models: { planner: scriptedModel([JSON.stringify(calls)]) },
      tools: [echo],
    });
    expect(result.status).toBe("completed");
    expect(called).toEqual(["nothing", "c", "d", "nothing and nothing"]);
    const evidence = result.metadata["evidence"] as readonly JsonObject[];
    expect(Object.fromEntries(evidence.map(({ id, output }) => [id, output]))).toEqual({
      1: "nothing",
      2: "nothing and nothing",
      3: "Not called: the plan has args that are not an object.",
      4: "Not called: the plan has args that are not an object.",
      5: "c",
      6: "d",
      7: "Not called: the plan names no tool.",
      8: "Not called: no output is known for {{3}}, {{7}}, {{missing}} in its args.",
    });
    expect(evidence.filter(({ isError }) => isError).map(({ id }) => id)).toEqual(["3", "4", "7", "8"]);
    expect(promptOf(solver.calls[0] as never)).toContain("(failed)\nNot called: the plan names no tool");
  });

  test("rewoo() replaces a placeholder only by the output of the call with exactly that id", async () => {
    const sent: unknown[] = [];
    const giving = (name: string) =>
      tool({ name, description: name, inputSchema: { type: "object" }, execute: () => `<${name}>` });
    const send = tool({
      name: "send",
      description: "Sends",
      inputSchema: { type: "object" },
      execute: (input) => {
        sent.push(input);
        return "sent";
      },
    });
    const calls = [
      { tool: "a" },
      { id: "E1", tool: "b" },
      { id: "E3", tool: "send", args: { to: "{{E1}}" } },
      // E5 is not made, so {{E5}} has no output, although another call has the id 5.
      { id: 5, tool: "a" },
      { id: "E5", tool: "b", args: "none" },
      { id: "E6", tool: "send", args: { to: "{{E5}}" } },
    ];
    const { result } = await runAgent({
      architecture: rewoo(),
      model: scriptedModel(["Done."]),
      models: { planner: scriptedModel([JSON.stringify(calls)]) },
      tools: [giving("a"), giving("b"), send],
    });
    expect(sent).toEqual([{ to: "<b>" }]);
    expect(result.metadata["evidence"]).toContainEqual(
      expect.objectContaining({
        id: "E6",
        output: "Not called: no output is known for {{E5}} in its args.",
      }),
    );
  });

  test("rewoo() calls no tool for a plan whose calls cannot be made, and still answers", async () => {
    const solver = scriptedModel(["I do not know."]);
    const { result, events } = await runAgent({
      architecture: rewoo(),
      model: solver,
      models: { planner: scriptedModel(['[{"tool": "shout", "args": ["a"]}]']) },
      tools: [shout],
    });
    expect(result).toMatchObject({ status: "completed", output: "I do not know." });
    expect(events.some(({ type }) => type === "tool_execution_start")).toBe(false);
  });

  test("rewoo() passes every call through the checks before a tool call", async () => {
    const solver = scriptedModel(["Not allowed."]);
    await runAgent({
      architecture: rewoo(),
      model: solver,
      models: { planner: scriptedModel([plan(["E1", "shout", { text: "a" }])]) },
      tools: [shout],
      permissions: permissions({ deny: [{ tool: "shout", reason: "quiet hours" }] }),
    });
    expect(promptOf(solver.calls[0] as never)).toContain("quiet hours");
  });

  test("an empty plan leads rewoo() directly to the answer", async () => {
    const { result, eventNames } = await runAgent({
      architecture: "rewoo",
      model: scriptedModel(["[]", "Hello!"]),
    });
    expect(result).toMatchObject({ status: "completed", output: "Hello!" });
    expect(eventNames).toEqual([
      "rewoo.planner_started",
      "rewoo.empty_plan",
      "rewoo.solver_started",
      "rewoo.completed",
    ]);
  });

  test("a cyclic plan fails the run of rewoo() with cyclic_plan before any tool call", async () => {
    const circle = plan(["E1", "shout", { text: "{{E2}}" }], ["E2", "shout", { text: "{{E1}}" }]);
    const { result, eventNames, events } = await runAgent({
      architecture: rewoo(),
      model: scriptedModel([circle]),
      tools: [shout],
    });
    expect(result).toMatchObject({ status: "failed", interruptionReason: "cyclic_plan", output: circle });
    expect(eventNames).toEqual(["rewoo.planner_started", "rewoo.cyclic_plan"]);
    expect(events.some(({ type }) => type === "tool_execution_start")).toBe(false);
  });

  test("an unreadable plan fails the run of rewoo() with unreadable_plan", async () => {
    const { result } = await runAgent({ architecture: rewoo(), model: scriptedModel(["Let me think."]) });
    expect(result).toMatchObject({
      status: "failed",
      interruptionReason: "unreadable_plan",
      output: "Let me think.",
    });
  });

  test("rewoo() makes no calls beyond maxSteps, and placeholders for those calls have no output", async () => {
    const solver = scriptedModel(["so far"]);
    const { events } = await runAgent({
      architecture: rewoo({ maxSteps: 1 }),
      model: solver,
      models: {
        planner: scriptedModel([plan(["E1", "shout", { text: "{{E2}}" }], ["E2", "shout", { text: "b" }])]),
      },
      tools: [shout],
    });
    expect(architectureEventData(events, "rewoo.step_completed")).toEqual([
      {
        id: "E1",
        tool: "shout",
        output: "Not called: no output is known for {{E2}} in its args.",
        isError: true,
      },
    ]);
    expect(promptOf(solver.calls[0] as never)).toContain("# Planned, but not done");
    expect(() => rewoo({ maxSteps: -1 })).toThrow(
      "invalid maxSteps -1 of rewoo(): expected an integer from 1",
    );
  });

  test("B5: rewoo() keeps the tool outputs when the budget is exhausted before the answer", async () => {
    const { result } = await runAgent({
      architecture: rewoo(),
      model: scriptedModel([plan(["E1", "shout", { text: "a" }])]),
      tools: [shout],
      budget: { maxTurns: 1 },
    });
    expect(result).toMatchObject({ status: "budget_exhausted", output: 'E1 = shout {"text":"a"}\nA' });
  });

  test("C2: rewoo() makes no further level of calls and no solver call after a cancel during a level", async () => {
    const cancelling = cancellingTool("stop");
    const model = scriptedModel([plan(["E1", "stop", {}], ["E2", "shout", { text: "{{E1}}" }])]);
    const { result, events } = await runAgent(
      { architecture: rewoo(), model, tools: [cancelling.tool, shout] },
      "Go",
      {
        onStart: cancelling.onStart,
      },
    );
    expect(result.status).toBe("cancelled");
    expect(model.calls).toHaveLength(1);
    const started = events.flatMap((event) =>
      event.type === "tool_execution_start" ? [event.data.toolName] : [],
    );
    expect(started).toEqual(["stop"]);
  });
});
