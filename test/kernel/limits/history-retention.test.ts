import { expect, test } from "vitest";
import { HistoryRetention, parseHistoryRetention } from "../../../src/kernel/index.ts";

test("the retentions are those of the seeds", () => {
  expect(HistoryRetention).toEqual({ NONE: "none", RUN: "run", PERMANENT: "permanent" });
});

test.each(Object.values(HistoryRetention))("%s is read as itself", (retention) => {
  expect(parseHistoryRetention(retention)).toBe(retention);
});

test.each([
  ["forever", `"forever" is not a history retention: use none, run, permanent`],
  ["RUN", `"RUN" is not a history retention: use none, run, permanent`],
  ["", `"" is not a history retention: use none, run, permanent`],
  [undefined, "undefined is not a history retention: use none, run, permanent"],
  [{}, "an object is not a history retention: use none, run, permanent"],
])("%j is refused with those there are", (value, message) => {
  expect(() => parseHistoryRetention(value)).toThrow(
    expect.objectContaining({ code: "invalid_argument", message }),
  );
});

test("the table of retentions is frozen", () => {
  expect(() => Object.assign(HistoryRetention, { RUN: "forever" })).toThrow(TypeError);
});
