import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  executionBudget,
  type ExecutionBudget,
  tightenBudget,
  unlimitedBudget,
} from "../../../src/kernel/index.ts";

const dimensions = ["maxTokens", "maxCostUsd", "maxTurns", "deadlineMs"] as const;
const whole = fc.option(fc.maxSafeNat());
const real = fc.option(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }));
const options: fc.Arbitrary<Partial<ExecutionBudget>> = fc.record(
  { maxTokens: whole, maxCostUsd: real, maxTurns: whole, deadlineMs: real },
  { requiredKeys: [] },
);
const budget = options.map(executionBudget);

/** Orders limits for comparison: `null`, no limit, counts as infinity. */
function height(limit: number | null): number {
  return limit ?? Number.POSITIVE_INFINITY;
}

describe("B2: executionBudget()", () => {
  test("B2: executionBudget() is unlimited in every dimension that is not given", () => {
    expect(executionBudget()).toEqual(unlimitedBudget);
    expect(executionBudget({ maxTokens: null })).toEqual(unlimitedBudget);
    expect(unlimitedBudget).toEqual({ maxTokens: null, maxCostUsd: null, maxTurns: null, deadlineMs: null });
  });

  test.each(dimensions)("B2: executionBudget() keeps a zero %s as zero", (dimension) => {
    expect(executionBudget({ [dimension]: 0 })).toEqual({ ...unlimitedBudget, [dimension]: 0 });
    expect(Object.is(executionBudget({ [dimension]: -0 })[dimension], 0)).toBe(true);
  });

  test("B2: executionBudget() keeps every given limit", () => {
    fc.assert(
      fc.property(options, (given) => {
        const made = executionBudget(given);
        for (const dimension of dimensions)
          expect(height(made[dimension])).toBe(height(given[dimension] ?? null) + 0);
        expect(executionBudget(made)).toEqual(made);
      }),
    );
  });

  test.each(
    dimensions.flatMap((dimension) =>
      [-1, -0.001, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, "10", true, 10n, {}].map(
        (limit) => [dimension, limit] as const,
      ),
    ),
  )("executionBudget() refuses %s: %s", (dimension, limit) => {
    const given = { [dimension]: limit } as Partial<ExecutionBudget>;
    expect(() => executionBudget(given)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringMatching(
          `^invalid ${dimension} .*of budget: expected an? .+ from 0, or null for no limit(?:, not .+)?$`,
        ),
      }),
    );
    expect(() => tightenBudget(unlimitedBudget, given)).toThrow(
      expect.objectContaining({ code: "invalid_argument" }),
    );
  });

  test.each(["maxTokens", "maxTurns"] as const)(
    "B2: executionBudget() refuses a fraction for %s",
    (dimension) => {
      expect(() => executionBudget({ [dimension]: 1.5 })).toThrow(
        expect.objectContaining({
          message: `invalid ${dimension} 1.5 of budget: expected an integer from 0, or null for no limit`,
        }),
      );
      expect(() => executionBudget({ [dimension]: 2 ** 53 })).toThrow(/expected an integer/);
    },
  );

  test("B2: executionBudget() accepts fractions of dollars and milliseconds", () => {
    expect(executionBudget({ maxCostUsd: 0.001, deadlineMs: 0.5 })).toMatchObject({
      maxCostUsd: 0.001,
      deadlineMs: 0.5,
    });
  });

  test.each([
    ["maxToken", 'use "maxTokens"'],
    ["max_tokens", 'use "maxTokens"'],
    ["deadlineS", 'use "deadlineMs"'],
    ["toString", "expected one of maxTokens, maxCostUsd, maxTurns, deadlineMs"],
    ["__proto__", "expected one of maxTokens, maxCostUsd, maxTurns, deadlineMs"],
  ])("B2: executionBudget() refuses the unknown dimension %s and names the nearest one: %s", (key, fix) => {
    const given = JSON.parse(`{${JSON.stringify(key)}: 1}`) as Partial<ExecutionBudget>;
    expect(() => executionBudget(given)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: `unknown option "${key}" of budget: ${fix}`,
      }),
    );
  });

  test("B2: executionBudget() returns a frozen copy of its options", () => {
    const given = { maxTokens: 5 };
    const made = executionBudget(given);
    given.maxTokens = 99;
    expect(made.maxTokens).toBe(5);
    for (const each of [made, unlimitedBudget, tightenBudget(made, {})]) {
      expect(() => Object.assign(each, { maxTokens: 99 })).toThrow(TypeError);
    }
  });
});

describe("B6: tightenBudget()", () => {
  test("B6: tightening a budget takes the smaller limit in each dimension", () => {
    const parent = executionBudget({ maxTokens: 100, maxTurns: 0, deadlineMs: 50 });
    expect(tightenBudget(parent, { maxTokens: 200, maxCostUsd: 1, maxTurns: 7, deadlineMs: 20 })).toEqual({
      maxTokens: 100,
      maxCostUsd: 1,
      maxTurns: 0,
      deadlineMs: 20,
    });
  });

  test("B6: tightening a budget never widens it and gives exactly the smaller of the two limits", () => {
    fc.assert(
      fc.property(budget, options, (parent, own) => {
        const child = tightenBudget(parent, own);
        for (const dimension of dimensions) {
          const smaller = Math.min(height(parent[dimension]), height(own[dimension] ?? null));
          expect(height(child[dimension])).toBe(smaller);
        }
      }),
    );
  });

  test("B6: tightening budgets in another order or twice gives the same budget", () => {
    fc.assert(
      fc.property(budget, budget, budget, (one, two, three) => {
        const stepwise = tightenBudget(tightenBudget(one, two), three);
        expect(stepwise).toEqual(tightenBudget(one, tightenBudget(two, three)));
        expect(tightenBudget(one, two)).toEqual(tightenBudget(two, one));
        expect(tightenBudget(stepwise, two)).toEqual(stepwise);
        expect(tightenBudget(one, unlimitedBudget)).toEqual(one);
      }),
    );
  });
});
