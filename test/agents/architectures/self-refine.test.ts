import { describe, expect, test } from "vitest";
import { planAndExecute, react, selfRefine } from "../../../src/agents/architectures/index.ts";
import { Agent, memoryStore, openRuntime, sha256, tool } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { cancellingTool, promptOf, runAgent, transcriptLines } from "./run-agent.ts";

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "seen",
});
const calls = { text: "Looking.", toolCalls: [{ name: "look", input: {} }] };

describe("selfRefine()", () => {
  test("selfRefine() criticises and rewrites the answer until the critic finds no more issues", async () => {
    const model = scriptedModel([calls, "draft"]);
    const critic = scriptedModel(["Too short.", "There are No Issues any more."]);
    const refiner = scriptedModel(["a longer draft"]);
    const { result, eventNames, conversation } = await runAgent({
      architecture: selfRefine(),
      model,
      models: { critic, refiner },
      tools: [look],
    });
    expect(result).toMatchObject({ status: "completed", output: "a longer draft", turns: 5 });
    expect(eventNames).toEqual([
      "self_refine.round_started",
      "self_refine.critique",
      "self_refine.refined",
      "self_refine.round_started",
      "self_refine.critique",
      "self_refine.converged",
    ]);
    expect(promptOf(refiner.calls[0] as never)).toBe(
      "# Task\nWhat is it?\n\n# Answer\ndraft\n\n# Critique\nToo short.",
    );
    expect(promptOf(critic.calls[1] as never)).toContain("a longer draft");
    expect(critic.calls.every(({ tools = [] }) => tools.length === 0)).toBe(true);
    expect(transcriptLines(conversation)).toEqual([
      "user: What is it?",
      "assistant: Looking.",
      "tool: ",
      "assistant: a longer draft",
    ]);
  });

  test("the critic and the refiner of selfRefine() see all earlier versions and critiques", async () => {
    const critic = scriptedModel(["No source.", "Too long.", "no issues"]);
    const refiner = scriptedModel(["v1", "v2"]);
    const { result } = await runAgent({
      architecture: selfRefine(),
      model: scriptedModel(["v0"]),
      models: { critic, refiner },
    });
    const first = "## Version 1\nv0\n\n## Critique of it\nNo source.";
    expect(promptOf(refiner.calls[1] as never)).toBe(
      `# Task\nWhat is it?\n\n# Earlier rounds\n${first}\n\n# Answer\nv1\n\n# Critique\nToo long.`,
    );
    expect(promptOf(critic.calls[2] as never)).toContain(
      `${first}\n\n## Version 2\nv1\n\n## Critique of it\nToo long.\n\n# Answer\nv2`,
    );
    expect(result.metadata).toEqual({ selfRefine: { rounds: 2, feedback: ["No source.", "Too long."] } });
  });

  test("selfRefine() returns the latest version after maxRounds, by default 3", async () => {
    const { result, eventNames } = await runAgent({
      architecture: "self-refine",
      model: scriptedModel(["v0"]),
      models: { critic: scriptedModel(["a", "b", "c"]), refiner: scriptedModel(["v1", "v2", "v3"]) },
    });
    expect(result).toMatchObject({ status: "completed", output: "v3" });
    expect(eventNames.at(-1)).toBe("self_refine.max_rounds_reached");
  });

  test("a custom stopPhrase ends the rounds of selfRefine()", async () => {
    const { result } = await runAgent({
      architecture: selfRefine(react(), { stopPhrase: "Ship it" }),
      model: scriptedModel(["v0", "no issues, but longer", "v1", "ship it!"]),
    });
    expect(result.output).toBe("v1");
  });

  test("selfRefine() does not refine the answer of an interrupted base", async () => {
    const critic = scriptedModel([]);
    const { result } = await runAgent({
      architecture: selfRefine(),
      model: scriptedModel([calls]),
      models: { critic },
      tools: [look],
      maxTurns: 1,
    });
    expect(result).toMatchObject({ status: "max_turns", output: "Looking." });
    expect(critic.calls).toHaveLength(0);
  });

  test("selfRefine() wraps any architecture and does not change the answers of earlier invocations", async () => {
    const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }), unknownPrice: "ignore" });
    const model = scriptedModel([
      "[]",
      "one",
      "more",
      "one!",
      "no issues",
      "[]",
      "two",
      "more",
      "two!",
      "no issues",
    ]);
    const agent = new Agent({ name: "thinker", model, architecture: selfRefine(planAndExecute()) });
    const { sessionId } = await agent.invoke("First?", { runtime });
    const { output } = await agent.invoke("Second?", { runtime, sessionId });
    expect(output).toBe("two!");
    const before = model.calls[5]?.messages.slice(1, 3) ?? [];
    expect(transcriptLines(before)).toEqual(["user: First?", "assistant: one!"]);
    await runtime.close();
  });

  test("B5: selfRefine() returns its latest version, also in the conversation, when the budget is exhausted", async () => {
    const { result, conversation } = await runAgent({
      architecture: selfRefine(),
      model: scriptedModel(["v0"]),
      models: { critic: scriptedModel(["a"]), refiner: scriptedModel(["v1"]) },
      budget: { maxTurns: 3 },
    });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "v1" });
    expect(transcriptLines(conversation)).toEqual([
      "user: What is it?",
      "assistant: v1 [interrupted: budget_exhausted]",
    ]);
  });

  test("C2: selfRefine() calls no critic after a cancel while the base works", async () => {
    const cancelling = cancellingTool();
    const critic = scriptedModel([]);
    const { result } = await runAgent(
      {
        architecture: selfRefine(),
        model: scriptedModel([calls]),
        tools: [cancelling.tool],
        models: { critic },
      },
      "Where?",
      { onStart: cancelling.onStart },
    );
    expect(result.status).toBe("cancelled");
    expect(critic.calls).toHaveLength(0);
  });

  test.for([
    [{ maxRounds: 0 }, "invalid maxRounds 0 of selfRefine(): expected an integer from 1"],
    [{ stopPhrase: " " }, 'invalid stopPhrase " " of selfRefine(): expected a text that is not empty'],
  ] as const)("selfRefine() refuses the options %j", ([options, message]) => {
    expect(() => selfRefine(react(), options)).toThrow(message);
  });
});
