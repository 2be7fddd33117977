import { expect, test } from "vitest";
import { rootTaskId } from "../../../src/kernel/index.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import { stepAt, type StepView } from "../../../src/surfaces/view/step-log.ts";
import { againWords, isBadEnd, outcomeWords, stepName, stepResult } from "./step-words.ts";

function step(change: Partial<StepView>): StepView {
  return {
    taskId: rootTaskId,
    kind: "model",
    name: "stage/sonnet-5",
    id: "",
    about: "",
    startSeq: 1,
    callSeq: 1,
    startAt: 1,
    endSeq: 9,
    endAt: 9,
    outcome: "ok",
    isAgain: false,
    edited: null,
    tokens: 0,
    costUsd: 0.02,
    ...change,
  };
}

const noFork = { forkedFrom: null };

test("the page's words for a step in a replay say only that it is in flight, even if the step fails later", () => {
  const failed = step({ kind: "tool", name: "note", outcome: "error" });
  expect([stepResult(failed, noFork), isBadEnd(failed)]).toEqual(["failed", true]);
  const then = stepAt(failed, 8) as StepView;
  expect([stepResult(then, noFork), isBadEnd(then)]).toEqual(["in flight", false]);
});

test("the page's words for a hand-off name the child that works, and never say that it is in flight", () => {
  const hired = step({ kind: "tool", name: "handoff_build", endSeq: null, outcome: null });
  expect([stepName(hired, null), stepResult(hired, noFork)]).toEqual(["hires build", "works"]);
});

test("the page's words for a cancelled call do not name a crash, and those for a refused call no price", () => {
  expect(outcomeWords(step({ outcome: "cut" }), noFork)).toBe("stopped before it answered, charged in full");
  expect(outcomeWords(step({ outcome: "lost" }), noFork)).toBe(
    "no answer because of the crash, charged in full",
  );
  expect(stepResult(step({ outcome: "refused", costUsd: 0 }), noFork)).toBe("not made");
  const fork = { forkedFrom: { at: 100 } } as Pick<RunView, "forkedFrom">;
  expect(stepResult(step({ outcome: "refused", costUsd: 0 }), fork)).toBe("not made");
  expect(stepResult(step({}), fork)).toBe("free");
  expect(stepName(step({ isAgain: true }), null)).toBe("sonnet-5, asked again");
});

test("the page's words for a repeated call say why: a crash, a take-over, a fork or a failure", () => {
  const again = step({ isAgain: true, startSeq: 5 });
  const title = (recoveries: readonly object[], forkedFrom: object | null = null): string | undefined =>
    againWords(again, { recoveries, forkedFrom } as never)?.title;
  expect(title([{ seq: 4, lost: 1, isCrash: true, lostOwner: "worker-a" }])).toBe(
    "Asked again after the crash",
  );
  expect(title([{ seq: 4, lost: 1, isCrash: false, owner: "worker-b" }])).toBe(
    "Asked again by another worker",
  );
  expect(title([], { at: 4 })).toBe("Asked again in the fork");
  expect(title([])).toBe("Asked again after a failure");
  expect(againWords(step({}), { recoveries: [], forkedFrom: null })).toBeNull();
});
