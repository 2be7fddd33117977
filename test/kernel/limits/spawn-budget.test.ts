import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultSpawnBudget, spawnBudget, type SpawnBudget } from "../../../src/kernel/index.ts";

test("a spawn budget defaults to fifty agents with preemption", () => {
  expect(defaultSpawnBudget).toEqual({ maxAgents: 50, allowPreempt: true });
  expect(spawnBudget()).toEqual(defaultSpawnBudget);
  expect(spawnBudget({ maxAgents: 3 })).toEqual({ maxAgents: 3, allowPreempt: true });
  expect(spawnBudget({ allowPreempt: false })).toEqual({ maxAgents: 50, allowPreempt: false });
});

test("a spawn budget keeps the given values", () => {
  const options = fc.record({ maxAgents: fc.integer({ min: 1 }), allowPreempt: fc.boolean() });
  fc.assert(
    fc.property(options, (given) => {
      expect(spawnBudget(given)).toEqual(given);
    }),
  );
});

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, null, "5", 5n])(
  "H1, B2: the limit of agents %s is refused: it must be a whole number from 1",
  (maxAgents) => {
    expect(() => spawnBudget({ maxAgents } as SpawnBudget)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringMatching(
          /^invalid maxAgents .+ of spawnBudget: expected an integer from 1; the root counts as one$/,
        ),
      }),
    );
  },
);

test.each([0, 1, "true", null])(
  "the value %s for allowPreempt is refused: it must be a boolean",
  (allowPreempt) => {
    expect(() => spawnBudget({ allowPreempt } as unknown as SpawnBudget)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringMatching(/^invalid allowPreempt .+ of spawnBudget: expected true or false$/),
      }),
    );
  },
);

test("spawnBudget() returns a frozen copy of its options", () => {
  const given = { maxAgents: 3 };
  const made = spawnBudget(given);
  given.maxAgents = 99;
  expect(made.maxAgents).toBe(3);
  for (const each of [made, defaultSpawnBudget]) {
    expect(() => Object.assign(each, { maxAgents: 99 })).toThrow(TypeError);
  }
});
