import { expect, test } from "vitest";
import { scrollToFit } from "./use-current-in-view.ts";

const frame = { left: 10, right: 110 };

test("a strip stays where it is while the item is in view", () => {
  expect(scrollToFit(frame, { left: 10, right: 110 })).toBe(0);
});

test("a strip scrolls as far as an item at either side needs", () => {
  expect(scrollToFit(frame, { left: -30, right: 20 })).toBe(-40);
  expect(scrollToFit(frame, { left: 100, right: 149.2 })).toBe(40);
});

test("a strip shows the start of an item that is longer than itself", () => {
  expect(scrollToFit(frame, { left: 60, right: 360 })).toBe(50);
});
