import { expect, test } from "vitest";
import { HistoryRetention, parseHistoryRetention } from "../../../src/kernel/index.ts";

test("the retentions are those of the seeds", () => {
  expect(HistoryRetention).toEqual({ NONE: "none", RUN: "run", PERMANENT: "permanent" });
});

test.each(Object.values(HistoryRetention))("%s is read as itself", (retention) => {
  expect(parseHistoryRetention(retention)).toBe(retention);
});

test.each([
  ["forever", `invalid history retention "forever": expected one of none, run, permanent`],
  ["RUN", `invalid history retention "RUN": expected one of none, run, permanent`],
  ["", `invalid history retention "": expected one of none, run, permanent`],
  [undefined, "invalid history retention undefined: expected one of none, run, permanent"],
  [{}, "invalid history retention an object: expected one of none, run, permanent"],
])("%j is refused with those there are", (value, message) => {
  expect(() => parseHistoryRetention(value)).toThrow(
    expect.objectContaining({ code: "invalid_argument", message }),
  );
});

test("the table of retentions is frozen", () => {
  expect(() => Object.assign(HistoryRetention, { RUN: "forever" })).toThrow(TypeError);
});
