import { expect, inject, test } from "vitest";
import { crashServer } from "../crash/crash-store.ts";
import { experimentProblems } from "../crash/experiment-kills.ts";
import { isFull } from "../effort.ts";

process.env[crashServer] = inject("postgresUrl");

// In `npm test` an experiment on SQLite is killed.
test.runIf(isFull)(
  "PostgreSQL, J6, B3: an experiment on two workers that are killed at random repeats at most the calls in flight, and has the results and the cost of an uninterrupted one",
  async () => {
    expect(await experimentProblems({ cases: 60, kills: 30, seed: 7 })).toEqual([]);
  },
);
