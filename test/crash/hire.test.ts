import { expect, test } from "vitest";
import type { Death } from "../../src/testing/index.ts";
import { preemptionProblems, promptProblems, sharedCapProblems } from "./hire-kills.ts";

const points: readonly Death[] = [
  // The prompt is recorded, and was not sent.
  { at: 10, when: "after" },
  // A request is reserved, and has not left.
  { at: 12, when: "after" },
  // The command may have been executed.
  { at: 14, when: "before" },
];

test("SQLite, B3, J6: a hired agent's prompt has its effect once if its process is killed, and is sent again only with an event", async () => {
  expect(await promptProblems(points)).toEqual([]);
});

test("SQLite, B7: two processes with hired agents under one cap are billed at most the cap if one of them is killed", async () => {
  expect(await sharedCapProblems([{ at: 16, when: "after" }])).toEqual([]);
});

test("SQLite, H2, J6: two processes whose hired agents lose their seats execute each command once if one is killed", async () => {
  expect(await preemptionProblems([{ at: 20, when: "after" }])).toEqual([]);
});
