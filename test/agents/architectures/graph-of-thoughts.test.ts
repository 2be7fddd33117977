import { describe, expect, test } from "vitest";
import { graphOfThoughts, type ThoughtOperation } from "../../../src/agents/architectures/index.ts";
import { Agent, memoryStore, openRuntime, sha256 } from "../../../src/entries/index.ts";
import type { RunHandle } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { promptOf, BarrierModel, architectureEventData, transcriptLines, runAgent } from "./run-agent.ts";

/** Creates an evaluator that returns a fixed score for each answer. */
function judge(worth: Readonly<Record<string, number>>, calls = 50) {
  const step: ScriptStep = (request) => {
    const answer = /# Answer\n(.*)$/u.exec(promptOf(request))?.[1] ?? "";
    return JSON.stringify({ score: worth[answer] ?? 0, reason: `about ${answer}` });
  };
  return scriptedModel(Array.from({ length: calls }, () => step));
}

describe("graphOfThoughts()", () => {
  test("graphOfThoughts() drafts and scores answers, merges the best and refines the result; the best thought is the answer", async () => {
    const [thinker, aggregator, refiner] = [
      scriptedModel(["a", "b", "c"]),
      scriptedModel(["b and c"]),
      scriptedModel(["b, then c"]),
    ];
    const evaluator = judge({ a: 0.1, b: 0.5, c: 0.4, "b and c": 0.7, "b, then c": 0.8 });
    const { result, eventNames, events, conversation } = await runAgent({
      architecture: "graph-of-thoughts",
      model: scriptedModel([]),
      models: { thinker, aggregator, refiner, evaluator },
    });
    expect(result).toMatchObject({ status: "completed", output: "b, then c" });
    expect(promptOf(aggregator.calls[0] as never)).toBe(
      "# Task\nWhat is it?\n\n# Answer 1 (score 0.5)\nb\n\n# Answer 2 (score 0.4)\nc",
    );
    expect(promptOf(refiner.calls[0] as never)).toContain("about b and c");
    expect(result.metadata["thoughts"]).toEqual({
      best: "t5",
      thoughts: [
        { id: "t1", text: "a", from: [], score: 0.1 },
        { id: "t2", text: "b", from: [], score: 0.5 },
        { id: "t3", text: "c", from: [], score: 0.4 },
        { id: "t4", text: "b and c", from: ["t2", "t3"], score: 0.7 },
        { id: "t5", text: "b, then c", from: ["t4"], score: 0.8 },
      ],
    });
    const done = architectureEventData(events, "got.operation_completed") as unknown as readonly {
      operation: string;
    }[];
    expect(done.map(({ operation }) => operation)).toEqual([
      "drafts",
      "scored",
      "best",
      "merged",
      "refined",
      "answer",
    ]);
    expect([eventNames[0], eventNames.at(-1)]).toEqual(["got.started", "got.completed"]);
    expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: b, then c"]);
  });

  test("a merged answer of graphOfThoughts() that scores lower than a draft does not win", async () => {
    const { result } = await runAgent({
      architecture: graphOfThoughts(),
      model: scriptedModel([]),
      models: {
        thinker: scriptedModel(["a", "b", "c"]),
        aggregator: scriptedModel(["a mess"]),
        refiner: scriptedModel(["a bigger mess"]),
        evaluator: judge({ a: 0.6, b: 0.5, "a mess": 0.2, "a bigger mess": 0.1 }),
      },
    });
    expect(result.output).toBe("a");
  });

  test("graphOfThoughts() refines from the better version and stops at the threshold", async () => {
    const operations: readonly ThoughtOperation[] = [
      { do: "generate", count: 1 },
      { do: "refine", maxRounds: 5, threshold: 0.9 },
    ];
    const refiner = scriptedModel(["v1", "v2", "v3"]);
    const { result } = await runAgent({
      architecture: graphOfThoughts({ operations }),
      model: scriptedModel(["v0"]),
      models: { refiner, evaluator: judge({ v0: 0.3, v1: 0.6, v2: 0.2, v3: 0.95 }) },
    });
    expect(result.output).toBe("v3");
    expect(refiner.calls.map((call) => /# Answer\n(.*)/u.exec(promptOf(call))?.[1])).toEqual([
      "v0",
      "v1",
      "v1",
    ]);
  });

  test("an operation of graphOfThoughts() may take its thoughts from several earlier operations", async () => {
    const operations: readonly ThoughtOperation[] = [
      { name: "short", do: "generate", count: 1 },
      { name: "long", do: "generate", count: 1 },
      { name: "both", do: "aggregate", from: ["short", "long"] },
      { do: "score", from: ["both", "short"] },
      { do: "keep_best" },
    ];
    const { result } = await runAgent({
      architecture: graphOfThoughts({ operations }),
      model: scriptedModel(["s", "l", "s and l"]),
      models: { evaluator: judge({ s: 0.9, "s and l": 0.1 }) },
    });
    expect(result.output).toBe("s");
  });

  test("graphOfThoughts() writes drafts in parallel, and gives the same answer with parallel: false", async () => {
    const meeting = new BarrierModel(["a", "b", "c"], 3);
    const worth = { a: 0.1, b: 0.5, c: 0.4, "b and c": 0.7 };
    const run = async (thinker: BarrierModel, parallel: boolean) => {
      const { result } = await runAgent({
        architecture: graphOfThoughts({ parallel }),
        model: scriptedModel(["b and c", "worse"]),
        models: { thinker, evaluator: judge(worth) },
      });
      return { output: result.output, turns: result.turns };
    };
    const atOnce = await run(meeting, true);
    expect(meeting.maxInFlight).toBe(3);
    const one = new BarrierModel(["a", "b", "c"], 1);
    expect(await run(one, false)).toEqual(atOnce);
    expect(one.maxInFlight).toBe(1);
  });

  test("graphOfThoughts() aggregates without a model call for a single thought", async () => {
    const operations: readonly ThoughtOperation[] = [{ do: "generate", count: 1 }, { do: "aggregate" }];
    const { result } = await runAgent({
      architecture: graphOfThoughts({ operations }),
      model: scriptedModel(["a"]),
    });
    expect(result).toMatchObject({ output: "a", turns: 1 });
  });

  test("an output schema of graphOfThoughts() applies to every draft", async () => {
    const runtime = await openRuntime({ store: memoryStore({ hash: sha256 }), unknownPrice: "ignore" });
    const output = { type: "object", properties: { town: { type: "string" } }, required: ["town"] } as const;
    const thinker = scriptedModel(['{"town": "Sens"}', '{"town": "Blois"}']);
    const operations: readonly ThoughtOperation[] = [{ do: "generate", count: 2 }];
    const agent = new Agent({
      name: "thinker",
      model: thinker,
      architecture: graphOfThoughts({ operations }),
    });
    const result = await agent.invoke("Where?", { output, runtime });
    expect(result.status).toBe("completed");
    expect(thinker.calls.map(({ responseFormat }) => responseFormat?.type)).toEqual(["json", "json"]);
    await runtime.close();
  });

  test("B5: graphOfThoughts() returns the best thought so far when the budget is exhausted", async () => {
    const { result } = await runAgent({
      architecture: graphOfThoughts(),
      model: scriptedModel(["a", "b", "c"]),
      models: { evaluator: judge({ a: 0.9 }) },
      budget: { maxTurns: 6 },
    });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "a" });
    expect(result.metadata["thoughts"]).toMatchObject({ best: "t1" });
  });

  test("C2: graphOfThoughts() calls no model after a cancel", async () => {
    let handle: RunHandle | undefined;
    const thinker = new (class extends BarrierModel {
      override async generate(
        ...args: Parameters<BarrierModel["generate"]>
      ): ReturnType<BarrierModel["generate"]> {
        await handle?.cancel("enough");
        return super.generate(...args);
      }
    })(["a", "b", "c"], 1);
    const evaluator = scriptedModel([]);
    const { result } = await runAgent(
      { architecture: graphOfThoughts(), model: thinker, models: { evaluator } },
      "Where?",
      { onStart: (run) => (handle = run) },
    );
    expect(result.status).toBe("cancelled");
    expect(evaluator.calls).toHaveLength(0);
  });

  test.for([
    [[], 'the list is empty: give at least { do: "generate" }'],
    [
      [{ do: "score" }],
      "operation op_1 has no thoughts to work on: put a generate or split operation before it",
    ],
    [
      [{ do: "generate", count: 0 }],
      "invalid count 0 of operation op_1 of graphOfThoughts: expected an integer from 1",
    ],
    [
      [
        { name: "a", do: "generate" },
        { name: "a", do: "score" },
      ],
      "two operations are named a",
    ],
    [
      [
        { name: "a", do: "generate" },
        { do: "aggregate", from: ["b"] },
      ],
      "operation op_2 works on b, which is not an earlier operation; earlier operations: a",
    ],
    [
      [{ do: "generate" }, { do: "refine", threshold: 2 }],
      "invalid threshold 2 of operation op_2 of graphOfThoughts: expected a number from 0 to 1",
    ],
    [
      [{ do: "dance" as "score" }],
      'operation op_1 has do: "dance"; it must be generate, split, score, keep_best, aggregate or refine',
    ],
    [
      [{ do: "generate" }, { do: "guess" as "score" }],
      'operation op_2 has do: "guess"; it must be generate, split, score, keep_best, aggregate or refine',
    ],
  ] as const)("graphOfThoughts() refuses the operations %j", ([operations, message]) => {
    expect(() => graphOfThoughts({ operations })).toThrow(message);
  });
});
