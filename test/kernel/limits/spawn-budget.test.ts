import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultSpawnBudget, spawnBudget, type SpawnBudget } from "../../../src/kernel/index.ts";

test("a spawn budget is fifty agents with preemption unless told", () => {
  expect(defaultSpawnBudget).toEqual({ maxAgents: 50, allowPreempt: true });
  expect(spawnBudget()).toEqual(defaultSpawnBudget);
  expect(spawnBudget({ maxAgents: 3 })).toEqual({ maxAgents: 3, allowPreempt: true });
  expect(spawnBudget({ allowPreempt: false })).toEqual({ maxAgents: 50, allowPreempt: false });
});

test("a spawn budget keeps what it was given", () => {
  const options = fc.record({ maxAgents: fc.integer({ min: 1 }), allowPreempt: fc.boolean() });
  fc.assert(
    fc.property(options, (given) => {
      expect(spawnBudget(given)).toEqual(given);
    }),
  );
});

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, null, "5", 5n])(
  "H1, B2: a cap is a whole number that has room for the root, which %s is not",
  (maxAgents) => {
    expect(() => spawnBudget({ maxAgents } as SpawnBudget)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringMatching(
          /^invalid maxAgents .+: expected an integer from 1, because the root counts as one$/,
        ),
      }),
    );
  },
);

test.each([0, 1, "true", null])("preemption is allowed or not: %s is neither", (allowPreempt) => {
  expect(() => spawnBudget({ allowPreempt } as unknown as SpawnBudget)).toThrow(
    expect.objectContaining({
      code: "invalid_argument",
      message: expect.stringMatching(/^invalid allowPreempt .+: expected true or false$/),
    }),
  );
});

test("a spawn budget is frozen, and no part of the options it was made from", () => {
  const given = { maxAgents: 3 };
  const made = spawnBudget(given);
  given.maxAgents = 99;
  expect(made.maxAgents).toBe(3);
  for (const each of [made, defaultSpawnBudget]) {
    expect(() => Object.assign(each, { maxAgents: 99 })).toThrow(TypeError);
  }
});
