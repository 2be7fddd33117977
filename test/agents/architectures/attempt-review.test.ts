import { describe, expect, test } from "vitest";
import {
  planAndExecute,
  react,
  reflexion,
  type ReflexionOptions,
} from "../../../src/agents/architectures/index.ts";
import { Agent, tool } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { promptOf, resultAcrossRestart, runAgent, signalTool } from "./run-agent.ts";

const score = (value: number) => JSON.stringify({ score: value, reason: "because" });

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "seen",
});
const calls = { text: "Looking.", toolCalls: [{ name: "look", input: {} }] };

describe("the review of an attempt in reflexion()", () => {
  test("the evaluator and the reflector of reflexion() see the actions and observations of the attempt", async () => {
    const evaluator = scriptedModel([score(0.2), score(1)]);
    const reflector = scriptedModel(["Look twice."]);
    const { result } = await runAgent({
      architecture: reflexion(),
      model: scriptedModel([calls, "Lyon.", "Paris."]),
      tools: [look],
      models: { evaluator, reflector },
    });
    expect(result.output).toBe("Paris.");
    const seen =
      "# Task\nWhat is it?\n\n# Actions and observations\nThought: Looking.\nAction: look {}\nObservation of look: seen\n\n# Answer\nLyon.";
    expect(promptOf(evaluator.calls[0] as never)).toBe(seen);
    expect(promptOf(reflector.calls[0] as never)).toBe(`${seen}\n\n# Judgement\n${score(0.2)}`);
    expect(promptOf(evaluator.calls[1] as never)).toBe("# Task\nWhat is it?\n\n# Answer\nParis.");
  });

  test("the evaluator and the reflector of reflexion() see the work of a base without a conversation, such as its plan", async () => {
    const evaluator = scriptedModel([score(1)]);
    await runAgent({
      architecture: reflexion(planAndExecute()),
      model: scriptedModel(['["look"]', "It rains.", "Rain."]),
      models: { evaluator },
    });
    expect(promptOf(evaluator.calls[0] as never)).toContain('"result":"It rains."');
  });

  test("reflexion() shortens a long trajectory for its evaluator and keeps the latest entries", async () => {
    const long = tool({
      name: "long",
      description: "Reads",
      inputSchema: { type: "object" },
      execute: () => "x".repeat(5_000),
    });
    const turn = (number: number) => ({ toolCalls: [{ name: "long", input: { number } }] });
    const evaluator = scriptedModel([score(1)]);
    await runAgent({
      architecture: reflexion(),
      model: scriptedModel([...Array.from({ length: 15 }, (_, index) => turn(index + 1)), "Done."]),
      tools: [long],
      models: { evaluator },
    });
    const prompt = promptOf(evaluator.calls[0] as never);
    expect(prompt.length).toBeLessThan(21_000);
    expect(prompt).toContain("x [3021 more characters]");
    expect(prompt).toMatch(/\[\d+ earlier entries left out\]/u);
    expect(prompt).toContain('Action: long {"number":15}');
    expect(prompt).not.toContain('Action: long {"number":1}');
  });

  test("the evaluator and the reflector of reflexion() may be functions, which are called once also if another runtime resumes", async () => {
    const called: string[] = [];
    const model = scriptedModel([calls, "Lyon.", { toolCalls: [{ name: "wait", input: {} }] }, "Paris."]);
    const createAgent = (): Agent =>
      new Agent({
        name: "solver",
        model,
        tools: [look, signalTool],
        architecture: reflexion(react(), {
          evaluator: ({ attempt, output, messages }) => {
            called.push(`evaluator ${attempt} ${output} ${messages.map(({ role }) => role).join()}`);
            return output === "Paris." ? 1 : { score: 0.1, reason: "not the capital" };
          },
          reflector: ({ output, score: given, reason }) => {
            called.push(`reflector ${output} ${given} ${reason}`);
            return "Name the capital.";
          },
        }),
      });
    const result = await resultAcrossRestart(createAgent);
    expect(result).toMatchObject({ status: "completed", output: "Paris." });
    expect(result.metadata["reflexion"]).toEqual({ scores: [0.1, 1], lessons: ["Name the capital."] });
    expect(called).toEqual([
      "evaluator 1 Lyon. user,assistant,tool,assistant",
      "reflector Lyon. 0.1 not the capital",
      "evaluator 2 Paris. user,assistant,tool,assistant",
    ]);
    expect(model.calls).toHaveLength(4);
  });

  test.for<readonly [string, ReflexionOptions, string]>([
    ["an evaluator that returns 7", { evaluator: () => 7 }, "the evaluator of reflexion returned 7"],
    [
      "a reflector that returns 7",
      { evaluator: () => 0, reflector: () => 7 as never },
      "the reflector of reflexion returned 7",
    ],
  ])("%s fails the run of reflexion() with invalid_argument", async ([, options, message]) => {
    const { result } = await runAgent({
      architecture: reflexion(react(), options),
      model: scriptedModel(["a"]),
    });
    expect(result).toMatchObject({ status: "failed", error: { code: "invalid_argument" } });
    expect(result.error?.message).toContain(message);
  });

  test("reflexion() refuses an evaluator that is no function, and the error names the role", () => {
    const evaluator = scriptedModel([]) as never;
    expect(() => reflexion(react(), { evaluator })).toThrow("set models.evaluator of the agent");
  });
});
