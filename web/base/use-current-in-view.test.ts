import { expect, test } from "vitest";
import { scrollToFit } from "./use-current-in-view.ts";

const frame = { left: 10, right: 110 };

test("a strip of the page does not scroll while the current item is in view", () => {
  expect(scrollToFit(frame, { left: 10, right: 110 })).toBe(0);
});

test("a strip of the page scrolls as far as needed to show an item at either side", () => {
  expect(scrollToFit(frame, { left: -30, right: 20 })).toBe(-40);
  expect(scrollToFit(frame, { left: 100, right: 149.2 })).toBe(40);
});

test("a strip of the page shows the start of an item that is longer than the strip", () => {
  expect(scrollToFit(frame, { left: 60, right: 360 })).toBe(50);
});
