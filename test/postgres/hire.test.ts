import { expect, inject, onTestFinished, test } from "vitest";
import { crashLease, crashServer } from "../crash/crash-store.ts";
import { preemptionProblems, promptProblems, sharedCapProblems } from "../crash/hire-kills.ts";
import { isFull } from "../effort.ts";
import { killedOnItsMachine, onItsMachine } from "../hire/two-machines.ts";

process.env[crashServer] = inject("postgresUrl");

test("PostgreSQL, B3, J6: a prompt of a hired agent whose process is killed around its writes has its effect once, is sent again only with an event, and is billed at most what is spent", async () => {
  expect(await promptProblems([{ at: 14, when: "before" }])).toEqual([]);
});

// In `npm test` the others run on SQLite.
test.runIf(isFull)(
  "PostgreSQL, B7: two processes with hired agents under one cap are billed at most the cap in all when one of them is killed around its writes",
  async () => {
    expect(await sharedCapProblems([{ at: 9, when: "after" }])).toEqual([]);
  },
);

test.runIf(isFull)(
  "PostgreSQL, H2, J6: two processes with hired agents that lose their seats are billed at most what is spent, and each command has its effect once, when one of them is killed around its writes",
  async () => {
    expect(await preemptionProblems([{ at: 24, when: "after" }])).toEqual([]);
  },
);

test.runIf(isFull)(
  "PostgreSQL, L21: a run of a hired agent whose machine has no worker waits for it, and continues only there",
  async () => {
    // A busy machine that sends no heartbeat for a second would start a third attempt.
    process.env[crashLease] = "6000";
    onTestFinished(() => void delete process.env[crashLease]);
    expect(await killedOnItsMachine()).toEqual(onItsMachine);
  },
);
