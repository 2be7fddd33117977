import { describe, expect, test } from "vitest";
import { treeOfThoughts } from "../../../src/agents/architectures/index.ts";
import type { JsonObject, ModelRequest, RunHandle } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { promptOf, BarrierModel, architectureEventData, transcriptLines, runAgent } from "./run-agent.ts";

/** Creates a model that answers any number of calls by their prompts. */
function answering(answer: (asked: string) => string): ScriptedModel {
  return scriptedModel(
    Array.from({ length: 200 }, (): ScriptStep => (request: ModelRequest) => answer(promptOf(request))),
  );
}

/** Creates a proposer that returns three thoughts, named by their path: a, b, c, aa, ab, ... */
const proposer = () =>
  answering((asked) => {
    const path = lastThought(asked);
    return JSON.stringify([`${path}a`, `${path}b`, `${path}c`]);
  });

/** Creates an evaluator that scores a thought by its number of b's. */
const evaluator = () => answering((asked) => `{"score": ${(lastThought(asked).split("b").length - 1) / 10}}`);

function lastThought(asked: string): string {
  return /# Thoughts so far\n[\s\S]*?(?:^|\n)?\d+\. (\w*)$/u.exec(asked)?.[1] ?? "";
}

interface Tree {
  readonly best: string;
  readonly thoughts: readonly {
    readonly id: string;
    readonly parentId: string | null;
    readonly text: string;
    readonly score: number;
  }[];
}

describe("treeOfThoughts()", () => {
  test("treeOfThoughts() follows the best thoughts of each level and answers from the best chain", async () => {
    const [propose, evaluate, synthesizer] = [proposer(), evaluator(), scriptedModel(["the answer"])];
    const { result, eventNames, events, conversation } = await runAgent({
      architecture: "tree-of-thoughts",
      model: scriptedModel([]),
      models: { proposer: propose, evaluator: evaluate, synthesizer },
    });
    expect(result).toMatchObject({ status: "completed", output: "the answer" });
    expect(propose.calls).toHaveLength(1 + 2 + 2);
    expect(evaluate.calls).toHaveLength(3 + 6 + 6);
    expect(promptOf(synthesizer.calls[0] as never)).toContain("# Thoughts\n1. b\n2. bb\n3. bbb");
    const tree = result.metadata["tree"] as unknown as Tree;
    expect(tree.thoughts).toHaveLength(15);
    expect(tree.best).toBe("2.2.2");
    expect(tree.thoughts.find(({ id }) => id === "2.2.2")).toEqual({
      id: "2.2.2",
      parentId: "2.2",
      text: "bbb",
      score: 0.3,
    });
    expect(new Set(eventNames)).toEqual(
      new Set([
        "tot.started",
        "tot.level_started",
        "tot.proposed",
        "tot.evaluated",
        "tot.pruned",
        "tot.synthesized",
        "tot.completed",
      ]),
    );
    expect(architectureEventData(events, "tot.level_started")).toEqual([
      { level: 1, frontier: [] },
      { level: 2, frontier: ["2", "1"] },
      { level: 3, frontier: ["2.2", "2.1"] },
    ]);
    expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: the answer"]);
  });

  test("treeOfThoughts() gives the same answer with parallel: true and parallel: false", async () => {
    const run = async (parallel: boolean) => {
      const { result, eventNames } = await runAgent({
        architecture: treeOfThoughts({ parallel }),
        model: scriptedModel(["the answer"]),
        models: { proposer: proposer(), evaluator: evaluator() },
      });
      return { output: result.output, metadata: result.metadata, turns: result.turns, notes: eventNames };
    };
    expect(await run(true)).toEqual(await run(false));
  });

  test("treeOfThoughts() scores the thoughts of a level in parallel", async () => {
    const evaluate = new BarrierModel(['{"score": 0.1}', '{"score": 0.2}', '{"score": 0.3}'], 3);
    await runAgent({
      architecture: treeOfThoughts({ depth: 1, synthesizeFinal: false }),
      model: scriptedModel(['["a", "b", "c"]']),
      models: { evaluator: evaluate },
    });
    expect(evaluate.maxInFlight).toBe(3);
  });

  test("a thought that reaches solvedScore ends the search of treeOfThoughts()", async () => {
    const { result, eventNames } = await runAgent({
      architecture: treeOfThoughts({ solvedScore: 0.9, synthesizeFinal: false }),
      model: scriptedModel(["- left\n- right"]),
      models: { evaluator: scriptedModel(["0.2", "0.95"]) },
    });
    expect(result).toMatchObject({ status: "completed", output: "right", turns: 3 });
    expect(eventNames.slice(-2)).toEqual(["tot.solved", "tot.completed"]);
  });

  test("treeOfThoughts() follows no thought below minScore, and answers from the level before an empty level", async () => {
    const { result, eventNames, events } = await runAgent({
      architecture: treeOfThoughts({ branches: 1, minScore: 0.5, synthesizeFinal: false }),
      model: scriptedModel(['["first"]', '["second"]']),
      models: { evaluator: scriptedModel(['{"score": 0.6}', "no idea"]) },
    });
    expect(result).toMatchObject({ status: "completed", output: "first" });
    expect(eventNames).toContain("tot.empty_beam");
    expect(architectureEventData(events, "tot.completed")).toMatchObject([
      { end: "empty_beam", id: "1", score: 0.6 },
    ]);
  });

  test.for([
    ["empty_beam", '["first"]'],
    ["no_thoughts", "I have none."],
  ] as const)("%s at the first level interrupts the run of treeOfThoughts()", async ([reason, proposal]) => {
    const { result, eventNames } = await runAgent({
      architecture: treeOfThoughts({ minScore: 0.5 }),
      model: scriptedModel([proposal]),
      models: { evaluator: scriptedModel(["0.1"]) },
    });
    expect(result).toMatchObject({ status: "failed", interruptionReason: reason, output: "" });
    expect(eventNames.at(-1)).toBe(`tot.${reason}`);
  });

  test("treeOfThoughts() ignores thoughts beyond the number of branches", async () => {
    const evaluate = scriptedModel(["0.1", "0.2"]);
    const { result } = await runAgent({
      architecture: treeOfThoughts({ branches: 2, depth: 1, synthesizeFinal: false }),
      model: scriptedModel(['["a", "b", "c", "d"]']),
      models: { evaluator: evaluate },
    });
    expect(result.output).toBe("b");
  });

  test("B5: treeOfThoughts() keeps the best thought and the tree when the budget is exhausted", async () => {
    const { result } = await runAgent({
      architecture: treeOfThoughts({ branches: 2 }),
      model: scriptedModel(['["a", "b"]']),
      models: { evaluator: scriptedModel(["0.3", "0.2"]) },
      budget: { maxTurns: 3 },
    });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "a" });
    expect((result.metadata["tree"] as JsonObject)["best"]).toBe("1");
  });

  test("C2: treeOfThoughts() calls no model after a cancel", async () => {
    let handle: RunHandle | undefined;
    const propose = scriptedModel(['["a"]', '["b"]']);
    const evaluate = new (class extends BarrierModel {
      override async generate(
        ...args: Parameters<BarrierModel["generate"]>
      ): ReturnType<BarrierModel["generate"]> {
        await handle?.cancel("enough");
        return super.generate(...args);
      }
    })(["0.1"], 1);
    const { result } = await runAgent(
      {
        architecture: treeOfThoughts({ branches: 1 }),
        model: scriptedModel([]),
        models: { proposer: propose, evaluator: evaluate },
      },
      "Where?",
      { onStart: (run) => (handle = run) },
    );
    expect(result.status).toBe("cancelled");
    expect(propose.calls).toHaveLength(1);
  });

  test.for([
    [{ branches: 0 }, "invalid branches 0 of treeOfThoughts(): expected an integer from 1"],
    [{ depth: 0.5 }, "invalid depth 0.5 of treeOfThoughts()"],
    [{ beam: -1 }, "invalid beam -1 of treeOfThoughts()"],
    [{ solvedScore: 2 }, "invalid solvedScore 2 of treeOfThoughts(): expected a number from 0 to 1"],
    [{ minScore: -1 }, "invalid minScore -1 of treeOfThoughts()"],
  ] as const)("treeOfThoughts() refuses the options %j", ([options, message]) => {
    expect(() => treeOfThoughts(options)).toThrow(message);
  });
});
