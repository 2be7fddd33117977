import { isDeepStrictEqual } from "node:util";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assertJson,
  canonicalJson,
  copyJson,
  isJson,
  jsonText,
  type JsonValue,
} from "../../../src/kernel/index.ts";
import { propertyRuns } from "../../effort.ts";

class Point {
  readonly x = 1;
}

class Rootless {
  static {
    Object.setPrototypeOf(this.prototype, null);
  }
}

class List extends Array<number> {}

/** Values that do not survive a round trip through JSON text. */
const hostileLeaf = fc.oneof(
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0),
  fc.bigInt(),
  fc.constant(Symbol("leaf")),
  fc.func(fc.boolean()),
  fc.date(),
  fc.constant(new Point()),
  fc.constant(new List(1, 2)),
  fc.constant(/pattern/),
  fc.constant("abc".match(/b/)),
);
const leaf = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.oneof(fc.string({ unit: "binary" }), fc.boolean(), fc.constant(null), fc.integer()),
  },
  { weight: 1, arbitrary: hostileLeaf },
);
const anything = fc.anything({
  values: [leaf],
  withBoxedValues: true,
  withMap: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
});
/** Random JSON without -0, which parsed JSON may contain and JSON text does not keep. */
const storable = fc.jsonValue({ maxDepth: 4 }).filter(isJson);

function comesBack(value: unknown): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(JSON.stringify(value)), value);
  } catch {
    return false;
  }
}

function cycle(): unknown {
  const list: unknown[] = [1];
  list.push({ list });
  return list;
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

describe("J10: isJson() and assertJson()", () => {
  test("J10: isJson() accepts parsed JSON exactly if it survives a round trip through text", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(isJson(value)).toBe(comesBack(value));
      }),
    );
  });

  test("J10: isJson() accepts any value exactly if the value survives a round trip through text", () => {
    fc.assert(
      fc.property(anything, (value) => {
        expect(isJson(value)).toBe(comesBack(value));
      }),
      { numRuns: propertyRuns(1_000) },
    );
  });

  test.each<[string, unknown]>([
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 })],
    ["an object of another realm", runInNewContext("({ a: [1, { b: null }] })")],
    ["an array of another realm", runInNewContext("[1, [2]]")],
    ["a property that is undefined, which counts as absent", { a: 1, b: undefined }],
    ["the same object twice", ((shared) => [shared, { shared }])({ a: 1 })],
    ["an own property called __proto__", JSON.parse('{"__proto__": {"a": 1}}')],
    ["a lone surrogate", "\ud800"],
    ["a frozen object", Object.freeze({ a: Object.freeze([1]) })],
  ])("J10: isJson() and assertJson() accept %s", (_name, value) => {
    expect(isJson(value)).toBe(true);
    expect(() => assertJson(value)).not.toThrow();
  });

  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["a hole in an array", [1, , 3]], // eslint-disable-line no-sparse-arrays
    ["undefined in an array", [undefined]],
    ["-0", -0],
    ["a boxed string", Object("text")],
    ["a class instance", new Point()],
    ["an array with extra properties, which JSON text drops", Object.assign([1], { total: 1 })],
    ["the result of a regular expression, whose index JSON text drops", "abc".match(/b/)],
    ["an instance of a class that extends Array", new List(1, 2)],
    ["a property under a symbol, which JSON text drops", { [Symbol("key")]: 1 }],
    ["a toJSON that is not enumerable", Object.defineProperty({ a: 1 }, "toJSON", { value: () => "other" })],
    ["a toJSON inherited from a bare object", Object.create(Object.assign(Object.create(null), { toJSON }))],
    ["an instance of a class whose prototype has no prototype", Object.create(Rootless.prototype)],
    ["a cycle", cycle()],
    ["a getter that throws", Object.defineProperty({}, "a", { enumerable: true, get: refuse })],
    ["a revoked proxy", revokedProxy()],
  ])("J10: isJson() and assertJson() refuse %s", (_name, value) => {
    expect(isJson(value)).toBe(false);
    expect(() => assertJson(value)).toThrow(expect.objectContaining({ code: "not_json" }));
  });

  test("J10: isJson() refuses a value that is nested too deeply for JSON.stringify", () => {
    expect(isJson(nested(1000))).toBe(true);
    expect(canonicalJson(nested(1000))).toBe(JSON.stringify(nested(1000)));
    const tooDeep = nested(100_000);
    expect(comesBack(tooDeep)).toBe(false);
    expect(isJson(tooDeep)).toBe(false);
    expect(() => assertJson(tooDeep)).toThrow(expect.objectContaining({ code: "not_json" }));
  });

  test("J10: assertJson() does not change the value", () => {
    const value = Object.freeze({ a: Object.freeze([1, Object.freeze({ b: "c" })]) });
    assertJson(value);
    expect(value).toEqual({ a: [1, { b: "c" }] });
  });
});

describe("J10: the error of assertJson()", () => {
  test.each<[unknown, string]>([
    [undefined, "value is undefined, which JSON cannot hold"],
    [Number.NaN, "value is NaN, which JSON cannot hold"],
    [{ cost: Number.POSITIVE_INFINITY }, "value.cost is Infinity, which JSON cannot hold"],
    [{ a: [0, -0] }, "value.a[1] is -0, which JSON cannot hold"],
    [[[], [[undefined]]], "value[1][0][0] is undefined, which JSON cannot hold"],
    [{ a: { b: 1n } }, "value.a.b is a bigint, which JSON cannot hold"],
    [{ a: [Symbol("s")] }, "value.a[0] is a symbol, which JSON cannot hold"],
    [[{ run: refuse }], "value[0].run is a function, which JSON cannot hold"],
    [{ at: new Date(0) }, "value.at is a class instance; store its plain data instead"],
    [new Map(), "value is a class instance; store its plain data instead"],
    [cycle(), "value[1].list contains itself"],
  ])(
    "J10: the error of assertJson() names the path of the first value that is not JSON: case %#",
    (value, message) => {
      expect(() => assertJson(value)).toThrow(expect.objectContaining({ code: "not_json", message }));
    },
  );

  test("J10: the path in the error of assertJson() starts with the name that the caller gives", () => {
    expect(() => assertJson({ rows: [1n] }, "output of step 2")).toThrow(
      expect.objectContaining({ message: "output of step 2.rows[0] is a bigint, which JSON cannot hold" }),
    );
  });

  test("J10: the error of assertJson() names the path of a bad value at any place", () => {
    const steps = fc.array(fc.oneof(fc.nat(3), fc.stringMatching(/^[a-z]{1,5}$/)), { maxLength: 6 });
    fc.assert(
      fc.property(steps, (path) => {
        const value = path.reduceRight<unknown>(
          (inner, step) =>
            typeof step === "number" ? [...Array.from({ length: step }, () => 0), inner] : { [step]: inner },
          1n,
        );
        const shown = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("");
        expect(() => assertJson(value)).toThrow(
          expect.objectContaining({ message: `value${shown} is a bigint, which JSON cannot hold` }),
        );
      }),
    );
  });
});

describe("canonicalJson()", () => {
  test("canonicalJson() sorts keys and omits undefined properties", () => {
    expect(canonicalJson({ b: [{ d: 1, c: undefined }], a: null })).toBe('{"a":null,"b":[{"d":1}]}');
  });

  test("canonicalJson() returns the same text for any order of keys", () => {
    fc.assert(
      fc.property(storable, (value) => {
        expect(canonicalJson(backwards(value))).toBe(canonicalJson(value));
      }),
    );
  });

  test("canonicalJson() returns equal texts if and only if the values are equal", () => {
    const small = fc.jsonValue({ maxDepth: 2, stringUnit: fc.constantFrom("a", "b") }).filter(isJson);
    fc.assert(
      fc.property(small, small, (one, other) => {
        expect(canonicalJson(one) === canonicalJson(other)).toBe(isDeepStrictEqual(one, other));
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });

  test('canonicalJson() distinguishes values that look alike, such as 1 and "1"', () => {
    const alike = [
      "1",
      1,
      "null",
      null,
      [],
      {},
      "",
      [""],
      ["a,b"],
      ["a", "b"],
      { a: 1 },
      '{"a":1}',
      [[1], 2],
      [1, [2]],
    ];
    expect(new Set(alike.map(canonicalJson)).size).toBe(alike.length);
  });

  test("canonicalJson() returns JSON text that parses to an equal value", () => {
    fc.assert(
      fc.property(storable, (value) => {
        expect(isDeepStrictEqual(JSON.parse(canonicalJson(value)), value)).toBe(true);
      }),
    );
  });
});

/** Copies a value with the keys of every object in reverse order. */
function backwards(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(backwards);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, member]) => [key, backwards(member)]),
  );
}

function toJSON(): string {
  return "other";
}

function refuse(): never {
  throw new Error("refused");
}

test("jsonCopy() returns a value that is equal to the original and shares no object with it", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const json = value as JsonValue;
      expect(copyJson(json)).toEqual(json);
      expect(typeof json === "object" && json !== null && copyJson(json) === json).toBe(false);
    }),
  );
});

test.each([
  ["a text", "a text"],
  ["", ""],
  [null, ""],
  [0, "0"],
  [["a", null], '["a",null]'],
] as const)("jsonText() of %j is %j", (value, words) => {
  expect(jsonText(value)).toBe(words);
});
