import { expect, test } from "vitest";
import { timeScale } from "../run/time-scale.ts";
import { allowanceLabels } from "./allowance-labels.ts";

const scale = timeScale({ startedAt: 0, recoveries: [], forkedFrom: null }, 1_000, 1_000, 0.1);

test("each label of the allowance stands where the line has its value", () => {
  const topUps = [{ at: 600, seq: 5, value: 0.3 }];
  expect(allowanceLabels(0.51, topUps, scale)).toEqual([
    { left: 4, text: "allowance $0.21", value: 0.51 - 0.3 },
    { left: 604, text: "allowance $0.51", value: 0.51 },
  ]);
  expect(allowanceLabels(0.51, [], scale)).toEqual([{ left: 4, text: "allowance $0.51", value: 0.51 }]);
  expect(allowanceLabels(null, [], scale)).toEqual([]);
});

test("the label of the first allowance is left out if the first top-up leaves no room for it", () => {
  const topUps = [{ at: 20, seq: 5, value: 1 }];
  expect(allowanceLabels(2, topUps, scale)).toEqual([{ left: 24, text: "allowance $2.00", value: 2 }]);
});
