import fc from "fast-check";
import { expect, test } from "vitest";
import { Fault, isJson } from "../../../src/kernel/index.ts";
import { nearestJson } from "../../../src/kernel/base/json-safe-copy.ts";

const loop: Record<string, unknown> = { name: "loop" };
loop["self"] = loop;
const unreadable = (): never => {
  throw new Error("no");
};
const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();

test.for<[what: string, value: unknown, said: unknown]>([
  ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
  ["an invalid date", new Date(Number.NaN), null],
  ["a bigint", 10n, "10"],
  ["numbers that JSON cannot hold", [Number.NaN, Number.POSITIVE_INFINITY, -0], ["NaN", "Infinity", 0]],
  ["an object that contains itself", loop, { name: "loop", self: "[contains itself]" }],
  ["an error", new TypeError("no"), { name: "TypeError", message: "no" }],
  ["undefined in an array and in a property", { a: [undefined], b: undefined }, { a: [null] }],
  ["a map", new Map([["a", 1]]), {}],
  ["a function", { f: () => 1 }, { f: "a function" }],
  [
    "a getter that throws",
    Object.defineProperty({}, "a", { enumerable: true, get: unreadable }),
    "[cannot be read]",
  ],
  ["a revoked proxy", { revoked }, { revoked: "[cannot be read]" }],
])("J10: nearestJson() turns %s into JSON", ([, value, said]) => {
  expect(nearestJson(value)).toEqual(said);
});

test("J10: nearestJson() turns any value into JSON and returns a JSON value unchanged", () => {
  fc.assert(
    fc.property(
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withObjectString: true }),
      (value) => {
        expect(isJson(nearestJson(value))).toBe(true);
      },
    ),
  );
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      fc.pre(isJson(value));
      expect(nearestJson(value)).toEqual(value);
    }),
  );
});

test("J10: a stored fault is JSON whatever its details contain", () => {
  const details = { when: new Date(0), amount: 10n, loop } as never;
  expect(new Fault("internal", "odd", { details }).toJSON()).toEqual({
    code: "internal",
    message: "odd",
    details: {
      when: "1970-01-01T00:00:00.000Z",
      amount: "10",
      loop: { name: "loop", self: "[contains itself]" },
    },
  });
});
