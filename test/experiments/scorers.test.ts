import { describe, expect, test } from "vitest";
import { z } from "zod";
import { jsonMatch } from "../../src/experiments/scorers/json-match.ts";
import { completed, costBelow, timeBelow, turnsBelow } from "../../src/experiments/scorers/limit-scorers.ts";
import { contains, exactMatch, matches } from "../../src/experiments/scorers/text-scorers.ts";
import { toolCalls } from "../../src/experiments/scorers/tool-calls.ts";
import { call, given, runScorer } from "./scorer-given.ts";

describe("exactMatch()", () => {
  test("exactMatch() ignores white space around a text, and compares other values as JSON", async () => {
    const score = exactMatch();
    expect(score.name).toBe("exactMatch");
    expect(await runScorer(score, given(" Paris\n", "Paris"))).toMatchObject({ score: 1 });
    expect(await runScorer(score, given({ b: 1, a: 2 }, { a: 2, b: 1 }))).toMatchObject({ score: 1 });
    expect(await runScorer(score, given("paris", "Paris"))).toMatchObject({
      score: 0,
      reason: 'expected "Paris", got "paris"',
    });
    expect(await runScorer(exactMatch({ ignoreCase: true }), given("paris", "Paris"))).toMatchObject({
      score: 1,
    });
  });

  test("exactMatch() skips a case without an expected value", async () => {
    expect(await runScorer(exactMatch(), given("Paris"))).toMatchObject({ score: null, error: null });
  });
});

describe("contains() and matches()", () => {
  test("contains() names each text that the output lacks", async () => {
    expect(await runScorer(contains(), given("Paris, France", ["Paris", "France"]))).toMatchObject({
      score: 1,
    });
    expect(await runScorer(contains({ texts: ["Rome", "Paris", "Bonn"] }), given("Paris"))).toMatchObject({
      score: 0,
      reason: 'the output does not contain "Rome" and "Bonn"',
    });
    expect(await runScorer(contains(), given("Paris", 7))).toMatchObject({
      score: null,
      error: expect.stringContaining("expected a text or a list of texts, not 7"),
    });
  });

  test("matches() gives the same answer for each case if the expression is global", async () => {
    const score = matches(/\d+/gu);
    for (const _ of [1, 2, 3]) expect(await runScorer(score, given("room 12"))).toMatchObject({ score: 1 });
    expect(await runScorer(score, given("no room"))).toMatchObject({
      score: 0,
      reason: String.raw`/\d+/u does not match the output`,
    });
    expect(() => matches("12" as never)).toThrow("expected a regular expression");
  });
});

describe("jsonMatch()", () => {
  test("jsonMatch() names each path that differs from the expected value", async () => {
    const expected = { name: "Ada", items: [{ price: 1 }, { price: 2 }], "a b": true };
    const output = JSON.stringify({
      name: "Ada",
      items: [{ price: 1 }, { price: 3 }, { price: 4 }],
      extra: 1,
    });
    const { score, reason, metadata } = await runScorer(jsonMatch(), given(output, expected));
    expect(score).toBe(0);
    expect(reason).toBe(
      'items[1].price: expected 2, got 3; items[2]: expected nothing, got {"price":4}; ["a b"]: expected true, got nothing; extra: expected nothing, got 1',
    );
    expect(metadata).toMatchObject({
      differences: [{ path: "items[1].price", expected: 2, actual: 3 }, {}, {}, {}],
    });
  });

  test("jsonMatch() accepts additional members with the option subset, and checks a schema", async () => {
    const subset = jsonMatch({ subset: true });
    expect(await runScorer(subset, given({ a: 1, b: 2 }, { a: 1 }))).toMatchObject({ score: 1 });
    const schema = jsonMatch({ schema: z.object({ a: z.number() }) });
    expect(await runScorer(schema, given('{"a": 1}'))).toMatchObject({ score: 1 });
    expect(await runScorer(schema, given('{"a": "1"}'))).toMatchObject({
      score: 0,
      reason: expect.stringMatching(/^schema: a .*number/u),
    });
    expect(await runScorer(schema, given("no JSON"))).toMatchObject({
      score: 0,
      reason: "the output is not JSON",
    });
  });
});

describe("toolCalls()", () => {
  const find = { name: "find", arguments: { id: 1 } };
  const pay = { name: "pay", arguments: { usd: 5, to: { iban: "X" } } };

  test("toolCalls() scores 1 if the calls are the expected calls in their order", async () => {
    const run = { toolCalls: [call("find", { id: 1 }), call("pay", { usd: 5, to: { iban: "X" } })] };
    expect(await runScorer(toolCalls(), given("done", [find, pay], run))).toMatchObject({ score: 1 });
    expect(await runScorer(toolCalls(), given("done", { toolCalls: [find, pay] }, run))).toMatchObject({
      score: 1,
    });
    expect(
      await runScorer(toolCalls({ calls: [{ name: "find" }, pay] }), given("done", null, run)),
    ).toMatchObject({
      score: 1,
    });
    expect(await runScorer(toolCalls({ calls: [] }), given("done", null))).toMatchObject({ score: 1 });
    expect(await runScorer(toolCalls(), given("done"))).toMatchObject({ score: null, error: null });
  });

  test("toolCalls() names arguments that differ, missing calls and additional calls", async () => {
    const run = { toolCalls: [call("pay", { usd: 6, to: { iban: "X" } }), call("mail", {})] };
    expect(await runScorer(toolCalls(), given("done", [find, pay], run))).toMatchObject({
      score: 0,
      reason: 'missing find({"id":1}); pay: usd: expected 5, got 6; unexpected mail({})',
      metadata: { expected: 2, made: 2, matching: 0 },
    });
  });

  test("toolCalls() gives calls in another order a score below 1, and with order any a score of 1", async () => {
    const run = { toolCalls: [call("pay", pay.arguments), call("find", find.arguments)] };
    expect(await runScorer(toolCalls(), given("done", [find, pay], run))).toMatchObject({
      score: 0.5,
      reason: expect.stringContaining("out of order"),
    });
    expect(await runScorer(toolCalls({ order: "any" }), given("done", [find, pay], run))).toMatchObject({
      score: 1,
    });
  });

  test("toolCalls() assigns a call to an expected call without arguments only if no other expected call needs it", async () => {
    const run = { toolCalls: [call("find", { id: 1 }), call("find", { id: 2 })] };
    const expected = [{ name: "find" }, { name: "find", arguments: { id: 1 } }];
    expect(await runScorer(toolCalls({ order: "any" }), given("done", expected, run))).toMatchObject({
      score: 1,
    });
  });

  test("toolCalls() accepts additional calls and arguments with the options that allow them", async () => {
    const run = { toolCalls: [call("log", {}), call("find", { id: 1, deep: true })] };
    const options = { extra: "allow", arguments: "subset" } as const;
    expect(await runScorer(toolCalls(options), given("done", [find], run))).toMatchObject({ score: 1 });
    expect(await runScorer(toolCalls({ extra: "allow" }), given("done", [find], run))).toMatchObject({
      score: 0,
      reason: "find: deep: expected nothing, got true",
    });
  });

  test("toolCalls() fails for a case whose expected calls are malformed", async () => {
    const broken = [{ name: "find", args: {} }];
    expect(await runScorer(toolCalls(), given("done", broken))).toMatchObject({
      score: null,
      error: expect.stringContaining("call 1 has the unknown member"),
    });
  });
});

describe("scorers of limits", () => {
  test("a limit scorer such as costBelow() scores 1 below its limit and 0 at the limit, with the reason", async () => {
    expect(await runScorer(costBelow(0.02), given(""))).toMatchObject({ score: 1 });
    expect(await runScorer(costBelow(0.01), given(""))).toMatchObject({
      score: 0,
      reason: "$0.01 is not below $0.01",
    });
    expect(await runScorer(turnsBelow(2), given(""))).toMatchObject({ score: 0, reason: "2 is not below 2" });
    expect(await runScorer(turnsBelow(3), given(""))).toMatchObject({ score: 1 });
    expect(await runScorer(timeBelow("1s"), given(""))).toMatchObject({
      score: 0,
      reason: "1500 ms is not below 1000 ms",
    });
    expect(await runScorer(completed(), given(null, null, { status: "max_turns" }))).toMatchObject({
      score: 0,
      reason: "the agent ended as max_turns",
    });
  });

  test("scorers refuse wrong and unknown options when they are made", () => {
    expect(() => costBelow(-1)).toThrow("invalid number of dollars -1 of costBelow()");
    expect(() => timeBelow("soon" as never)).toThrow("timeBelow()");
    expect(() => exactMatch({ ignorecase: true } as never)).toThrow('use "ignoreCase"');
    expect(() => toolCalls({ order: "some" as never })).toThrow("expected one of same, any");
    expect(() => completed({ name: " " })).toThrow("invalid name");
  });
});
