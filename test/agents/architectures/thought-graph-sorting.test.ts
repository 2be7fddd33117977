import { describe, expect, test } from "vitest";
import {
  graphOfThoughts,
  type ScoredThought,
  type ThoughtOperation,
} from "../../../src/agents/architectures/index.ts";
import { Agent, memoryStore, openRuntime, sha256 } from "../../../src/entries/index.ts";
import type { ModelRequest } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel } from "../../../src/testing/index.ts";
import { findRun } from "../../runtime/find-run.ts";
import { architectureEventData, promptOf, runAgent } from "./run-agent.ts";

/** Returns all digits of a text. */
function digitsIn(text: string): readonly number[] {
  return (text.match(/\d/gu) ?? []).map(Number);
}

function sorted(digits: readonly number[]): readonly number[] {
  return digits.toSorted((one, other) => one - other);
}

/** 64 digits in an order without a pattern. */
const digits = Array.from({ length: 64 }, (_, index) => (index * index * 7 + 3 * index) % 10);

/** Returns the share of digits that are in place and not missing, which is how the paper scores a sorted list. */
function scoreSorting({ text, parents }: ScoredThought): number {
  const wanted = sorted(parents.flatMap(digitsIn));
  const written = digitsIn(text);
  const errors = wanted.filter((digit, index) => written[index] !== digit).length;
  return Math.max(0, 1 - (errors + Math.abs(wanted.length - written.length)) / wanted.length);
}

/** A model that sorts the digits after a title, and makes a mistake in two of three replies. */
function sortingModel(title: RegExp): ScriptedModel {
  const reply =
    (call: number) =>
    (request: ModelRequest): string => {
      const prompt = promptOf(request);
      const given = digitsIn(prompt.slice(prompt.search(title)).replaceAll(/^# .*$/gmu, ""));
      const result = [...sorted(given)];
      if (call % 3 === 0) result.reverse();
      if (call % 3 === 1) result.pop();
      return `[${result.join(", ")}]`;
    };
  return scriptedModel(Array.from({ length: 30 }, (_, call) => reply(call)));
}

/** The graph of the paper's sorting example: four sublists, each sorted, merged in two rounds, and corrected. */
const sorting: readonly ThoughtOperation[] = [
  { name: "sublists", do: "split", by: (text) => quarters(digitsIn(text)) },
  { name: "sorted", do: "generate", count: 3, from: ["sublists"], instructions: "Sort the list." },
  { do: "score" },
  { name: "quarters", do: "keep_best", per: "parents" },
  { name: "halves", do: "aggregate", groupSize: 2, count: 3 },
  { do: "score" },
  { do: "keep_best", per: "parents" },
  { name: "whole", do: "aggregate", count: 3 },
  { do: "score" },
  { do: "keep_best" },
  { name: "corrected", do: "refine", maxRounds: 2, threshold: 1 },
];

function quarters(list: readonly number[]): readonly string[] {
  const size = list.length / 4;
  return [0, 1, 2, 3].map((part) => `[${list.slice(part * size, (part + 1) * size).join(", ")}]`);
}

describe("graphOfThoughts() on the sorting example of the paper", () => {
  test("graphOfThoughts() sorts the list of the paper: it splits the list, sorts the parts, keeps the best of each and merges them", async () => {
    const thinker = sortingModel(/# Thought/u);
    const aggregator = sortingModel(/# Answer 1/u);
    const { result, events } = await runAgent(
      {
        architecture: graphOfThoughts({ operations: sorting, scorer: scoreSorting, parallel: false }),
        models: { main: scriptedModel([]), thinker, aggregator, refiner: scriptedModel([]) },
      },
      `Sort these digits: ${digits.join(", ")}`,
    );
    expect(result.status).toBe("completed");
    expect(digitsIn(result.output as string)).toEqual(sorted(digits));
    // Three candidates for each of four sublists, two halves and the whole; no correction is needed.
    expect([thinker.calls.length, aggregator.calls.length]).toEqual([12, 9]);
    const kept = architectureEventData(events, "got.operation_completed")[3] as {
      thoughts: readonly { score: number }[];
    };
    expect(kept.thoughts.map(({ score }) => score)).toEqual([1, 1, 1, 1]);
  });

  test("the model of the splitter of graphOfThoughts() splits a thought, and surplus parts are joined to the last", async () => {
    const splitter = scriptedModel(['["a", "b", "c"]']);
    const { result } = await runAgent({
      architecture: graphOfThoughts({
        operations: [
          { name: "draft", do: "generate", count: 1 },
          { do: "split", count: 2 },
        ],
      }),
      models: { main: scriptedModel(["a b c"]), splitter },
    });
    expect(promptOf(splitter.calls[0] as never)).toBe("# Task\nWhat is it?\n\n# To split\na b c");
    expect(result.metadata["thoughts"]).toMatchObject({
      thoughts: [{ text: "a b c" }, { text: "a", from: ["t1"] }, { text: "b\nc", from: ["t1"] }],
    });
  });

  test("a thought that the splitter of graphOfThoughts() does not split stays as it is", async () => {
    const { result } = await runAgent({
      architecture: graphOfThoughts({ operations: [{ do: "generate", count: 1 }, { do: "split" }] }),
      models: { main: scriptedModel(["whole"]), splitter: scriptedModel(["It cannot be split."]) },
    });
    expect(result).toMatchObject({ status: "completed", output: "whole" });
  });

  test("scoring and splitting functions of graphOfThoughts() are called once per thought, also if another runtime resumes", async () => {
    const called: string[] = [];
    const thinker = scriptedModel(["A", "B"]);
    const refiner = scriptedModel([{ error: Object.assign(new Error("bad key"), { status: 401 }) }, "A2"]);
    const createAgent = (): Agent =>
      new Agent({
        name: "sorter",
        model: thinker,
        models: { refiner },
        architecture: graphOfThoughts({
          operations: [
            { name: "parts", do: "split", by: (text) => [`${text} 1`, `${text} 2`] },
            { do: "generate", count: 1, from: ["parts"] },
            { do: "score" },
            { do: "refine" },
          ],
          scorer: ({ text, parents }) => {
            called.push(`${parents.join()} -> ${text}`);
            return { score: text === "B" ? 0.9 : 0.5, reason: "measured" };
          },
          parallel: false,
        }),
      });
    const store = memoryStore({ hash: sha256 });
    const first = await openRuntime({ store, unknownPrice: "ignore" });
    const started = await first.submit(createAgent(), "Go");
    expect((await started.result()).status).toBe("failed");
    await first.close();
    const second = await openRuntime({ store, unknownPrice: "ignore" });
    second.register(createAgent());
    const run = await findRun(second, started);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: "completed", output: "B" });
    await second.close();
    expect(called).toEqual(["Go 1 -> A", "Go 2 -> B", "A -> A2"]);
    expect(promptOf(refiner.calls[1] as never)).toContain("# Judgement\nmeasured");
  });

  test.for([
    [
      "a scorer that returns 3",
      { operations: [{ do: "generate", count: 1 }, { do: "score" }], scorer: () => 3 },
    ],
    ["a splitter that returns a text", { operations: [{ do: "split", by: () => "no" as never }] }],
  ] as const)("%s fails the run of graphOfThoughts() with invalid_argument", async ([, options]) => {
    const { result } = await runAgent({
      architecture: graphOfThoughts(options),
      model: scriptedModel(["a"]),
    });
    expect(result).toMatchObject({ status: "failed", error: { code: "invalid_argument" } });
  });

  test.for([
    [{ scorer: "best" as never }, 'invalid scorer "best" of graphOfThoughts(): expected a function'],
    [{ operations: [{ do: "split", by: 1 as never }] }, "invalid by 1 of operation op_1"],
    [
      { operations: [{ do: "generate" }, { do: "keep_best", per: "parent" as never }] },
      'invalid per "parent" of operation op_2',
    ],
    [
      { operations: [{ do: "generate" }, { do: "aggregate", groupSize: 1 }] },
      "invalid groupSize 1 of operation op_2",
    ],
  ] as const)("graphOfThoughts() refuses the sorting options %j", ([options, message]) => {
    expect(() => graphOfThoughts(options)).toThrow(message);
  });
});
