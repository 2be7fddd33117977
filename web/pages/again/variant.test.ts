import { expect, test } from "vitest";
import type { StepView } from "../../../src/surfaces/view/step-log.ts";
import { doneFrom, proposedLimit } from "./variant.ts";

const call = (startSeq: number, costUsd: number | null): StepView =>
  ({ kind: "model", startSeq, costUsd, tokens: 10 }) as StepView;

test("the page calls the cost of a run from a turn on unknown if a model in it has no known price", () => {
  expect(doneFrom([call(1, null), call(5, 0.02), call(9, 0.03)], 5).costUsd).toBeCloseTo(0.05);
  expect(doneFrom([call(5, 0.02), call(9, null)], 5)).toMatchObject({ costUsd: null, tokens: 20 });
});

test("the proposed limit of a variant on the page covers what was recorded, and is absent without a known price", () => {
  expect([0, 0.1, 0.253, 12].map(proposedLimit)).toEqual(["0.20", "0.20", "0.38", "18.00"]);
  expect(proposedLimit(null)).toBe("");
});
