import { expect, inject, test } from "vitest";
import { crashServer } from "../crash/crash-store.ts";
import { experimentProblems } from "../crash/experiment-kills.ts";
import { isFull } from "../effort.ts";

process.env[crashServer] = inject("postgresUrl");

// In `npm test` an experiment on SQLite is killed.
test.runIf(isFull)(
  "PostgreSQL, J6, B3: an experiment whose two workers are killed at random has the results and cost of an undisturbed one",
  async () => {
    expect(await experimentProblems({ cases: 60, kills: 30, seed: 7 })).toEqual([]);
  },
);
