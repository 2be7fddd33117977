import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addUsage, noUsage, totalTokens, type Usage } from "../../../src/kernel/index.ts";

const tokens = fc.nat(1_000_000);
/** Multiples of an eighth of a dollar, whose floating-point sums are exact. */
const cost = fc.option(fc.nat(1000).map((eighths) => eighths / 8));
const usage: fc.Arbitrary<Usage> = fc.record({
  inputTokens: tokens,
  outputTokens: tokens,
  cacheReadTokens: tokens,
  cacheWriteTokens: tokens,
  reasoningTokens: tokens,
  costUsd: cost,
});

describe("addUsage()", () => {
  test("addUsage() adds every field", () => {
    const one: Usage = {
      inputTokens: 100,
      outputTokens: 20,
      cacheReadTokens: 60,
      cacheWriteTokens: 10,
      reasoningTokens: 5,
      costUsd: 0.25,
    };
    expect(addUsage(one, one)).toEqual({
      inputTokens: 200,
      outputTokens: 40,
      cacheReadTokens: 120,
      cacheWriteTokens: 20,
      reasoningTokens: 10,
      costUsd: 0.5,
    });
  });

  test("addUsage() is commutative and associative, with noUsage as its neutral element", () => {
    fc.assert(
      fc.property(usage, usage, usage, (one, two, three) => {
        expect(addUsage(one, noUsage)).toEqual(one);
        expect(addUsage(one, two)).toEqual(addUsage(two, one));
        expect(addUsage(addUsage(one, two), three)).toEqual(addUsage(one, addUsage(two, three)));
      }),
    );
  });

  test("addUsage() returns the cost null if any added cost is unknown", () => {
    fc.assert(
      fc.property(fc.array(usage, { maxLength: 6 }), (calls) => {
        const sum = calls.reduce(addUsage, noUsage);
        const known = calls.every(({ costUsd }) => costUsd !== null);
        expect(sum.costUsd === null).toBe(!known);
        expect(totalTokens(sum)).toBe(calls.reduce((total, each) => total + totalTokens(each), 0));
      }),
    );
  });

  test("addUsage() does not change its arguments", () => {
    const one = Object.freeze({ ...noUsage, inputTokens: 1 });
    expect(addUsage(one, one)).toMatchObject({ inputTokens: 2 });
    expect(one.inputTokens).toBe(1);
  });
});

test("totalTokens() adds input and output tokens, which include cache and reasoning tokens", () => {
  const parts = { cacheReadTokens: 60, cacheWriteTokens: 10, reasoningTokens: 5, costUsd: null };
  expect(totalTokens({ inputTokens: 100, outputTokens: 20, ...parts })).toBe(120);
});

test("noUsage is frozen and has zero tokens and the known cost 0", () => {
  expect(noUsage.costUsd).toBe(0);
  expect(totalTokens(noUsage)).toBe(0);
  expect(() => Object.assign(noUsage, { inputTokens: 1 })).toThrow(TypeError);
});
