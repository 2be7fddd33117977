import { expect, test } from "vitest";
import { lineDiff, partIn } from "./line-diff.ts";

function many(mark: string): string {
  return Array.from({ length: 1_200 }, (_each, at) => `${mark}${at}`).join("\n");
}

test("a diff on the page shows three unchanged lines around a change, and those between two near changes", () => {
  const before = ["1", "2", "3", "4", "5", "6", "7", "8"].join("\n");
  expect(lineDiff(before, before)).toBe("");
  expect(lineDiff(before, before.replace("5", "five").replace("7", "seven"))).toBe(
    ["@@ -2 +2 @@", " 2", " 3", " 4", "-5", "+five", " 6", "-7", "+seven", " 8"].join("\n"),
  );
  expect(lineDiff("", "a\nb")).toBe(["@@ -1 +1 @@", "+a", "+b"].join("\n"));
});

test("a diff on the page of texts with very many lines replaces the middle as a whole", () => {
  const lines = lineDiff(`same\n${many("a")}`, `same\n${many("b")}`).split("\n");
  expect(lines).toHaveLength(2 + 2_400);
  expect(lines.slice(1, 4)).toEqual([" same", "-a0", "-a1"]);
});

test("a part of a text is found for an edit only if the text contains it once", () => {
  expect(partIn("a b c", "b")).toEqual({ before: "a ", after: " c" });
  expect([partIn("b b", "b"), partIn("a", "b"), partIn("a", ""), partIn("a", null)]).toEqual([
    null,
    null,
    null,
    null,
  ]);
});
