import { describe, expect, test } from "vitest";
import { planAndExecute, react, selfRefine } from "../../../src/agents/architectures/index.ts";
import { Agent, memoryStore, openRuntime, sha256, tool } from "../../../src/entries/index.ts";
import { messageText, type JsonObject } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import {
  architectureEventData,
  cancellingTool,
  promptOf,
  resultAcrossRestart,
  runAgent,
  signalTool,
  steeringTool,
  transcriptLines,
} from "./run-agent.ts";

const look = tool({
  name: "look",
  description: "The weather in a town",
  inputSchema: { type: "object", properties: { town: { type: "string" } }, required: ["town"] } as const,
  execute: ({ town }) => `It rains in ${town}.`,
});

const calls = (town: string) => ({ toolCalls: [{ name: "look", input: { town } }] });

describe("planAndExecute()", () => {
  test("planAndExecute() plans, executes each step with tools, writes the answer, and emits its events in order", async () => {
    const planner = scriptedModel(['["Look at Sens", "Look at Blois"]']);
    const executor = scriptedModel([calls("Sens"), "Sens: rain.", "Blois: sun."]);
    const synthesizer = scriptedModel(["Go to Blois."]);
    const { result, eventNames, conversation } = await runAgent({
      architecture: planAndExecute(),
      models: { planner, executor, synthesizer, main: scriptedModel([]) },
      tools: [look],
    });
    expect(result).toMatchObject({ status: "completed", output: "Go to Blois.", turns: 5 });
    expect(eventNames).toEqual([
      "plan.planner_started",
      "plan.created",
      "plan.step_started",
      "plan.step_completed",
      "plan.step_started",
      "plan.step_completed",
      "plan.synthesizer_started",
      "plan.completed",
    ]);
    expect(result.metadata["plan"]).toEqual({
      steps: ["Look at Sens", "Look at Blois"],
      left: [],
      done: [
        { step: "Look at Sens", result: "Sens: rain.", interruptionReason: null },
        { step: "Look at Blois", result: "Blois: sun.", interruptionReason: null },
      ],
      replans: 0,
    });
    expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: Go to Blois."]);
    expect(promptOf(planner.calls[0] as never)).toContain("look: The weather in a town");
    expect(promptOf(synthesizer.calls[0] as never)).toContain("Sens: rain.");
  });

  test("a step of planAndExecute() sees the plan and the results so far, but not the session of another step", async () => {
    const executor = scriptedModel([calls("Sens"), "one", "two"]);
    await runAgent({
      architecture: planAndExecute(),
      model: executor,
      models: { planner: scriptedModel(["1. first\n2. second"]), synthesizer: scriptedModel(["done"]) },
      tools: [look],
      instructions: "Be brief.",
    });
    const second = executor.calls[2];
    expect(second?.messages.map(({ role }) => role)).toEqual(["system", "user"]);
    const asked = second && promptOf(second);
    expect(asked).toContain("1. first\n2. second");
    expect(asked).toContain("1. first\none");
    expect(asked).toMatch(/Your step: number 2\nsecond$/u);
    expect(second?.messages[0]?.content).toMatch(/^Be brief\.\n\nYou carry out one step/u);
  });

  test("a role of planAndExecute() without a model of its own uses the main model", async () => {
    const model = scriptedModel([
      '{"steps": [{"id": "1", "description": "Look around"}]}',
      "trees",
      "It is a wood.",
    ]);
    const { result } = await runAgent({ architecture: "plan-and-execute", model });
    expect(result.output).toBe("It is a wood.");
    expect(model.calls).toHaveLength(3);
    expect(promptOf(model.calls[1] as never)).toContain("Look around");
  });

  test("an empty plan leads planAndExecute() directly to the answer", async () => {
    const model = scriptedModel(["[]", "Hello!"]);
    const { result, eventNames } = await runAgent({ architecture: planAndExecute(), model }, "Hi");
    expect(result).toMatchObject({ status: "completed", output: "Hello!" });
    expect(eventNames).toEqual([
      "plan.planner_started",
      "plan.empty_plan",
      "plan.synthesizer_started",
      "plan.completed",
    ]);
  });

  test("planAndExecute() asks the planner again, and shows it its reply, if the reply contains no list", async () => {
    const planner = scriptedModel(["Let me think.", '["look"]']);
    const { result, events } = await runAgent({
      architecture: planAndExecute(),
      model: scriptedModel(["seen", "answer"]),
      models: { planner },
    });
    expect(result).toMatchObject({ status: "completed", output: "answer", turns: 4 });
    expect(promptOf(planner.calls[1] as never)).toBe(
      "# Task\nWhat is it?\n\n# Your last reply, which contains no list\nLet me think.",
    );
    expect(architectureEventData(events, "plan.unreadable")).toEqual([
      { attempt: 1, reply: "Let me think." },
    ]);
  });

  test("a step that calls change_plan makes the planner of planAndExecute() replace the remaining steps, once after a restart too", async () => {
    const planner = scriptedModel(['["find the key", "open the door"]', '["ring", "wait"]']);
    const executor = scriptedModel([
      { toolCalls: [{ name: "change_plan", input: { reason: "The key is lost." } }] },
      "No key.",
      "Rang.",
      { toolCalls: [{ name: "wait", input: {} }] },
      "It opened.",
    ]);
    const synthesizer = scriptedModel(["The door is open."]);
    const createAgent = (): Agent =>
      new Agent({
        name: "planner",
        models: { planner, executor, synthesizer, main: executor },
        tools: [signalTool],
        architecture: planAndExecute(),
      });
    const result = await resultAcrossRestart(createAgent);
    expect(result).toMatchObject({ status: "completed", output: "The door is open." });
    expect(result.metadata["plan"]).toMatchObject({
      steps: ["find the key", "ring", "wait"],
      replans: 1,
      done: [{ result: "No key." }, { result: "Rang." }, { result: "It opened." }],
    });
    expect(planner.calls).toHaveLength(2);
    const revision = promptOf(planner.calls[1] as never);
    expect(revision).toContain("# Results\n1. find the key\nNo key.");
    expect(revision).toContain("# Remaining steps\nopen the door");
    expect(revision).toMatch(/# Reason to change the plan\nThe key is lost\.$/u);
  });

  test("a step that fails or has no result makes planAndExecute() revise the plan, at most maxReplans times", async () => {
    const planner = scriptedModel(['["a"]', '["b"]', '["c", "d"]']);
    const executor = scriptedModel([calls("Sens"), "", calls("Sens"), "D."]);
    const { result, events } = await runAgent({
      architecture: planAndExecute({ maxTurnsPerStep: 1, maxReplans: 2 }),
      models: { planner, executor, synthesizer: scriptedModel(["so far"]), main: executor },
      tools: [look],
    });
    expect(result).toMatchObject({ status: "completed", output: "so far" });
    expect(result.metadata["plan"]).toMatchObject({ steps: ["a", "b", "c", "d"], replans: 2 });
    expect(architectureEventData(events, "plan.replan_started")).toEqual([
      { after: 1, reason: "The step ended early: max_turns_exceeded." },
      { after: 2, reason: "The step has no result." },
    ]);
  });

  test("a revised plan of planAndExecute() never exceeds maxSteps steps in all, and an unreadable revision keeps the plan", async () => {
    const planner = scriptedModel(['["a", "b", "c"]', "Hm.", '["x", "y"]']);
    const executor = scriptedModel(["", "", "C."]);
    const { result, eventNames } = await runAgent({
      architecture: planAndExecute({ maxSteps: 3, maxPlanAttempts: 1 }),
      models: { planner, executor, synthesizer: scriptedModel(["so far"]), main: executor },
    });
    expect(eventNames).toContain("plan.replan_failed");
    expect(result.metadata["plan"]).toMatchObject({ steps: ["a", "b", "x"], left: ["y"], replans: 2 });
  });

  test("planAndExecute() with maxReplans: 0 keeps the first plan, and its steps have no tool to change it", async () => {
    const executor = scriptedModel(["", "B."]);
    const { result } = await runAgent({
      architecture: planAndExecute({ maxReplans: 0 }),
      models: {
        planner: scriptedModel(['["a", "b"]']),
        executor,
        synthesizer: scriptedModel(["so far"]),
        main: executor,
      },
    });
    expect(result).toMatchObject({ status: "completed", output: "so far" });
    expect(executor.calls[0]?.tools ?? []).toEqual([]);
  });

  test("planAndExecute() fails after maxPlanAttempts unreadable plans, by default 3, with the planner's text as output", async () => {
    const { result, conversation } = await runAgent({
      architecture: planAndExecute(),
      model: scriptedModel(["No.", "No.", "I would rather not."]),
    });
    expect(result).toMatchObject({
      status: "failed",
      interruptionReason: "unreadable_plan",
      output: "I would rather not.",
    });
    expect(transcriptLines(conversation)).toEqual([
      "user: What is it?",
      "assistant: I would rather not. [interrupted: failed]",
    ]);
  });

  test("planAndExecute() does not execute steps beyond maxSteps, by default 8, and lists them in the synthesizer's prompt", async () => {
    const plan = (count: number) =>
      JSON.stringify(Array.from({ length: count }, (_, index) => `step ${index + 1}`));
    const few = scriptedModel([plan(3), "a", "b", "answer"]);
    const { events } = await runAgent({ architecture: planAndExecute({ maxSteps: 2 }), model: few });
    expect(architectureEventData(events, "plan.created")).toEqual([
      { steps: ["step 1", "step 2"], left: ["step 3"] },
    ]);
    expect(promptOf(few.calls[3] as never)).toContain("# Not done\nstep 3");
    const many = scriptedModel([plan(10), ..."12345678".split(""), "answer"]);
    const { result } = await runAgent({ architecture: planAndExecute(), model: many });
    expect(result.output).toBe("answer");
    expect(many.calls).toHaveLength(10);
  });

  test("a step of planAndExecute() that reaches maxTurnsPerStep counts as a result, and the plan continues unless it is revised", async () => {
    const executor = scriptedModel([calls("Sens"), calls("Sens"), "two"]);
    const { result } = await runAgent({
      architecture: planAndExecute({ maxTurnsPerStep: 1, maxReplans: 0 }),
      model: scriptedModel([]),
      models: {
        planner: scriptedModel(['["one", "two", "three"]']),
        executor,
        synthesizer: scriptedModel(["so far"]),
      },
      tools: [look],
    });
    expect(result).toMatchObject({ status: "completed", output: "so far" });
    const { done } = result.metadata["plan"] as { done: readonly JsonObject[] };
    expect(done.map(({ interruptionReason }) => interruptionReason)).toEqual([
      "max_turns_exceeded",
      "max_turns_exceeded",
      null,
    ]);
  });

  test("any architecture can execute the steps of planAndExecute()", async () => {
    const { result, eventNames } = await runAgent({
      architecture: planAndExecute({ base: selfRefine(react(), { maxRounds: 1 }) }),
      model: scriptedModel(['["write"]', "draft", "too short", "longer draft", "final"]),
    });
    expect(result.output).toBe("final");
    expect(eventNames).toContain("self_refine.refined");
    expect(result.metadata["plan"]).toMatchObject({ done: [{ result: "longer draft" }] });
  });

  test("the planner and the synthesizer of planAndExecute() see the earlier conversation of the session", async () => {
    const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }), unknownPrice: "ignore" });
    const model = scriptedModel(["[]", "Three.", "[]", "MIT."]);
    const agent = new Agent({ name: "thinker", model, architecture: planAndExecute() });
    const first = await (await runtime.submit(agent, "How many bindings?")).result();
    const { sessionId } = first;
    await (await runtime.submit(agent, "And their licences?", { sessionId })).result();
    const history = model.calls.slice(2).map(({ messages }) => messages.slice(1, 3).map(messageText));
    expect(history).toEqual([
      ["How many bindings?", "Three."],
      ["How many bindings?", "Three."],
    ]);
    await runtime.close();
  });

  test("an output schema of planAndExecute() applies only to the synthesizer", async () => {
    const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }), unknownPrice: "ignore" });
    const output = { type: "object", properties: { town: { type: "string" } }, required: ["town"] } as const;
    const model = scriptedModel(['["look"]', "it rains", "Blois", '{"town": "Blois"}']);
    const agent = new Agent({
      name: "thinker",
      model,
      instructions: "Be brief.",
      architecture: planAndExecute(),
    });
    const result = await agent.invoke("Where?", { output, runtime });
    expect(result).toMatchObject({ status: "completed", output: { town: "Blois" } });
    expect(model.calls.map(({ responseFormat }) => responseFormat?.type)).toEqual([
      undefined,
      undefined,
      "json",
      "json",
    ]);
    expect(JSON.stringify(model.calls.slice(0, 2))).not.toContain("JSON Schema");
    expect(model.calls[3]?.messages.slice(1).map(messageText).slice(0, 2)).toEqual(["Where?", "Blois"]);
    await runtime.close();
  });

  test("planAndExecute() shows steering input during a step to the following steps and keeps it in the conversation", async () => {
    const steering = steeringTool("Only in France.");
    const executor = scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "one", "two"]);
    const { eventNames, conversation } = await runAgent(
      {
        architecture: planAndExecute(),
        model: executor,
        models: { planner: scriptedModel(['["a", "b"]']), synthesizer: scriptedModel(["done"]) },
        tools: [steering.tool],
      },
      "Where?",
      { onStart: steering.onStart },
    );
    expect(eventNames).toContain("plan.steering_injected");
    expect(executor.calls.map((call) => promptOf(call).includes("Only in France."))).toEqual([
      false,
      false,
      true,
    ]);
    expect(transcriptLines(conversation)).toEqual([
      "user: Where?",
      "user: Only in France.",
      "assistant: done",
    ]);
  });

  test("steering input during a step of planAndExecute() is shown to an architecture that wraps it", async () => {
    const steering = steeringTool("Only in France.");
    const critic = scriptedModel(["Say the town.", "No issues."]);
    const refiner = scriptedModel(["Lyon."]);
    const image = {
      type: "image",
      mediaType: "image/png",
      source: { kind: "base64", data: "AA==" },
    } as const;
    const { conversation } = await runAgent(
      {
        architecture: selfRefine(planAndExecute()),
        model: scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "one"]),
        models: { planner: scriptedModel(['["a"]']), synthesizer: scriptedModel(["done"]), critic, refiner },
        tools: [steering.tool],
      },
      [{ type: "text", text: "Where?" }, image],
      { onStart: steering.onStart },
    );
    for (const { calls: made } of [critic, refiner])
      for (const call of made) expect(promptOf(call)).toContain("Where?\n\nOnly in France.");
    expect(transcriptLines(conversation)).toEqual([
      "user: Where?",
      "user: Only in France.",
      "assistant: Lyon.",
    ]);
    expect(conversation[0]?.content).toEqual([{ type: "text", text: "Where?" }, image]);
  });

  test("B5: planAndExecute() keeps its plan and the results so far when the budget is exhausted", async () => {
    const { result, conversation } = await runAgent({
      architecture: planAndExecute(),
      model: scriptedModel(['["a", "b"]', "result of a"]),
      budget: { maxTurns: 2 },
    });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "1. a\nresult of a" });
    expect(result.metadata["plan"]).toMatchObject({ steps: ["a", "b"], done: [{ step: "a" }] });
    expect(transcriptLines(conversation)).toEqual([
      "user: What is it?",
      "assistant: 1. a\nresult of a [interrupted: budget_exhausted]",
    ]);
  });

  test("C2: planAndExecute() calls no model after a cancel, and the question stays in the conversation", async () => {
    const cancelling = cancellingTool();
    const model = scriptedModel(['["a", "b"]', { toolCalls: [{ name: "look", input: {} }] }]);
    const { result, conversation } = await runAgent(
      { architecture: planAndExecute(), model, tools: [cancelling.tool] },
      "Where?",
      { onStart: cancelling.onStart },
    );
    expect(result.status).toBe("cancelled");
    expect(model.calls).toHaveLength(2);
    expect(transcriptLines(conversation)).toEqual(["user: Where?", "assistant: [interrupted: cancelled]"]);
  });

  test("a run of planAndExecute() that another runtime resumes continues its plan and repeats no model call", async () => {
    const model = scriptedModel([
      '["a", "b"]',
      "result of a",
      { toolCalls: [{ name: "wait", input: {} }] },
      "result of b",
      "answer",
    ]);
    const createAgent = (): Agent =>
      new Agent({ name: "planner", model, tools: [signalTool], architecture: planAndExecute() });
    expect(await resultAcrossRestart(createAgent)).toMatchObject({
      status: "completed",
      output: "answer",
      turns: 5,
    });
    expect(model.calls).toHaveLength(5);
  });

  test.for([
    [{ maxReplans: -1 }, "invalid maxReplans -1 of planAndExecute(): expected an integer from 0"],
    [{ maxPlanAttempts: 0 }, "invalid maxPlanAttempts 0 of planAndExecute(): expected an integer from 1"],
    [{ maxSteps: 0 }, "invalid maxSteps 0 of planAndExecute(): expected an integer from 1"],
    [{ maxTurnsPerStep: 1.5 }, "invalid maxTurnsPerStep 1.5 of planAndExecute(): expected an integer from 1"],
  ] as const)("planAndExecute() refuses the options %j", ([options, message]) => {
    expect(() => planAndExecute(options)).toThrow(message);
  });
});
