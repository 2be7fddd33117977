import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import type { RunSummary, Schedule, Store } from "../../src/kernel/index.ts";
import { sha256, storedSchedules, systemClock } from "../../src/runtime/index.ts";
import { sqliteStore } from "../../src/runtime/stores/sqlite/store.ts";
import { WorkerProcess } from "../../src/testing/index.ts";
import { cronReader } from "../../src/capabilities/schedules/cron-reader.ts";
import { isFull } from "../effort.ts";

const script = new URL("schedule-worker.mjs", inject("crashWorkers"));

/** Number of single fires and the time between two of them: 4 seconds, and a minute with `npm run test:full`. */
const [singles, everyMs] = isFull ? [120, 500] : [16, 250];

function schedulesOf({ records }: Store): ReturnType<typeof storedSchedules> {
  return storedSchedules({ records, clock: systemClock, hash: sha256, cron: async () => cronReader });
}

async function runsOf({ journal }: Store, schedule: string): Promise<readonly RunSummary[]> {
  return (await journal.list({ metadata: { schedule }, limit: 500 })).runs;
}

/** Resolves when all these schedules have ended and their runs too. Checks again after each write to the store. */
async function untilDone(store: Store, names: readonly string[]): Promise<void> {
  const done = Promise.withResolvers<void>();
  const isDone = async (): Promise<boolean> => {
    const schedules = await schedulesOf(store).list();
    const open = schedules.filter(({ name, status }) => names.includes(name) && status !== "done");
    if (open.length > 0) return false;
    const { runs } = await store.journal.list({ status: ["pending", "running", "waiting"], limit: 500 });
    return runs.every(({ metadata }) => !names.some((name) => metadata["schedule"] === name));
  };
  const lookAfter = async (before: Promise<void>): Promise<void> => {
    await before;
    try {
      if (await isDone()) done.resolve();
    } catch (error) {
      done.reject(error);
    }
  };
  let looking = Promise.resolve();
  const look = (): void => {
    looking = lookAfter(looking);
  };
  const forget = store.onChange(look);
  look();
  await done.promise;
  forget();
  await looking;
}

test("T1: three processes that are killed again and again start one run for every fire", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-schedules-"));
  const file = join(folder, "store.db");
  const store = await sqliteStore({ path: file, hash: sha256, watchEveryMs: 20 });
  const workers = new Map<string, WorkerProcess>();
  const kills: string[] = [];
  const failures: string[] = [];
  const end = new AbortController();
  /** Starts a worker again each time it dies. Its processes end at different writes, before or after them. */
  const keepStarting = async (caller: string, offset: number): Promise<void> => {
    for (let life = 0; !end.signal.aborted; life++) {
      const at = 3 + ((life * 5 + offset * 4) % 13);
      const death = { at, when: life % 2 === 0 ? "before" : "after" } as const;
      const orders = { file, workload: "schedules", data: null, death, server: { url: "", caller } };
      const worker = WorkerProcess.start(script, orders, join(folder, "compiled"));
      workers.set(caller, worker);
      const outcome = await worker.ended;
      if (outcome.kind === "killed") kills.push(outcome.write);
      else if (!end.signal.aborted) failures.push(JSON.stringify(outcome));
    }
  };
  const lives: Promise<void>[] = [];
  onTestFinished(async () => {
    end.abort();
    for (const worker of workers.values()) worker.signal("SIGKILL");
    await Promise.all(lives);
    await store.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  const schedules = schedulesOf(store);
  const start = Date.now() + 1_000;
  const created: Schedule[] = [];
  for (let index = 0; index < singles; index++)
    created.push(
      await schedules.create({
        name: `single-${index}`,
        agent: "porter",
        input: index,
        at: start + index * everyMs,
      }),
    );
  await schedules.create({
    name: "steady",
    agent: "porter",
    input: null,
    everyMs: 1_000,
    startAt: start,
    overlap: "queue",
  });
  for (const [offset, caller] of ["a", "b", "c"].entries()) lives.push(keepStarting(caller, offset));
  await untilDone(
    store,
    created.map(({ name }) => name),
  );

  for (const { name, times } of created) {
    const runs = await runsOf(store, name);
    expect([name, runs.map(({ status, metadata }) => ({ status, at: metadata["fireAt"] }))]).toEqual([
      name,
      [{ status: "completed", ...times }],
    ]);
  }
  const steady = (await runsOf(store, "steady")).map(({ metadata }) => Number(metadata["fireAt"]));
  expect(steady.length).toBeGreaterThan(0);
  expect(new Set(steady).size).toBe(steady.length);
  expect(steady.filter((at) => (at - start) % 1_000 !== 0)).toEqual([]);
  // The workers died in the middle of fires, and for no other reason. The steady schedule fires until they have.
  const died = (at: string): boolean => kills.some((write) => write.includes(at));
  await expect.poll(() => died("records.put schedules") && died("journal.create")).toBe(true);
  expect(failures).toEqual([]);
});
