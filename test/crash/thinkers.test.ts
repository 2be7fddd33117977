import { describe, expect, inject, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { messageText, userMessage } from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { runCrashes } from "../../src/testing/index.ts";
import { architectureCases } from "../agents/architecture-cases/index.ts";
import { failingFlowCases } from "../agents/architecture-cases/flows.ts";
import type { ArchitectureCase } from "../agents/architecture-cases/architecture-case.ts";
import { crashInProcess } from "./in-process.ts";
import { doWorkload } from "./do-workload.ts";
import { deathsAt, isFull } from "../effort.ts";
import { thinkerWorkloads } from "./thinker-workloads.ts";

describe.each(Object.entries({ ...architectureCases, ...failingFlowCases }))(
  "J1, J6, B1, B3, E1, E4, H1, H4: %s",
  (_name, thinker) => {
    test("a worker that dies before or after any write leaves a run that ends as it does without the crash", async () => {
      const report = await crashInProcess(thinker);
      expect(report.broken).toEqual([]);
      expect(report.outputs).toEqual([thinker.output]);
      const deaths = Array.from({ length: report.writes }, (_, index) => deathsAt(index + 1).length);
      expect(report.kills).toBe(deaths.reduce((sum, count) => sum + count, 0));
    });
  },
);

test("crashInProcess() reports calls that bypass the journal", async () => {
  const forgetful: ArchitectureCase = {
    agent: (outside) =>
      new Agent({
        name: "forgetful",
        architecture: {
          name: "forgetful",
          requiresModel: false,
          declaredWorkers: () => ({}),
          async *run(session, { ctx }) {
            for (const question of ["one", "two"]) {
              const messages = [userMessage(question)];
              session.output = messageText((await outside.model("main").generate({ messages })).message);
            }
            yield* [];
            await ctx.step("last", async () => null);
          },
        },
      }),
    input: "Go.",
    reply: ({ last }) => ({ text: last }),
    output: "two",
  };
  const { broken } = await crashInProcess(forgetful);
  expect(new Set(broken.map(({ promise }) => promise))).toEqual(new Set(["in_flight_only", "billed"]));
});

// Every eighth architecture is killed at one write, because the tests above kill each of them at every write. In `npm run
// test:full` each is killed at every fifth write. Timing decides whether a worker makes the last writes.
const inProcesses = Object.entries(thinkerWorkloads)
  .map(([name, workload], index) => ({ name, workload, index }))
  .filter(({ index }) => isFull || index % 8 === 0);
describe.each(inProcesses)(
  "J1, J6, B1, B3, E1, E4, H1, H4: $name",
  ({ name, workload: { world, outputs }, index }) => {
    test("a worker process that is killed leaves a run that ends as it does without the crash", async () => {
      const report = await runCrashes({
        worker: new URL("worker.mjs", inject("crashWorkers")),
        inProcess: doWorkload,
        open: (path) => sqliteStore({ path, hash: sha256 }),
        ...world,
        workload: name,
        when: ["after"],
        kills: (at, _when, kinds) =>
          isFull ? at % 5 === index % 5 : at === 1 + ((index * 3) % (kinds.length - 4)),
        lanes: 2,
      });
      expect(report).toMatchObject({ broken: [], outputs });
      expect(report.kills).toBeGreaterThan(0);
    });
  },
);
