import { expect, test } from "vitest";
import { HistoryRetention, parseHistoryRetention } from "../../../src/kernel/index.ts";

test("HistoryRetention has the values none, run and permanent", () => {
  expect(HistoryRetention).toEqual({ NONE: "none", RUN: "run", PERMANENT: "permanent" });
});

test.each(Object.values(HistoryRetention))("the history retention %s is parsed as itself", (retention) => {
  expect(parseHistoryRetention(retention)).toBe(retention);
});

test.each([
  ["forever", `invalid history retention "forever": expected one of none, run, permanent`],
  ["RUN", `invalid history retention "RUN": expected one of none, run, permanent`],
  ["", `invalid history retention "": expected one of none, run, permanent`],
  [undefined, "invalid history retention undefined: expected one of none, run, permanent"],
  [{}, "invalid history retention an object: expected one of none, run, permanent"],
])("the invalid history retention %j is refused, and the error lists the valid values", (value, message) => {
  expect(() => parseHistoryRetention(value)).toThrow(
    expect.objectContaining({ code: "invalid_argument", message }),
  );
});

test("HistoryRetention is frozen", () => {
  expect(() => Object.assign(HistoryRetention, { RUN: "forever" })).toThrow(TypeError);
});
