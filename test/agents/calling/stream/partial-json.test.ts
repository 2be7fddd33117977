import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PartialJson } from "../../../../src/agents/calling/stream/partial-json.ts";
import type { JsonValue } from "../../../../src/kernel/index.ts";

function parsed(pieces: readonly string[], opensWith?: string): JsonValue | undefined {
  const parser = new PartialJson(opensWith);
  for (const piece of pieces) parser.push(piece);
  return parser.value;
}

describe("PartialJson", () => {
  test("PartialJson equals JSON.parse at the end, however the text is cut into pieces", () => {
    const values = fc.oneof(
      fc.array(fc.jsonValue()),
      fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }),
    );
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 7 }), fc.nat(2), (value, size, indent) => {
        const text = JSON.stringify(value, null, indent);
        const pieces = text.match(new RegExp(`.{1,${size}}`, "gsu")) ?? [];
        expect(parsed(pieces)).toEqual(JSON.parse(text));
      }),
    );
  });

  test("PartialJson never changes a value that it has returned", () => {
    const parser = new PartialJson();
    parser.push('{"list":[{"a":"x');
    const before = parser.value;
    parser.push('yz"},2],"more":true}');
    expect(before).toEqual({ list: [{ a: "x" }] });
    expect(parser.value).toEqual({ list: [{ a: "xyz" }, 2], more: true });
  });

  test.each([
    ['Here it is:\n```json\n{"a":1}\n```', "{", { a: 1 }],
    ['See [1] below.\n{"a":[2]}', "{", { a: [2] }],
    ['{"a":"caf\\u00e', "{", { a: "caf" }],
    ['{"a":"tab\\', "{", { a: "tab" }],
    ['{"a":tru', "{", {}],
    ['{"a":12', "{", {}],
    ['{"__proto__":{"x":1}}', "{", JSON.parse('{"__proto__":{"x":1}}')],
    ["no value", "{[", undefined],
  ])("PartialJson reads %j", (text, opensWith, value) => {
    expect(parsed([text], opensWith)).toEqual(value);
  });
});
