import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import {
  eventDraft,
  noUsage,
  type EventDraft,
  type RunHandle,
  type Store,
} from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { placed, runRecord } from "../../../src/testing/contracts/store-fixtures.ts";
import { delta, spend } from "../../../src/testing/contracts/usage-fixtures.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
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

it("the figures of a run on the server have its agents, steps, cost and budget, and leave out unknown runs", async () => {
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

it("the figures of a fork on the server count the steps that it shares with its origin as free", async () => {
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

it("a token of a tenant cannot read figures of runs of others from the server", async () => {
  const run = (await server.runtime.list()).runs[0];
  const token = await server.tokenOf("acme", "read");
  const { json } = await server.call("GET", `/api/figures?runId=${run?.runId ?? ""}`, { token });
  expect(json["figures"]).toEqual([]);
});

it("what a run in progress has spent counts on its day before the run waits or ends", async () => {
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

it("the server's facts contain the spending of each of the last 24 hours for the caller's tenant", async () => {
  const now = Date.UTC(2026, 10, 16, 8, 30);
  const own = await startServer([], {
    store: memoryStore({ hash: sha256 }),
    runtimeOptions: { clock: new FakeClock(now) },
  });
  onTestFinished(() => own.close());
  const spent = (day: string, hour: number, costUsd: number) =>
    delta({ day, hour, turns: 1, nanoUsd: costUsd * 1e9 });
  await spend(own.store, "a", [
    spent("2026-11-15", 8, 1),
    spent("2026-11-15", 9, 2),
    spent("2026-11-16", 5, 4),
  ]);
  await spend(own.store, "b", [spent("2026-11-16", 8, 8)], { tenantId: "acme" });
  const hours = async (token: string): Promise<readonly number[]> => {
    const { json } = await own.call("GET", "/api/facts", { token });
    const list = json["spendByHour"] as unknown as readonly { readonly costUsd: number }[];
    expect(list).toHaveLength(24);
    return list.flatMap(({ costUsd }, at) => (costUsd > 0 ? [at, costUsd] : []));
  };
  expect(await hours(own.admin)).toEqual([0, 2, 20, 4, 23, 8]);
  expect(await hours(await own.tokenOf("acme", "read"))).toEqual([23, 8]);
});

/** Stores a run that ended after its first worker had died with a recorded call of $0.25. */
async function storeRecovered(store: Store, name: string): Promise<string> {
  const at = Date.now();
  const record = { ...runRecord(name), createdAt: at };
  const { runId } = record;
  await store.journal.create(record, { number: 0, at });
  await store.leases.enlist("dies");
  await store.leases.seize(runId, "dies");
  await store.leases.dismiss("dies");
  await store.leases.enlist("lives");
  const [lease] = await store.leases.claim({ workerId: "lives", limit: 1, now: at });
  if (lease === undefined) throw new Error("the run of the dead worker was not claimed");
  const usage = { ...noUsage, costUsd: 0.25 };
  const drafts = [
    eventDraft("message_end", { message: { role: "assistant", content: [] }, usage } as never),
    eventDraft("run_recover", { epoch: 2, recoveries: 1 }),
    eventDraft("run_end", { status: "completed", usage, costUsd: 0.25, turns: 1 } as never),
  ] as readonly EventDraft[];
  const events = drafts.map((draft, seq) => ({ ...placed(runId, seq, draft), at }));
  await store.journal.append(lease, { number: 1, at, events });
  await store.leases.release(lease, { kind: "ended" });
  return runId;
}

it("a second request for the server's facts lists no runs, and reads only the logs of runs that have changed", async () => {
  const own = await startServer([], { store: memoryStore({ hash: sha256 }) });
  onTestFinished(() => own.close());
  await storeRecovered(own.store, "crashed");
  const facts = async () => (await own.call("GET", "/api/facts")).json;
  expect(await facts()).toMatchObject({ replayedToday: 1, notPaidAgainTodayUsd: 0.25 });
  const [list, read] = [vi.spyOn(own.store.journal, "list"), vi.spyOn(own.store.events, "read")];
  expect(await facts()).toMatchObject({ replayedToday: 1 });
  expect([list.mock.calls.length, read.mock.calls.length]).toEqual([0, 0]);
  const again = await storeRecovered(own.store, "again");
  expect(await facts()).toMatchObject({ replayedToday: 2, notPaidAgainTodayUsd: 0.5 });
  expect(list.mock.calls.length).toBe(0);
  expect(new Set(read.mock.calls.map(([runId]) => runId))).toEqual(new Set([again]));
});
