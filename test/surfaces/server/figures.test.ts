import { afterAll, beforeAll, expect, it } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import type { RunHandle } from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { startServer, type TestServer } from "./test-server.ts";

let server: TestServer;
const held = Promise.withResolvers<void>();
const released = Promise.withResolvers<void>();

beforeAll(async () => {
  const model = scriptedModel(["One.", "Two."]);
  const clerk = new Agent({ name: "clerk", model, budget: { maxCostUsd: 2 } });
  const prices = { find: () => ({ inputUsd: 1e-3, outputUsd: 1e-3 }) };
  const reader = new Agent({
    name: "reader",
    model: scriptedModel([{ toolCalls: [{ name: "hold", input: {} }] }, "Done."]),
    tools: [
      tool({
        name: "hold",
        description: "Waits for the test.",
        inputSchema: { type: "object" },
        execute: async () => {
          held.resolve();
          await released.promise;
          return "Free.";
        },
      }),
    ],
  });
  server = await startServer([clerk, reader], {
    store: memoryStore({ hash: sha256 }),
    runtimeOptions: { prices },
  });
});
afterAll(() => server.close());

async function start(input: string, agent = "clerk"): Promise<RunHandle> {
  const { json } = await server.call("POST", "/api/runs", { body: { agent, input } });
  const { runId } = json["run"] as { readonly runId: string };
  const run = await server.runtime.find(runId);
  if (run === undefined) throw new Error(`the server has no run ${runId}`);
  return run;
}

it("the figures of a run have its agents, steps, cost and allowance, and unknown runs are left out", async () => {
  const run = await start("Report.");
  const { costUsd } = await run.result();
  const { json } = await server.call("GET", `/api/figures?runId=${run.runId}&runId=run_unknown`);
  expect(json["figures"]).toEqual([
    {
      runId: run.runId,
      events: expect.any(Number),
      agents: 1,
      liveAgents: 0,
      steps: 1,
      freeSteps: 0,
      forkedFrom: null,
      costUsd,
      maxCostUsd: 2,
      maxTokens: null,
      maxTurns: null,
      deadlineMs: null,
      lostUsd: 0,
      failure: null,
      heldUsd: 0,
      crashes: [],
    },
  ]);
});

it("the steps that a fork shares with its origin are free in its figures", async () => {
  const run = await start("Report again.");
  await run.result();
  let last = 0;
  for await (const event of run.events({ follow: false })) if ("seq" in event) last = event.seq;
  const fork = await run.fork({ at: last, runId: "run_copy" });
  await fork.result();
  const { json } = await server.call("GET", "/api/figures?runId=run_copy");
  expect(json["figures"]).toMatchObject([
    { steps: 0, freeSteps: 1, costUsd: 0, forkedFrom: { runId: run.runId, at: last } },
  ]);
  expect((await server.call("GET", "/api/facts")).json).toMatchObject({
    capPerDayUsd: null,
    hostedAgents: 2,
    live: 0,
    liveAgents: 0,
    replayedToday: 0,
    notPaidAgainTodayUsd: 0,
  });
});

it("a token of a tenant reads no figures of other runs", async () => {
  const run = (await server.runtime.list()).runs[0];
  const token = await server.tokenOf("acme", "read");
  const { json } = await server.call("GET", `/api/figures?runId=${run?.runId ?? ""}`, { token });
  expect(json["figures"]).toEqual([]);
});

it("what a working run has spent counts on its day before the run waits or ends", async () => {
  const spent = async (): Promise<number> =>
    (await server.call("GET", "/api/facts")).json["spentTodayUsd"] as number;
  const before = await spent();
  const run = await start("Read.", "reader");
  await held.promise;
  const during = await spent();
  const { json: facts } = await server.call("GET", "/api/facts");
  expect(facts["unrecordedUsd"]).toBeCloseTo(during - before, 9);
  released.resolve();
  const { costUsd } = await run.result();
  expect([during > before, during < before + (costUsd ?? 0)]).toEqual([true, true]);
  expect(await spent()).toBeCloseTo(before + (costUsd ?? 0), 9);
});
