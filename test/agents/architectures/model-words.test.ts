import { describe, expect, test } from "vitest";
import { unfenced } from "../../../src/agents/answer-format.ts";
import { jsonValuesIn, scoreIn } from "../../../src/agents/architectures/json-answer.ts";
import { listedIn } from "../../../src/agents/architectures/listed-text.ts";
import { toolPlanIn } from "../../../src/agents/architectures/tool-plan.ts";

describe("what a model wrote", () => {
  test.for([
    ["a code block that never closes", `\`\`\`${"\n".repeat(100_000)}`],
    ["one of blanks", `\`\`\`json${" ".repeat(100_000)}`],
    ["one of blank lines with more after it", `\`\`\`\n${"\n ".repeat(100_000)}x`],
    ["many of them", "```\n".repeat(50_000)],
    ["brackets alone", "[{".repeat(150_000)],
    ["brackets of one kind", "[".repeat(300_000)],
    ["members that never end", '{"a":['.repeat(50_000)],
    ["quotation marks in brackets", '["'.repeat(150_000)],
    ["escaped ones", '["\\"'.repeat(75_000)],
    ["strings that never end", '["a",['.repeat(50_000)],
    ["brackets and blanks", `[${" ".repeat(150_000)}[${" ".repeat(150_000)}x`],
  ] as const)("is read in one pass, also %s", ([, text]) => {
    expect([...jsonValuesIn(text)]).toEqual([]);
    expect(scoreIn(text)).toBe(undefined);
    expect(toolPlanIn(text)).toBe(undefined);
    // Nothing but fences is a block with fences in it.
    expect(unfenced(text).trim()).toMatch(/^(?:```|[[{])/u);
  });

  test.for([
    ['```json\n{"a": 1}\n```', { a: 1 }],
    ['\n ```\n\n  {"a": 1}  \n\n``` \n', { a: 1 }],
    ['Here it is:\n```json\n{"a": 1}\n```\nThere.', { a: 1 }],
    ['{"__proto__": {"score": 1}}', JSON.parse('{"__proto__": {"score": 1}}')],
  ])("is found in its code block: %j", ([text, value]) => {
    expect([...jsonValuesIn(text as string)][0]).toEqual(value);
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

  test("many lists among its words are each read once", () => {
    expect([...jsonValuesIn("[1,2] ".repeat(50_000))]).toHaveLength(50_000);
  });

  test.for([
    ['As [the docs](http://x) say: ["a","b"]', ["a", "b"]],
    ['Steps [draft]: [{"step":"a"},{"step":"b"}]', ["a", "b"]],
    ['<think>[maybe]</think>\n["a","b"]', ["a", "b"]],
    ['<think>- ["this", "that", "or something else"]</think>\n["a","b"]', ["a", "b"]],
    ["<think>\n- hm\n</think>\n- a\n- b", ["a", "b"]],
    ['<think>["a","b"]</think>', ["a", "b"]],
    ['["a","b"] Note: [optional].', ["a", "b"]],
    ['["a","b"] (or {"x": 1, "y": "something"})', ["a", "b"]],
    ['The list starts with "[": ["a","b"]', ["a", "b"]],
    ['Between "[" and "]": ["a","b"]', ["a", "b"]],
    ['[see: ["a","b"]]', ["a", "b"]],
    ['[1] and [2] say: {"steps": ["a", "b"]}', ["a", "b"]],
    ['{curly} ["a [b]", "{c}"]', ["a [b]", "{c}"]],
    ['I would do {"step": "this"}.', ["this"]],
    ["There is nothing to do: [].", []],
    ['{"assumptions": ["EU"], "steps": ["a", "b"]}', ["a", "b"]],
    ['{"assumptions": [], "Steps": [{"step": "a"}, {"step": "b"}]}', ["a", "b"]],
    ['{"assumptions": [], "what": ["a", "b"]}', ["a", "b"]],
    ['{"numbers": [1], "what": ["a", "b"]}', ["a", "b"]],
    ['{"plan": {"assumptions": ["EU"], "steps": ["a", "b"]}}', ["a", "b"]],
    ['{"assumptions": ["EU"], "steps": []}', []],
    ['{"plan": [], "steps": ["a"]}', ["a"]],
    ['{"1": "a", "2": {"step": "b"}}', ["a", "b"]],
    ['{"step_1": "a", "step_2": "b"}', ["a", "b"]],
    ["{}", undefined],
    ['{"assumptions": [], "what": []}', []],
    ['{"assumptions": [], "numbers": [1]}', undefined],
    ["**1. a**\n**2. b**", ["a", "b"]],
    ["**1.** a\n**2.** b", ["a", "b"]],
    ["**1. A:** dig **deep**\n__2. B__: rest", ["A: dig **deep**", "B: rest"]],
    ["### 1. a\n## Step 2: b", ["a", "b"]],
    ["Step 1: a\n**Step 2:** b", ["a", "b"]],
    ["- [ ] a\n- [x] b [1]", ["a", "b [1]"]],
    ["1. **a** [1]\n2) b", ["**a** [1]", "b"]],
    // What breaks off is no plan of its parts.
    ['[{"step":"a"},{"step":"b"},{"st', undefined],
    ['["a", "b", "c', undefined],
    ['[{"step":"a"}, {"step":"b"},]', undefined],
    ['"a list"', undefined],
    ["[draft]", undefined],
  ] as const)("lists things, or none: %j", ([text, listed]) => {
    expect(listedIn(text)).toEqual(listed);
  });

  test("a planned call is found beside other JSON", () => {
    const call = { id: "E1", tool: "look", args: { at: 1 } };
    const config = JSON.stringify({ setting: "something longer than the call", list: [1, 2, 3] });
    expect(toolPlanIn(`With ${config}, see [1]: ${JSON.stringify([call])} [done]`)).toEqual([call]);
    expect(toolPlanIn(`With ${config} nothing is to be done: []`)).toEqual([]);
    expect(toolPlanIn(`With ${config}`)).toBe(undefined);
  });

  test("a score is found beside other JSON", () => {
    expect(scoreIn('Seen [1] and {"other": "something much longer"}: {"score": 0.4}')).toBe(0.4);
    expect(scoreIn("<think>score 9/10? no</think>\nScore: 4/10")).toBe(0.4);
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
