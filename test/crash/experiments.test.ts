import { expect, test } from "vitest";
import { casesOf } from "../effort.ts";
import { experimentProblems } from "./experiment-kills.ts";

test("SQLite, J6, B3: an experiment whose two workers are killed at random has the results and cost of an undisturbed one", async () => {
  expect(await experimentProblems({ cases: casesOf(60, 12), kills: casesOf(30, 2), seed: 11 })).toEqual([]);
});
