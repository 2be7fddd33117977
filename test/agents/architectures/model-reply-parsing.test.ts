import { describe, expect, test } from "vitest";
import { unfenced } from "../../../src/agents/base/json-in-text.ts";
import { jsonValuesIn, parseScore } from "../../../src/agents/architectures/json-parsing.ts";
import { parseTextList } from "../../../src/agents/architectures/list-parsing.ts";
import { parseRouteChoice } from "../../../src/agents/architectures/route-choice.ts";
import { parseToolPlan } from "../../../src/agents/architectures/tool-plan.ts";
import { casesOf } from "../../effort.ts";

/**
 * Returns a number of repetitions, of which `npm test` makes a fifth. Time that is not linear would still be long with a
 * fifth.
 */
const many = (full: number): number => casesOf(full, full / 5);

describe("parsing of model replies", () => {
  test.for([
    ["of a code block that never closes", `\`\`\`${"\n".repeat(many(100_000))}`],
    ["of a code block with only blanks", `\`\`\`json${" ".repeat(many(100_000))}`],
    ["of blank lines in an open code block", `\`\`\`\n${"\n ".repeat(many(100_000))}x`],
    ["of many code fences", "```\n".repeat(many(50_000))],
    ["of opening brackets", "[{".repeat(many(150_000))],
    ["of opening brackets of one kind", "[".repeat(many(300_000))],
    ["of members that never end", '{"a":['.repeat(many(50_000))],
    ["of quotation marks in brackets", '["'.repeat(many(150_000))],
    ["of escaped quotation marks", '["\\"'.repeat(many(75_000))],
    ["of lists that never end", '["a",['.repeat(many(50_000))],
    ["of brackets and blanks", `[${" ".repeat(many(150_000))}[${" ".repeat(many(150_000))}x`],
  ] as const)("parsing of model replies takes linear time for a long reply %s", ([, text]) => {
    expect([...jsonValuesIn(text)]).toEqual([]);
    expect(parseScore(text)).toBe(undefined);
    expect(parseToolPlan(text)).toBe(undefined);
    // A reply that consists of fences is a code block that contains fences.
    expect(unfenced(text).trim()).toMatch(/^(?:```|[[{])/u);
  });

  test.for([
    ['```json\n{"a": 1}\n```', { a: 1 }],
    ['\n ```\n\n  {"a": 1}  \n\n``` \n', { a: 1 }],
    ['Here it is:\n```json\n{"a": 1}\n```\nThere.', { a: 1 }],
    ['{"__proto__": {"score": 1}}', JSON.parse('{"__proto__": {"score": 1}}')],
  ])("parsing of model replies finds the JSON in the code block %j", ([text, value]) => {
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
    ["score: 7", "unknown_scale"],
    ["12/10", "unknown_scale"],
    ["Score: 3 of 10", 0.3],
    ['{"score": 3, "outOf": 10}', 0.3],
    ['{"score": 3}', "unknown_scale"],
    ['{"score": null, "n": 1}', undefined],
    ['{"score": NaN, "n": 1}', undefined],
    ["3 things are wrong with it", undefined],
    ["", undefined],
  ] as const)("parseScore() of the model reply %j returns %j", ([text, score]) => {
    expect(parseScore(text)).toBe(score);
  });

  test("parseTextList() does not search plans that are nested too deeply", () => {
    expect(parseTextList(`${'{"plan":'.repeat(20_000)}["a"]${"}".repeat(20_000)}`)).toBe(undefined);
  });

  test("jsonValuesIn() finds 50,000 lists in one text in linear time", () => {
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
    ['{"1": "a", "2": "b", "notes": "x, and much more of it"}', ["a", "b"]],
    ['{"title": "T", "step 1": "a", "step 2": "b", "notes": ["x"]}', ["a", "b"]],
    ['{"steps": {"1": "a", "2": "b"}}', ["a", "b"]],
    ['{"plan": {"steps": {"step_1": {"task": "a"}, "step_2": {"task": "b"}}}}', ["a", "b"]],
    ['{"plan": {"phase 1": ["a", "b"], "phase 2": ["c"]}}', ["a", "b", "c"]],
    ['{"phase 1": ["a", "b"], "phase 2": ["c"], "risks": ["r"]}', ["a", "b", "c"]],
    ['{"plan": {"risks": ["r"], "Week_1": ["a"], "Week_2": ["b"]}}', ["a", "b"]],
    ['{"1": ["a", "b"], "2": ["c"]}', ["a", "b", "c"]],
    ['{"tasks": {"backend": ["a", "b"], "frontend": ["c"]}}', ["a", "b", "c"]],
    ['{"tasks": {"backend": [], "frontend": []}}', []],
    ['{"plan": {"notes": ["n"], "steps": ["a", "b"]}}', ["a", "b"]],
    ['{"steps": {"first": "a", "then": "b"}}', undefined],
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
    // A list that breaks off must not be read as a shorter list.
    ['[{"step":"a"},{"step":"b"},{"st', undefined],
    ['["a", "b", "c', undefined],
    ['[{"step":"a"}, {"step":"b"},]', undefined],
    ['"a list"', undefined],
    ["[draft]", undefined],
  ] as const)("parseTextList() of the model reply %j returns %j", ([text, listed]) => {
    expect(parseTextList(text)).toEqual(listed);
  });

  test.for([
    ["route: billing\nconfidence: 0.9", "billing", 0.9],
    ["**Route:** billing\n**Confidence:** 0.9", "billing", 0.9],
    ["**route**: `billing`\n**confidence**: 90%", "billing", 0.9],
    ["__Route:__ billing\n__Confidence:__ 0.9", "billing", 0.9],
    ["route: <billing>\nconfidence: <0.9>", "billing", 0.9],
    ["route: [billing]\nconfidence: [0.9]", "billing", 0.9],
    ['Route: "billing" (confidence: 90%)', "billing", 0.9],
    ['{"route": "billing", "confidence": 0.9}', "billing", 0.9],
    ['{"confidence": 0.9, "route": "billing"}', "billing", 0.9],
    ["```\nroute: billing\nconfidence: 0.9\n```", "billing", 0.9],
    ["- Route: Billing\n- Confidence: 9/10", "billing", 0.9],
    ["Because it is about money.\nroute = billing", "billing", 0],
    [
      "<think>could be route: travel, confidence: 0.2</think>\nroute: billing\nconfidence: 0.9",
      "billing",
      0.9,
    ],
    [
      "At first sight:\nroute: travel\nconfidence: 0.2\nBut no:\nroute: billing\nconfidence: 0.9",
      "billing",
      0.9,
    ],
    [
      "route: billing\nconfidence: 0.9\n\nI did not say route: travel, for it is about money.",
      "billing",
      0.9,
    ],
    ["It may be route: travel, or rather route: billing (confidence: 0.9).", "billing", 0.9],
    ["route: _own\nconfidence: 1", "_own", 1],
    ["billing", "billing", 0],
    ["**billing**.", "billing", 0],
    ["route: travel\nroute: none\nconfidence: 1", undefined, 1],
    ["route: travel\n\nNo, I would not.\nroute: none", undefined, 0],
    [
      "route: billing\nconfidence: 0.9\n\nWhy not the others:\n- route: travel: no trip is planned",
      "billing",
      0.9,
    ],
    ["route: billing\n\nWhy not the others:\n- route: travel: no trip is planned", "billing", 0],
    ["route: billing\nconfidence: 0.9\n\nRoute: none of the others fits.", "billing", 0.9],
    ["Route: billing, I would say.\nRoute: chosen because of an invoice", "billing", 0],
    ["My route: billing, I would say. (The route: chosen because of an invoice)", "billing", 0],
    ["route: billing\nconfidence: 0.9\nRoute: travel is next, confidence: 0.1", "billing", 0.9],
    ["1. route: billing\n2. confidence: 0.9\n\nI took route: travel for another.", "billing", 0.9],
    ["<think>\nroute: travel\nconfidence: 0.9\n</think>\nbilling", "billing", 0],
    ["route: _billing_\nconfidence: _0.9_", "billing", 0.9],
    ["route: __billing__\nconfidence: __0.9__", "billing", 0.9],
    ["route: \u201cbilling\u201d\nconfidence: \u201c0.9\u201d", "billing", 0.9],
    ["route: \u2018billing\u2019 (confidence: 0.9)", "billing", 0.9],
    ["_billing_", "billing", 0],
    ["_own", "_own", 0],
    ["billing\nconfidence: 0.9", "billing", 0.9],
    ["**billing** (confidence: 0.9)", "billing", 0.9],
    ["I am sure\nconfidence: 0.9", undefined, 0.9],
    ["I would take the enroute: billing or travel", undefined, 0],
    ["I would send this question to billing.", "billing", 0],
    ["The **Billing** team should answer, not travel.\nconfidence: 0.8", "billing", 0.8],
    ["This isn't about a journey, so billing it is.", "billing", 0],
    ["This is not for travel but for billing.", "billing", 0],
    ["I would not send it to billing.", undefined, 0],
    ["Either billing or travel can answer.", undefined, 0],
    ["It is a billing-related question.", undefined, 0],
    ["I do not know.", undefined, 0],
    ["", undefined, 0],
  ] as const)("parseRouteChoice(%j) returns route %j with confidence %j", ([text, route, confidence]) => {
    expect(parseRouteChoice(text, ["billing", "travel", "_own"])).toEqual({ route, confidence });
  });

  test.for([
    "route: ",
    "route:",
    " ",
    "*",
    "_",
    "_ ",
    "route:_ ",
    '"',
    "confidence: ",
    "\n",
    "-\n",
    "a",
    "1.",
    "route: a\n",
  ])("parseRouteChoice() takes linear time for many repetitions of %j", (part) => {
    for (const text of [
      part.repeat(many(100_000)),
      `route:${part.repeat(many(100_000))}`,
      `${part.repeat(many(100_000))}x y`,
    ])
      expect(parseRouteChoice(text, ["billing"]).route).toBe(undefined);
  });

  test("parseToolPlan() finds the calls beside other JSON", () => {
    const call = { id: "E1", tool: "look", args: { at: 1 } };
    const config = JSON.stringify({ setting: "something longer than the call", list: [1, 2, 3] });
    expect(parseToolPlan(`With ${config}, see [1]: ${JSON.stringify([call])} [done]`)).toEqual([call]);
    expect(parseToolPlan(`With ${config} nothing is to be done: []`)).toEqual([]);
    expect(parseToolPlan(`With ${config}`)).toBe(undefined);
  });

  test("parseScore() finds the score beside other JSON", () => {
    expect(parseScore('Seen [1] and {"other": "something much longer"}: {"score": 0.4}')).toBe(0.4);
    expect(parseScore("<think>score 9/10? no</think>\nScore: 4/10")).toBe(0.4);
  });

  test("parseToolPlan() reads a single call as a plan with one call, even if the call contains lists", () => {
    const call = { id: "E1", tool: "look", args: { at: 1 } };
    for (const text of [JSON.stringify({ ...call, needs: [] }), `The plan: ${JSON.stringify([call])}.`])
      expect(parseToolPlan(text)).toEqual([call]);
  });

  test("parseTextList() takes the text of an item, not its reason", () => {
    const list = [
      '{"step": "Dig", "reason": "because the ground is soft there"}',
      '{"step": "Step 2", "description": "Fill it in"}',
      '{"step": 3, "what": "Go home"}',
      '{"__proto__": null, "constructor": "Rest"}',
      "{}",
    ];
    expect(parseTextList(`[${list.join(", ")}]`)).toEqual(["Dig", "Fill it in", "Go home", "Rest"]);
  });
});
