import { expect, test } from "vitest";
import { argumentOf, excerpt } from "../../../src/surfaces/view/excerpt.ts";

test("excerpt() returns one line of at most 80 characters", () => {
  expect(excerpt(" Two\n files ")).toBe("Two files");
  const long = excerpt("word ".repeat(100));
  expect([long.length, long.endsWith("…")]).toEqual([80, true]);
});

test("argumentOf() returns the most telling argument of a call, the only argument, or all of them", () => {
  expect(argumentOf({ limit: 5, path: "a.ts" })).toBe("a.ts");
  expect(argumentOf({ module: "b.ts" })).toBe("b.ts");
  expect(argumentOf({ limit: 5 })).toBe('{"limit":5}');
  expect(argumentOf({})).toBe("");
  expect(argumentOf("text")).toBe("text");
});
