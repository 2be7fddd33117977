import { expect, test } from "vitest";
import { workedMs } from "./idle.ts";

test("the working time of a run leaves out waits, a wait in progress, and crashes after its start", () => {
  const waits = [
    { seq: 1, at: 500, lastAt: 100 },
    { seq: 9, at: 4_000, lastAt: 1_500 },
  ];
  const recoveries = [{ isCrash: true, at: 5_000, lastAt: 4_500 }] as unknown as Parameters<
    typeof workedMs
  >[0]["recoveries"];
  const view = { waits, recoveries };
  expect(workedMs(view, 1_000, 6_000, null)).toBe(2_000);
  expect(workedMs(view, 1_000, 6_000, 5_500)).toBe(1_500);
});
