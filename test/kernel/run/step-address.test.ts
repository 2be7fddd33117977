import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { branchScope, type StepAddress, stepAt, type StepScope } from "../../../src/kernel/index.ts";

/** A path down from the task: indexes of steps and names of branches. */
type Path = readonly (number | string)[];

const branch = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/);
const path: fc.Arbitrary<Path> = fc
  .tuple(
    fc.nat(12),
    fc.array(fc.oneof(fc.nat(12), fc.constantFrom("left", "right"), branch), { maxLength: 5 }),
  )
  .map(([first, rest]) => [first, ...rest]);

function addressOf(steps: Path): StepScope {
  return steps.reduce<StepScope>(
    (scope, step) =>
      typeof step === "number" ? stepAt(scope, step) : branchScope(scope as StepAddress, step),
    "",
  );
}

describe("J2: a step address", () => {
  test("J2: a step address consists of the scope and the index in that scope", () => {
    expect(stepAt("", 2)).toBe("2");
    expect(stepAt(stepAt("", 2), 0)).toBe("2/0");
    expect(stepAt(branchScope(stepAt("", 5), "left"), 3)).toBe("5/left/3");
  });

  test("a step address joins all indexes and branch names of its path with /", () => {
    fc.assert(
      fc.property(path, (steps) => {
        expect(addressOf(steps)).toBe(steps.join("/"));
      }),
    );
  });

  test("a step address is equal for two paths if and only if the paths are equal", () => {
    fc.assert(
      fc.property(path, path, (one, other) => {
        const same = one.length === other.length && one.every((step, index) => step === other[index]);
        expect(addressOf(one) === addressOf(other)).toBe(same);
      }),
    );
  });

  test("J2: the address of a branch never equals the address of a step", () => {
    fc.assert(
      fc.property(fc.nat(), branch, (index, name) => {
        expect(branchScope(stepAt("", 0), name)).not.toBe(stepAt(stepAt("", 0), index));
      }),
    );
  });

  test("a step address writes the index -0 as 0", () => {
    expect(stepAt("", -0)).toBe("0");
  });
});

test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])(
  "stepAt() throws invalid_argument for the index %d",
  (index) => {
    expect(() => stepAt("", index)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: `invalid step index ${index}: use an integer from 0`,
      }),
    );
  },
);

test.each(["", "0", "12", "1st", "-a", ".", "a/b", "a b", "left\n", "ü", "a".repeat(65)])(
  "branchScope() throws invalid_argument for the branch name %j and states the rule",
  (name) => {
    expect(() => branchScope(stepAt("", 0), name)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: `invalid branch name ${JSON.stringify(name)}: use 1 to 64 letters, digits, and _ . -, starting with a letter or _`,
      }),
    );
  },
);
