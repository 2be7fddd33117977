import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { planAndExecute, react, reflexion, selfRefine } from "../../../src/agents/architectures/index.ts";
import { tool, type AgentOptions } from "../../../src/entries/index.ts";
import { messageText, type Architecture, type Memory } from "../../../src/kernel/index.ts";
import { openMemory } from "../../../src/assembly/memory.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import {
  architectureEventData,
  cancellingTool,
  promptOf,
  runAgent,
  steeringTool,
  transcriptLines,
} from "./run-agent.ts";

const score = (value: number) => JSON.stringify({ score: value, reason: "because" });

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "seen",
});
const calls = { text: "Looking.", toolCalls: [{ name: "look", input: {} }] };

describe("reflexion()", () => {
  test("reflexion() returns its first attempt if that reaches the threshold", async () => {
    const { result, eventNames, conversation } = await runAgent({
      architecture: reflexion(),
      model: scriptedModel(["Paris."]),
      models: { evaluator: scriptedModel([score(0.8)]), reflector: scriptedModel([]) },
    });
    expect(result).toMatchObject({ status: "completed", output: "Paris.", turns: 2 });
    expect(eventNames).toEqual([
      "reflexion.attempt_started",
      "reflexion.evaluated",
      "reflexion.threshold_met",
    ]);
    expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: Paris."]);
  });

  test("reflexion() repeats an attempt below the threshold from the start, with a lesson", async () => {
    const model = scriptedModel([calls, "Lyon.", "Paris."]);
    const reflector = scriptedModel(["Name the capital."]);
    const { result, eventNames, conversation } = await runAgent({
      architecture: reflexion(),
      model,
      instructions: "Be brief.",
      tools: [look],
      models: { evaluator: scriptedModel([score(0.2), score(1)]), reflector },
    });
    expect(result).toMatchObject({ status: "completed", output: "Paris." });
    expect(result.metadata["reflexion"]).toEqual({ scores: [0.2, 1], lessons: ["Name the capital."] });
    const second = model.calls[2];
    expect(second?.messages.slice(1).map(messageText)).toEqual(["What is it?"]);
    expect(second?.messages[0]?.content).toMatch(
      /^Be brief\.\n\nLessons from earlier attempts.*\n- Name the capital\.$/u,
    );
    expect(promptOf(reflector.calls[0] as never)).toContain('"reason":"because"');
    expect(eventNames).toContain("reflexion.lesson_produced");
    expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: Paris."]);
  });

  test("reflexion() returns the best attempt after maxAttempts, by default 3, and the later one of a tie", async () => {
    const { result, eventNames, conversation } = await runAgent({
      architecture: reflexion(),
      model: scriptedModel(["bad", "good", "worse"]),
      models: {
        evaluator: scriptedModel([score(0.1), score(0.7), score(0.3)]),
        reflector: scriptedModel(["1", "2"]),
      },
    });
    expect(result).toMatchObject({ status: "completed", output: "good" });
    expect(eventNames.at(-1)).toBe("reflexion.max_attempts_reached");
    expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: good"]);
    const tie = await runAgent({
      architecture: reflexion(react(), { maxAttempts: 2 }),
      model: scriptedModel(["first", "second"]),
      models: { evaluator: scriptedModel([score(0.5), score(0.5)]), reflector: scriptedModel(["1"]) },
    });
    expect(tie.result.output).toBe("second");
  });

  test.for([
    ["no number at all", 0],
    ["Score: 0.9 of 1", 0.9],
    ['```json\n{"score": "7/10"}\n```', 0.7],
    ['{"score": -3}', 0],
  ] as const)("reflexion() reads the evaluation %j as score %d", async ([lines, expected]) => {
    const { result } = await runAgent({
      architecture: reflexion(react(), { maxAttempts: 1 }),
      model: scriptedModel(["Paris."]),
      models: { evaluator: scriptedModel([lines]) },
    });
    expect(result.metadata["reflexion"]).toEqual({ scores: [expected], lessons: [] });
  });

  test("each attempt of reflexion() gets all maxTurnsPerAttempt, and an interrupted attempt is evaluated by its output", async () => {
    const evaluator = scriptedModel([score(0.1), score(0.9)]);
    const { result } = await runAgent({
      architecture: reflexion(react(), { maxTurnsPerAttempt: 2 }),
      model: scriptedModel([calls, calls, calls, "Paris."]),
      tools: [look],
      models: { evaluator, reflector: scriptedModel(["Stop looking."]) },
    });
    expect(result).toMatchObject({ status: "completed", output: "Paris.", turns: 7 });
    expect(promptOf(evaluator.calls[0] as never)).toContain(
      "# Answer\nLooking.\n\n# Ended early\nmax_turns_exceeded",
    );
  });

  test("reflexion() is interrupted if its best attempt was, unless that attempt reaches the threshold", async () => {
    const once = (value: number) =>
      runAgent({
        architecture: reflexion(react(), { maxAttempts: 1, maxTurnsPerAttempt: 1 }),
        model: scriptedModel([calls]),
        tools: [look],
        models: { evaluator: scriptedModel([score(value)]) },
      });
    expect((await once(0.3)).result).toMatchObject({
      status: "max_turns",
      interruptionReason: "max_turns_exceeded",
    });
    expect((await once(0.9)).result).toMatchObject({
      status: "completed",
      output: "Looking.",
      interruptionReason: null,
    });
  });

  test("reflexion() wraps any architecture and shows the lessons to its roles", async () => {
    const planner = scriptedModel(["[]", '["look"]']);
    const { result, conversation } = await runAgent({
      architecture: reflexion(planAndExecute()),
      model: scriptedModel(["guess", "found it", "It is a wood."]),
      models: {
        planner,
        evaluator: scriptedModel([score(0), score(1)]),
        reflector: scriptedModel(["Look first."]),
      },
    });
    expect(result.output).toBe("It is a wood.");
    expect(planner.calls[1]?.messages[0]?.content).toContain("- Look first.");
    expect(result.metadata).toMatchObject({ plan: { steps: ["look"] }, reflexion: { scores: [0, 1] } });
    expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: It is a wood."]);
  });

  test("reflexion() shows what the user adds during one attempt to the next attempt", async () => {
    const steering = steeringTool("Only in France.");
    const model = scriptedModel([calls, "Turin.", "Lyon."]);
    const evaluator = scriptedModel([score(0), score(1)]);
    await runAgent(
      {
        architecture: reflexion(),
        model,
        tools: [steering.tool],
        models: { evaluator, reflector: scriptedModel(["Think."]) },
      },
      "Where?",
      { onStart: steering.onStart },
    );
    expect(promptOf(model.calls[2] as never)).toBe("Where?\n\nOnly in France.");
    expect(promptOf(evaluator.calls[0] as never)).toContain("Only in France.");
  });

  describe("messages that the user adds during an attempt", () => {
    const steered = async (
      architecture: Architecture,
      scripts: Readonly<Record<string, readonly ScriptStep[]>>,
      options: Partial<AgentOptions> = {},
    ) => {
      const steering = steeringTool("Only in France.");
      const models = Object.fromEntries(
        Object.entries(scripts).map(([role, script]) => [role, scriptedModel(script)]),
      );
      const ran = await runAgent({ architecture, tools: [steering.tool], models, ...options }, "Where?", {
        onStart: steering.onStart,
      });
      const asked = (role: string) => models[role]?.calls.map((call) => promptOf(call)) ?? [];
      return { ...ran, asked, lines: transcriptLines(ran.conversation) };
    };
    const quiet = { toolCalls: [{ name: "look", input: {} }] };

    test("messages that the user adds during an attempt are kept in the session if a later attempt is the answer", async () => {
      const { lines } = await steered(reflexion(), {
        main: [quiet, "Turin.", "Lyon."],
        evaluator: [score(0), score(1)],
        reflector: ["Think."],
      });
      expect(lines).toEqual(["user: Where?", "user: Only in France.", "assistant: Lyon."]);
    });

    test("messages that the user adds during an attempt are kept in the session if an earlier attempt is the answer", async () => {
      const { lines, result } = await steered(reflexion(react(), { maxAttempts: 2 }), {
        main: ["Turin.", quiet, "Lyon."],
        evaluator: [score(0.5), score(0)],
        reflector: ["Think."],
      });
      expect(result.output).toBe("Turin.");
      expect(lines).toEqual(["user: Where?", "assistant: Turin.", "user: Only in France."]);
    });

    test("messages that the user adds during an attempt are kept in the session if the attempt is stopped and an earlier one is the answer", async () => {
      const { lines, result } = await steered(
        reflexion(),
        { main: ["Turin.", quiet], evaluator: [score(0.5)], reflector: ["Think."] },
        { budget: { maxTurns: 4 } },
      );
      expect(result).toMatchObject({ status: "budget_exhausted", output: "Turin." });
      expect(lines).toEqual([
        "user: Where?",
        "assistant: Turin.",
        "user: Only in France.",
        "assistant: [interrupted: budget_exhausted]",
      ]);
    });

    test("reflexion() with the base planAndExecute() shows messages that the user adds during an attempt to the evaluator", async () => {
      const { lines, asked } = await steered(reflexion(planAndExecute()), {
        main: [],
        planner: ['["look"]', '["think"]'],
        executor: [quiet, "seen", "thought"],
        synthesizer: ["Turin.", "Lyon."],
        evaluator: [score(0), score(1)],
        reflector: ["Think."],
      });
      expect(lines).toEqual(["user: Where?", "user: Only in France.", "assistant: Lyon."]);
      expect(asked("evaluator")[0]).toContain("Only in France.");
      expect(asked("planner")[1]).toContain("Where?\n\nOnly in France.");
    });

    test("messages that the user adds during an attempt are shown to the critic of a selfRefine() that wraps reflexion()", async () => {
      const { asked, lines } = await steered(selfRefine(reflexion()), {
        main: [quiet, "Turin.", "Lyon."],
        evaluator: [score(0), score(1)],
        reflector: ["Think."],
        critic: ["No issues."],
      });
      expect(asked("critic")[0]).toContain("Where?\n\nOnly in France.");
      expect(lines.at(-1)).toBe("assistant: Lyon.");
    });
  });

  test("reflexion() with a memory stores lessons for later tasks of the same user only", async () => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-reflexion-"));
    const memory = await openMemory({ path: join(folder, "memory.db") });
    try {
      await memory.remember({ userId: "ada" }, { type: "episode", text: "Ada likes the capital of France" });
      const run = (userId: string, ...answers: readonly string[]) => {
        const model = scriptedModel(answers);
        return runAgent(
          {
            architecture: reflexion(react(), { maxAttempts: 2 }),
            model,
            memory,
            models: {
              evaluator: scriptedModel(answers.map((answer) => score(answer === "Paris." ? 1 : 0))),
              reflector: scriptedModel(["Say the town, not the country."]),
            },
          },
          "What is the capital of France?",
          { userId },
        ).then((done) => ({ ...done, model }));
      };
      const first = await run("ada", "France.", "Paris.");
      expect(first.eventNames).toEqual([
        "reflexion.lessons_recalled",
        "reflexion.attempt_started",
        "reflexion.evaluated",
        "reflexion.lesson_produced",
        "reflexion.lesson_persisted",
        "reflexion.attempt_started",
        "reflexion.evaluated",
        "reflexion.threshold_met",
      ]);
      const second = await run("ada", "Paris.");
      expect(second.model.calls[0]?.messages[0]?.content).toContain("- Say the town, not the country.");
      expect(architectureEventData(second.events, "reflexion.lessons_recalled")).toEqual([
        { lessons: ["Say the town, not the country."] },
      ]);
      const other = await run("bob", "Paris.");
      expect(architectureEventData(other.events, "reflexion.lessons_recalled")).toEqual([{ lessons: [] }]);
    } finally {
      await memory.close();
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("a memory that fails loses the lessons of reflexion() but does not fail the run", async () => {
    const broken = {
      blocks: async () => [],
      recall: () => Promise.reject(new Error("disk full")),
      remember: () => Promise.reject(new Error("disk full")),
    } as unknown as Memory;
    const { result, events } = await runAgent({
      architecture: reflexion(),
      model: scriptedModel(["Lyon.", "Paris."]),
      memory: broken,
      models: { evaluator: scriptedModel([score(0), score(1)]), reflector: scriptedModel(["Think."]) },
    });
    expect(result).toMatchObject({ status: "completed", output: "Paris." });
    expect(architectureEventData(events, "reflexion.memory_failed")).toEqual([
      { problem: "disk full" },
      { problem: "disk full" },
    ]);
  });

  test("an attempt of reflexion() sees only the latest maxLessons lessons", async () => {
    const model = scriptedModel(["1", "2", "3", "4"]);
    await runAgent({
      architecture: reflexion(react(), { maxAttempts: 4, maxLessons: 2 }),
      model,
      models: {
        evaluator: scriptedModel([0, 0, 0, 1].map(score)),
        reflector: scriptedModel(["one", "two", "three"]),
      },
    });
    expect(model.calls[3]?.messages[0]?.content).toMatch(/- two\n- three$/u);
  });

  test("B5, S1: reflexion() with an exhausted budget returns its first attempt, or the best earlier one", async () => {
    const first = await runAgent({
      architecture: reflexion(),
      model: scriptedModel([calls]),
      tools: [look],
      models: { evaluator: scriptedModel([]) },
      budget: { maxTurns: 1 },
    });
    expect(first.result).toMatchObject({ status: "budget_exhausted", output: "Looking." });
    expect(first.conversation.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    const later = await runAgent({
      architecture: reflexion(),
      model: scriptedModel(["Lyon.", calls]),
      tools: [look],
      models: { evaluator: scriptedModel([score(0.5)]), reflector: scriptedModel(["Look."]) },
      budget: { maxTurns: 4 },
    });
    expect(later.result).toMatchObject({ status: "budget_exhausted", output: "Lyon." });
    expect(later.result.metadata["reflexion"]).toEqual({ scores: [0.5], lessons: ["Look."] });
    expect(transcriptLines(later.conversation)).toEqual([
      "user: What is it?",
      "assistant: Lyon. [interrupted: budget_exhausted]",
    ]);
  });

  test("B5: reflexion() keeps a complete attempt when the budget is exhausted before its evaluation", async () => {
    const stopped = (script: Parameters<typeof scriptedModel>[0], maxTurns: number) =>
      runAgent({
        architecture: reflexion(),
        model: scriptedModel(script),
        tools: [look],
        models: { evaluator: scriptedModel([score(0.5)]), reflector: scriptedModel(["Be brief."]) },
        budget: { maxTurns },
      });
    const first = await stopped([calls, "Lyon."], 2);
    expect(first.result).toMatchObject({ status: "budget_exhausted", output: "Lyon." });
    expect(transcriptLines(first.conversation).at(-1)).toBe(
      "assistant: Lyon. [interrupted: budget_exhausted]",
    );
    // The attempt that is already evaluated is kept, not the newer one.
    const both = await stopped(["Lyon.", "Turin."], 4);
    expect(both.result).toMatchObject({ status: "budget_exhausted", output: "Lyon." });
  });

  test("C2: reflexion() calls no evaluator after a cancel during an attempt", async () => {
    const cancelling = cancellingTool();
    const evaluator = scriptedModel([]);
    const { result } = await runAgent(
      {
        architecture: reflexion(),
        model: scriptedModel([calls]),
        tools: [cancelling.tool],
        models: { evaluator },
      },
      "Where?",
      { onStart: cancelling.onStart },
    );
    expect(result.status).toBe("cancelled");
    expect(evaluator.calls).toHaveLength(0);
  });

  test.for([
    [{ maxAttempts: 0 }, "invalid maxAttempts 0 of reflexion()"],
    [{ threshold: 1.1 }, "invalid threshold 1.1 of reflexion(): expected a number from 0 to 1"],
    [{ threshold: Number.NaN }, "invalid threshold NaN of reflexion()"],
    [{ maxLessons: 0 }, "invalid maxLessons 0 of reflexion()"],
    [{ maxTurnsPerAttempt: 0 }, "invalid maxTurnsPerAttempt 0 of reflexion()"],
  ] as const)("reflexion() refuses the options %j", ([options, message]) => {
    expect(() => reflexion(react(), options)).toThrow(message);
  });

  test("reflexion() neither stores nor counts a blank lesson", async () => {
    const kept: unknown[] = [];
    const memory: Memory = {
      blocks: async () => [],
      recall: async () => ({ episodes: [], facts: [] }),
      remember: async (_scope: unknown, write: unknown) => {
        kept.push(write);
        return "id";
      },
    } as unknown as Memory;
    const model = scriptedModel(["Turin.", "Lyon."]);
    const { result } = await runAgent({
      architecture: reflexion(),
      memory,
      model,
      models: { evaluator: scriptedModel([score(0), score(1)]), reflector: scriptedModel([" \n"]) },
    });
    expect(result).toMatchObject({
      output: "Lyon.",
      metadata: { reflexion: { scores: [0, 1], lessons: [] } },
    });
    expect(kept).toEqual([]);
  });
});
