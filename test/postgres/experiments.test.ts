import { expect, inject, test } from "vitest";
import { crashServer } from "../crash/crash-store.ts";
import { experimentProblems } from "../crash/experiment-kills.ts";
import { casesOf } from "../effort.ts";

process.env[crashServer] = inject("postgresUrl");

test("PostgreSQL, J6, B3: an experiment on two workers that are killed at random repeats at most the calls in flight, and has the results and the cost of an uninterrupted one", async () => {
  expect(await experimentProblems({ cases: casesOf(60, 12), kills: casesOf(30, 2), seed: 7 })).toEqual([]);
});
