import { expect, inject, onTestFinished, test } from "vitest";
import { crashLease, crashServer } from "../crash/crash-store.ts";
import { preemptionProblems, promptProblems, sharedCapProblems } from "../crash/hire-kills.ts";
import { isFull } from "../effort.ts";
import { killedOnItsMachine, onItsMachine } from "../hire/two-machines.ts";

process.env[crashServer] = inject("postgresUrl");

test("PostgreSQL, B3, J6: a hired agent's prompt has its effect once if its process is killed, and is resent only with an event", async () => {
  expect(await promptProblems([{ at: 14, when: "before" }])).toEqual([]);
});

// In `npm test` the others run on SQLite.
test.runIf(isFull)(
  "PostgreSQL, B7: two processes with hired agents under one cap are billed at most the cap if one of them is killed",
  async () => {
    expect(await sharedCapProblems([{ at: 9, when: "after" }])).toEqual([]);
  },
);

test.runIf(isFull)(
  "PostgreSQL, H2, J6: two processes whose hired agents lose their seats execute each command once if one is killed",
  async () => {
    expect(await preemptionProblems([{ at: 24, when: "after" }])).toEqual([]);
  },
);

test.runIf(isFull)(
  "PostgreSQL, L21: a run of a hired agent whose machine has no worker waits for the machine, and continues only there",
  async () => {
    // A busy machine that sends no heartbeat for a second would start a third attempt.
    process.env[crashLease] = "6000";
    onTestFinished(() => void delete process.env[crashLease]);
    expect(await killedOnItsMachine()).toEqual(onItsMachine);
  },
);
