import { expect, test } from "vitest";
import { nextIn } from "./move-in-list.ts";

test("the keys J and K move by one line of a list, stay in the list, and start at its first or last line", () => {
  expect([nextIn(3, 0, 1), nextIn(3, 2, 1), nextIn(3, 1, -1), nextIn(3, 0, -1)]).toEqual([1, 2, 0, 0]);
  expect([nextIn(3, -1, 1), nextIn(3, -1, -1)]).toEqual([0, 2]);
  expect(nextIn(0, -1, 1)).toBe(0);
});
