import { describe, expect, test } from "vitest";
import {
  fillPlaceholders,
  dependencyLevels,
  parseToolPlan,
  unknownPlaceholders,
} from "../../../src/agents/architectures/tool-plan.ts";
import type { JsonObject } from "../../../src/kernel/index.ts";

describe("a plan of tool calls", () => {
  test("a plan of tool calls is parsed from a bare list, a code block, a list inside text, and a member of an object", () => {
    const call = { id: "E1", tool: "shout", args: { text: "a" } };
    const text = JSON.stringify([call]);
    for (const written of [
      text,
      `\`\`\`json\n${text}\n\`\`\``,
      `Here it is: ${text}. Good luck.`,
      JSON.stringify({ plan: [call] }),
    ])
      expect(parseToolPlan(written)).toEqual([call]);
    expect(parseToolPlan("[]")).toEqual([]);
    expect(parseToolPlan('{"steps": []}')).toEqual([]);
    expect(parseToolPlan("nothing of the kind")).toBeUndefined();
    expect(parseToolPlan('["a", "b"]')).toBeUndefined();
    for (const beside of [{ notes: ["x"] }, { notes: [] }, { steps: "see calls" }])
      expect(parseToolPlan(JSON.stringify({ ...beside, calls: [call] }))).toEqual([call]);
    expect(parseToolPlan(JSON.stringify({ notes: ["x"], first: [], second: [call] }))).toEqual([call]);
    expect(parseToolPlan(JSON.stringify({ plan: { notes: ["x"], steps: [call] } }))).toEqual([call]);
    expect(parseToolPlan('{"notes": ["x"], "calls": []}')).toEqual([]);
    expect(parseToolPlan('{"notes": ["x"], "others": []}')).toBeUndefined();
  });

  const named = (...calls: readonly JsonObject[]) =>
    (parseToolPlan(JSON.stringify(calls)) ?? []).map(({ id, tool: name }) => [id, name]);

  test("a plan of tool calls numbers calls without an id", () => {
    expect(named({ tool: "a" }, { tool: "b" }, { args: {} })).toEqual([
      ["E1", "a"],
      ["E2", "b"],
      ["E3", ""],
    ]);
  });

  test("a plan never numbers a call with an id that the plan gives to another call", () => {
    expect(named({ tool: "a" }, { id: "E1", tool: "b" }, { id: " E4 ", tool: "c" }, { tool: "d" })).toEqual([
      ["E1_", "a"],
      ["E1", "b"],
      ["E4", "c"],
      ["E4_", "d"],
    ]);
    // A model that uses the id 2 may refer to it as {{E2}}, so E2 is not free.
    expect(named({ id: 2, tool: "a" }, { tool: "b" })).toEqual([
      ["2", "a"],
      ["E2_", "b"],
    ]);
    expect(named({ id: "E2_", tool: "a" }, { tool: "b" }, { id: "E2", tool: "c" })).toEqual([
      ["E2_", "a"],
      ["E2__", "b"],
      ["E2", "c"],
    ]);
  });

  test("a plan of tool calls leaves a placeholder unresolved if several calls have its id", () => {
    const twice = [
      { id: "x", tool: "a" },
      { id: "x", tool: "b" },
      { id: "E2", tool: "c" },
    ];
    expect(named(...twice)).toEqual([
      ["E1", "a"],
      ["E2_", "b"],
      ["E2", "c"],
    ]);
    const last = { id: "z", tool: "d", args: { text: "{{x}} {{E2}}" } };
    const calls = parseToolPlan(JSON.stringify([...twice, last])) ?? [];
    const known = new Map(calls.map(({ id, tool: name }) => [id, name]));
    expect(unknownPlaceholders(last.args, known)).toEqual(["x"]);
    expect(fillPlaceholders(last.args, known)).toEqual({ text: "{{x}} c" });
  });

  test("a plan of tool calls resolves numeric ids with and without the letter E", () => {
    const calls =
      parseToolPlan('[{"id": 1, "tool": "a"}, {"id": 2, "tool": "b", "args": {"x": "{{E1}}"}}]') ?? [];
    expect(dependencyLevels(calls)?.map((level) => level.map(({ id }) => id))).toEqual([["1"], ["2"]]);
    expect(fillPlaceholders({ x: "{{E1}} {{1}} {{E01}}" }, new Map([["1", "one"]]))).toEqual({
      x: "one one {{E01}}",
    });
    expect(fillPlaceholders({ x: "{{1}} {{E1}}" }, new Map([["E1", "one"]]))).toEqual({ x: "one one" });
    const both = new Map([
      ["1", "one"],
      ["E1", "another"],
    ]);
    expect(fillPlaceholders({ x: "{{1}} {{E1}}" }, both)).toEqual({ x: "one another" });
    // If both ids exist, each placeholder means its exact id, even if that call was not made.
    const one = new Map([
      ["1", undefined],
      ["E1", "another"],
    ]);
    expect(fillPlaceholders({ x: "{{1}} {{E1}}" }, one)).toEqual({ x: "{{1}} another" });
    expect(unknownPlaceholders({ x: "{{1}} {{E1}} {{2}}" }, one)).toEqual(["1", "2"]);
  });

  test("a plan of tool calls has levels by the placeholders of its calls, and ignores placeholders of unknown calls", () => {
    const call = (id: string, ...needs: readonly string[]) => ({
      id,
      tool: "t",
      args: { deep: [{ text: needs.map((need) => `{{${need}}}`).join(" ") }] },
    });
    const ids = (...calls: readonly ReturnType<typeof call>[]) =>
      dependencyLevels(calls)?.map((level) => level.map(({ id }) => id));
    expect(ids(call("E3", "E1", "E2"), call("E1"), call("E2", "E1"), call("E4", "E9"))).toEqual([
      ["E1", "E4"],
      ["E2"],
      ["E3"],
    ]);
    expect(ids()).toEqual([]);
    expect(ids(call("E1", "E1"))).toBeUndefined();
    expect(ids(call("E1"), call("E2", "E3"), call("E3", "E2"))).toBeUndefined();
  });

  test("a plan of tool calls fills placeholders anywhere inside the arguments, literally", () => {
    const known = new Map([["E1", "$& one"]]);
    expect(
      fillPlaceholders({ a: "{{E1}}", b: [{ c: "<{{ E1 }}>" }], d: 7, e: null, f: "{{E2}}" }, known),
    ).toEqual({
      a: "$& one",
      b: [{ c: "<$& one>" }],
      d: 7,
      e: null,
      f: "{{E2}}",
    });
  });

  test("a plan of tool calls fills placeholders in member names, which also count as dependencies", () => {
    const args = { headers: { "X-{{E1}}": "{{E2}}", "{{E3}}": [{ "{{E4}}": 1 }] } };
    const known = new Map([
      ["E1", "one"],
      ["E2", "two"],
      ["E3", "__proto__"],
    ]);
    expect(unknownPlaceholders(args, known)).toEqual(["E4"]);
    expect(JSON.stringify(fillPlaceholders(args, known))).toBe(
      '{"headers":{"X-one":"two","__proto__":[{"{{E4}}":1}]}}',
    );
    const calls = [
      { id: "E2", tool: "b", args: { "{{E1}}": "x" } },
      { id: "E1", tool: "a", args: {} },
    ];
    expect(dependencyLevels(calls)?.map((level) => level.map(({ id }) => id))).toEqual([["E1"], ["E2"]]);
  });

  test("a plan of tool calls accepts any text as an id, including names of object properties", () => {
    const first = { id: " étape 1 ", tool: "a", args: {} };
    const second = { id: "__proto__", tool: "a", args: { x: "{{ étape 1 }}" } };
    const third = { id: "constructor", tool: "a", args: { x: "{{__proto__}} {{toString}}" } };
    const levels = dependencyLevels(parseToolPlan(JSON.stringify([third, second, first])) ?? []) ?? [];
    expect(levels.map((level) => level.map(({ id }) => id))).toEqual([
      ["étape 1"],
      ["__proto__"],
      ["constructor"],
    ]);
    expect(fillPlaceholders(second.args, new Map([["étape 1", "one"]]))).toEqual({ x: "one" });
  });

  test("a plan of tool calls drops arguments that are nested too deeply and reports the problem", () => {
    const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    expect(parseToolPlan(`[{"tool": "a"}, {"tool": "b", "args": {"x": ${deep}}}]`)).toEqual([
      { id: "E1", tool: "a", args: {} },
      { id: "E2", tool: "b", args: {}, problem: "the plan has args that are nested too deeply" },
    ]);
  });
});
