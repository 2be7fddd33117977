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

test("SQLite, B3, J6: a prompt of a hired agent whose process is killed around its writes has its effect once, is sent again only with an event, and is billed at most what is spent", async () => {
  expect(await promptProblems(points)).toEqual([]);
});

test("SQLite, B7: two processes with hired agents under one cap are billed at most the cap in all when one of them is killed around its writes", async () => {
  expect(await sharedCapProblems([{ at: 16, when: "after" }])).toEqual([]);
});

test("SQLite, H2, J6: two processes with hired agents that lose their seats are billed at most what is spent, and each command has its effect once, when one of them is killed around its writes", async () => {
  expect(await preemptionProblems([{ at: 20, when: "after" }])).toEqual([]);
});
