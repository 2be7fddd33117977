import { expect, test } from "vitest";
import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import { timeScale } from "../../../model/time/time-scale.ts";
import { budgetLabels } from "./tracks.tsx";

const scale = timeScale({ startedAt: 0, recoveries: [], forkedFrom: null }, 1_000, 1_000, 0.1);

test("each label of the budget in the page's timeline stands where the line has the value of the label", () => {
  const topUps = [{ at: 600, seq: 5, value: 0.3 }];
  expect(budgetLabels(0.51, topUps, scale)).toEqual([
    { left: 4, text: "budget $0.21", value: 0.51 - 0.3 },
    { left: 604, text: "budget $0.51", value: 0.51 },
  ]);
  expect(budgetLabels(0.51, [], scale)).toEqual([{ left: 4, text: "budget $0.51", value: 0.51 }]);
  expect(budgetLabels(null, [], scale)).toEqual([]);
});

test("the page's timeline leaves out the label of the first budget if the first top-up leaves no room for it", () => {
  const topUps = [{ at: 20, seq: 5, value: 1 }];
  expect(budgetLabels(2, topUps, scale)).toEqual([{ left: 24, text: "budget $2.00", value: 2 }]);
});

test("a budget label that would cover the shortened time of a crash stands after it, inside the plot", () => {
  const crash = { seq: 7, lastAt: 650, at: 900, isCrash: true };
  const view = { startedAt: 0, recoveries: [crash], forkedFrom: null } as unknown as RunView;
  const folded = timeScale(view, 1_250, 1_000, 0.1);
  const [fold] = folded.folds;
  const labels = budgetLabels(0.51, [{ at: 620, seq: 5, value: 0.3 }], folded);
  expect(labels.at(-1)?.left).toBe((fold?.x ?? 0) + (fold?.width ?? 0) + 4);
  const late = budgetLabels(0.51, [{ at: 1_240, seq: 9, value: 0.3 }], folded);
  expect(late.at(-1)?.left).toBeCloseTo(folded.x({ at: 1_240, seq: 9 }) - 4 - 104);
});

test("a budget label without room after its top-up and the shortened time behind it stands before the top-up", () => {
  const crash = { seq: 7, lastAt: 750, at: 900, isCrash: true };
  const view = { startedAt: 0, recoveries: [crash], forkedFrom: null } as unknown as RunView;
  const narrow = timeScale(view, 1_150, 358, 0.12);
  const topUp = { at: 680, seq: 5, value: 0.3 };
  const labels = budgetLabels(0.51, [topUp], narrow);
  expect(labels.at(-1)?.left).toBeCloseTo(narrow.x(topUp) - 4 - 104);
});
