import { expect, test } from "vitest";
import { formatRunId, maxScoreHistory, maxScores, type RunScore } from "../../../src/kernel/index.ts";
import { checkRoom } from "../../../src/runtime/stores/score-check.ts";

const runId = formatRunId("a");
const score = { name: "thumbs", value: 1, by: "ann", comment: null, at: 1 };

test("Z6: a run that has been scored maxScoreHistory times accepts no other score, not even one that would replace another", () => {
  const counting: readonly RunScore[] = [{ name: "thumbs", value: 0, by: "ann", at: 0 }];
  expect(checkRoom(runId, score, counting, maxScoreHistory - 1)).toEqual([
    { name: "thumbs", value: 1, by: "ann", at: 1 },
  ]);
  expect(() => checkRoom(runId, score, counting, maxScoreHistory)).toThrow(
    "run run_a has been scored 1000 times, the maximum",
  );
});

test("Z6: the scores that count stay sorted by name and author", () => {
  const others = ["bob", "al"].map((by) => ({ name: "thumbs", value: 0, by, at: 0 }));
  const next = checkRoom(runId, { ...score, name: "exact" }, others, 2);
  expect(next.map(({ name, by }) => `${name} ${by}`)).toEqual(["exact ann", "thumbs al", "thumbs bob"]);
  expect(next.length).toBeLessThan(maxScores);
});
