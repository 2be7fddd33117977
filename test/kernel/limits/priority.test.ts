import fc from "fast-check";
import { expect, test } from "vitest";
import {
  formatPriority,
  parsePriority,
  priorities,
  Priority,
  type PriorityName,
} from "../../../src/kernel/index.ts";

const names = Object.keys(Priority) as PriorityName[];

test("the priorities have the weights 0, 1, 2, 4 and 8", () => {
  expect(Priority).toEqual({ BACKGROUND: 0, LOW: 1, NORMAL: 2, HIGH: 4, CRITICAL: 8 });
});

test("priorities are listed from the highest to the lowest, each once", () => {
  expect(priorities).toEqual([8, 4, 2, 1, 0]);
  expect(new Set(priorities)).toEqual(new Set(Object.values(Priority)));
});

test.each(names)("the priority %s is parsed from its name in capitals and from its weight", (name) => {
  for (const text of [name.toLowerCase(), `${name.slice(0, 1)}${name.slice(1).toLowerCase()}`]) {
    expect(() => parsePriority(text)).toThrow(
      `invalid priority "${text}": expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL; use Priority.${name}`,
    );
  }
  expect(parsePriority(name)).toBe(Priority[name]);
  expect(parsePriority(Priority[name])).toBe(Priority[name]);
  expect(parsePriority(formatPriority(Priority[name]))).toBe(Priority[name]);
  expect(formatPriority(parsePriority(name))).toBe(name);
});

test.each([
  ["urgent", `invalid priority "urgent": expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL`],
  ["", `invalid priority "": expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL`],
  ["toString", `invalid priority "toString": expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL`],
  ["8", `invalid priority "8": expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL`],
  [3, "invalid priority 3: expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL"],
  [Number.NaN, "invalid priority NaN: expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL"],
  [null, "invalid priority null: expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL"],
  [undefined, "invalid priority undefined: expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL"],
  [["HIGH"], "invalid priority an array: expected one of BACKGROUND, LOW, NORMAL, HIGH, CRITICAL"],
])("the invalid priority %j is refused, and the error lists the valid names", (value, message) => {
  expect(() => parsePriority(value)).toThrow(expect.objectContaining({ code: "invalid_argument", message }));
});

test("formatting an invalid weight as a name is refused", () => {
  expect(() => formatPriority(3 as Priority)).toThrow(
    expect.objectContaining({
      code: "invalid_argument",
      message: expect.stringContaining("invalid priority 3"),
    }),
  );
});

test("any value is either parsed as a priority of a task or refused with invalid_argument", () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (value) => {
      expect(outcomeOf(value)).toSatisfy(
        (outcome) => outcome === "invalid_argument" || priorities.includes(outcome as Priority),
      );
    }),
  );
});

test("a value whose properties throw is refused as an invalid priority", () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  expect(() => parsePriority(proxy)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
});

test("the table and the list of task priorities are frozen", () => {
  expect(() => Object.assign(Priority, { HIGH: 9 })).toThrow(TypeError);
  expect(() => (priorities as Priority[]).push(8)).toThrow(TypeError);
});

function outcomeOf(value: unknown): unknown {
  try {
    return parsePriority(value);
  } catch (error) {
    return Reflect.get(error as object, "code");
  }
}
