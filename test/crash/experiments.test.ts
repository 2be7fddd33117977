import { expect, test } from "vitest";
import { casesOf } from "../effort.ts";
import { experimentProblems } from "./experiment-kills.ts";

test("SQLite, J6, B3: an experiment on two workers that are killed at random repeats at most the calls in flight, and has the results and the cost of an uninterrupted one", async () => {
  expect(await experimentProblems({ cases: casesOf(60, 12), kills: casesOf(30, 2), seed: 11 })).toEqual([]);
});
