import { describe, expect, test } from "vitest";
import { unfenced } from "../../../src/agents/answer-format.ts";
import { jsonIn, scoreIn } from "../../../src/agents/architectures/json-answer.ts";
import { listedIn } from "../../../src/agents/architectures/listed-text.ts";
import { toolPlanIn } from "../../../src/agents/architectures/tool-plan.ts";

describe("what a model wrote", () => {
  test.for([
    ["a code block that never closes", `\`\`\`${"\n".repeat(100_000)}`],
    ["one of blanks", `\`\`\`json${" ".repeat(100_000)}`],
    ["one of blank lines with more after it", `\`\`\`\n${"\n ".repeat(100_000)}x`],
    ["many of them", "```\n".repeat(50_000)],
    ["brackets alone", "[{".repeat(50_000)],
  ] as const)("is read in one pass, also %s", ([, text]) => {
    expect(jsonIn(text)).toBe(undefined);
    expect(scoreIn(text)).toBe(undefined);
    expect(toolPlanIn(text)).toBe(undefined);
    // Nothing but fences is a block with fences in it.
    expect(unfenced(text).trim()).toMatch(/^(?:```|\[)/u);
  });

  test.for([
    ['```json\n{"a": 1}\n```', { a: 1 }],
    ['\n ```\n\n  {"a": 1}  \n\n``` \n', { a: 1 }],
    ['Here it is:\n```json\n{"a": 1}\n```\nThere.', { a: 1 }],
    ['{"__proto__": {"score": 1}}', JSON.parse('{"__proto__": {"score": 1}}')],
  ])("is found in its code block: %j", ([text, value]) => {
    expect(jsonIn(text as string)).toEqual(value);
  });

  test.for([
    ['{"score": 0.4}', 0.4],
    ['{"score": "0.4"}', 0.4],
    ['{"score": "4/10"}', 0.4],
    ['{"score": .4}', 0.4],
    ["Score: .4", 0.4],
    ["Score: 4/10", 0.4],
    ["**Score:** 4 out of 10", 0.4],
    ["score: 40%", 0.4],
    ["40 %", 0.4],
    ["0.4", 0.4],
    ["score: -3", 0],
    ["score: 7", 1],
    ['{"score": null, "n": 1}', undefined],
    ['{"score": NaN, "n": 1}', undefined],
    ["3 things are wrong with it", undefined],
    ["", undefined],
  ] as const)("has a score, or none: %j", ([text, score]) => {
    expect(scoreIn(text)).toBe(score);
  });

  test("a planned call by itself is a plan of one, whatever lists it has", () => {
    const call = { id: "E1", tool: "look", args: { at: 1 } };
    for (const text of [JSON.stringify({ ...call, needs: [] }), `The plan: ${JSON.stringify([call])}.`])
      expect(toolPlanIn(text)).toEqual([call]);
  });

  test("a listed thing is what it is called, not why it is there", () => {
    const list = [
      '{"step": "Dig", "reason": "because the ground is soft there"}',
      '{"step": "Step 2", "description": "Fill it in"}',
      '{"step": 3, "what": "Go home"}',
      '{"__proto__": null, "constructor": "Rest"}',
      "{}",
    ];
    expect(listedIn(`[${list.join(", ")}]`)).toEqual(["Dig", "Fill it in", "Go home", "Rest"]);
  });
});
