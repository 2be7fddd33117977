import * as fc from "fast-check";
import { expect, test } from "vitest";
import { contentThreshold, type JsonValue } from "../../../../src/kernel/index.ts";
import { sha256 } from "../../../../src/runtime/process/sha256.ts";
import { commitText } from "../../../../src/runtime/stores/codec/commit-text.ts";
import {
  hashesIn,
  joinText,
  contentText,
  LargeValues,
  type ContentRef,
  type SplitText,
} from "../../../../src/runtime/stores/codec/large-values.ts";
import { propertyRuns } from "../../../effort.ts";

const large = new LargeValues(sha256);
const long = "x".repeat(contentThreshold);

function contentsOf({ values }: SplitText): ReadonlyMap<string, string> {
  return new Map(values.map((value) => [value.hash, contentText(value)]));
}

function joined(split: SplitText): unknown {
  return joinText(split.text, split.refs, contentsOf(split));
}

const text = fc.oneof(
  fc.string(),
  fc.nat(contentThreshold).map((more) => `${more} `.repeat(1 + more / 2)),
);
const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 6 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constant("__proto__")), tie("value"), {
      maxKeys: 6,
      noNullPrototype: true,
    }),
  ),
}));

test("large values in any items are split off and joined again unchanged, and no large value stays in the text", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ a: value, b: value }), { maxLength: 4 }), (items) => {
      const split = large.splitItems(items);
      expect(JSON.stringify(joined(split))).toBe(JSON.stringify(items));
      const again = large.splitItems(JSON.parse(split.text) as object[]);
      expect(again).toMatchObject({ text: split.text, refs: null });
    }),
    { numRuns: propertyRuns(300) },
  );
});

test("the innermost large values of a commit are moved out, and equal values have one hash wherever they are", () => {
  const output = { type: "text", text: long };
  const record = large.splitItems([{ output, isError: false }]);
  const entry = large.splitItems([{ message: { role: "tool", content: [{ callId: "c", output }] } }]);
  const hash = sha256(long);
  expect(JSON.parse(record.refs ?? "")).toEqual([[hash, "text", 0, "output", "text"]]);
  expect(JSON.parse(entry.refs ?? "")).toEqual([
    [hash, "text", 0, "message", "content", 0, "output", "text"],
  ]);
  expect(record.text).toBe('[{"output":{"type":"text","text":null},"isError":false}]');
});

test("a list of small values is moved out as a whole if its text is large", () => {
  const many = Array.from({ length: contentThreshold }, (_, index) => index);
  const split = large.splitItems([{ many, more: long }]);
  expect(hashesIn(split.refs ?? "")).toEqual([sha256(JSON.stringify(many)), sha256(long)]);
  expect(joined(split)).toEqual([{ many, more: long }]);
});

test("a value that is still large without the large values inside it is moved out after these", () => {
  const rest = Array.from({ length: 1_000 }, (_, index) => `item ${index}`);
  const [outer, inner] = JSON.parse(
    large.splitItems([{ a: { list: [long, ...rest] } }]).refs ?? "",
  ) as ContentRef[];
  expect(outer?.slice(1)).toEqual(["json", 0, "a", "list"]);
  expect(inner).toEqual([sha256(long), "text", 0, "a", "list", 0]);
});

test("a commit without large values is serialised once and has no references", () => {
  let reads = 0;
  const resolves = [
    {
      get value() {
        reads++;
        return "small";
      },
    },
  ];
  const split = commitText({ resolves } as never, large);
  expect([split.refs, split.values.length, reads]).toEqual([null, 0, 1]);
});

test("a commit whose text is too long for a database row becomes a content itself", () => {
  const steps = Array.from({ length: 2_000 }, (_, index) => [`${index}`, "step", "work", "digest", index]);
  const split = commitText({ steps } as never, large);
  expect(split.text).toBe("null");
  expect(JSON.parse(split.refs ?? "")).toEqual([[split.values[0]?.hash, "json"]]);
  expect(joined(split)).toEqual({ steps });
});

test("joining the large values of a commit fails with a SyntaxError if a content is missing or has no place", () => {
  const split = large.splitItems([{ a: long }]);
  expect(() => joinText(split.text, split.refs, new Map())).toThrow(SyntaxError);
  for (const path of [
    [3, "a"],
    [0, "b", "c"],
    ["__proto__", "a"],
  ])
    expect(() =>
      joinText(split.text, JSON.stringify([[split.values[0]?.hash, "text", ...path]]), contentsOf(split)),
    ).toThrow(SyntaxError);
  expect("a" in {}).toBe(false);
});
