import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { branchScope, type StepAddress, stepAt, type StepScope } from "../../../src/kernel/index.ts";

/** A way down from the task: steps by number, into named branches in between. */
type Way = readonly (number | string)[];

const branch = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/);
const way: fc.Arbitrary<Way> = fc
  .tuple(
    fc.nat(12),
    fc.array(fc.oneof(fc.nat(12), fc.constantFrom("left", "right"), branch), { maxLength: 5 }),
  )
  .map(([first, rest]) => [first, ...rest]);

function addressOf(steps: Way): StepScope {
  return steps.reduce<StepScope>(
    (scope, step) =>
      typeof step === "number" ? stepAt(scope, step) : branchScope(scope as StepAddress, step),
    "",
  );
}

describe("J2: an address", () => {
  test("is the scope and the index there", () => {
    expect(stepAt("", 2)).toBe("2");
    expect(stepAt(stepAt("", 2), 0)).toBe("2/0");
    expect(stepAt(branchScope(stepAt("", 5), "left"), 3)).toBe("5/left/3");
  });

  test("is the way down, joined by /", () => {
    fc.assert(
      fc.property(way, (steps) => {
        expect(addressOf(steps)).toBe(steps.join("/"));
      }),
    );
  });

  test("is the same for the same way and for no other", () => {
    fc.assert(
      fc.property(way, way, (one, other) => {
        const same = one.length === other.length && one.every((step, index) => step === other[index]);
        expect(addressOf(one) === addressOf(other)).toBe(same);
      }),
    );
  });

  test("of a branch is never taken for that of a step", () => {
    fc.assert(
      fc.property(fc.nat(), branch, (index, name) => {
        expect(branchScope(stepAt("", 0), name)).not.toBe(stepAt(stepAt("", 0), index));
      }),
    );
  });

  test("has no negative zero", () => {
    expect(stepAt("", -0)).toBe("0");
  });
});

test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])(
  "%d is refused as a step index",
  (index) => {
    expect(() => stepAt("", index)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: `${index} is not a step index: it must be an integer from 0`,
      }),
    );
  },
);

test.each(["", "0", "12", "1st", "-a", ".", "a/b", "a b", "left\n", "ü", "a".repeat(65)])(
  "%j is refused as a branch name, with the rule",
  (name) => {
    expect(() => branchScope(stepAt("", 0), name)).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: `${JSON.stringify(name)} is not a branch name: it must be 1 to 64 letters, digits, and _ . -, starting with a letter or _`,
      }),
    );
  },
);
