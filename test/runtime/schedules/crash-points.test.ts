import { expect, test } from "vitest";
import { dyingStore } from "../../../src/testing/dying-store.ts";
import { FakeClock, sequentialIds } from "../../../src/testing/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { settle } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";
import { hour, porter, runsOf } from "./bench.ts";

removeStoresAfterEach();

/**
 * Fires a schedule in a process that dies at a write, lets another process take over, and returns the fires of the
 * runs in hours.
 */
async function fireAndDie(
  open: Awaited<ReturnType<(typeof twoStores)[0][1]>>,
  death: { readonly at: number; readonly when: "before" | "after" },
) {
  const clock = new FakeClock();
  const start = clock.now();
  const life = { isDead: false };
  const options = { clock, pollMs: hour, onError: () => undefined, closeGraceMs: 0 };
  const creator = await createRuntime({ ...options, store: await open() });
  await creator.schedules.create({
    name: "rounds",
    agent: "porter",
    input: "go",
    everyMs: hour,
    missed: "all",
  });
  await creator.close();
  const survivor = await open();
  const writer = await open();
  const mortal = dyingStore(writer, {
    ...death,
    die: () => {
      life.isDead = true;
    },
  });
  const first = await createRuntime({ ...options, store: mortal, workerId: "a", ids: sequentialIds("a") });
  first.register(porter().agent);
  await clock.advance(hour);
  for (let round = 0; round < 20 && !life.isDead; round++) await settle();
  const diedFiring = life.isDead;
  // A process that has completed the fire dies afterwards.
  while (!life.isDead) await Promise.race([mortal.topics.apply([]), settle()]);
  await writer.leases.dismiss("a");
  const second = await createRuntime({ ...options, store: survivor, workerId: "b", ids: sequentialIds("b") });
  const worker = porter();
  second.register(worker.agent);
  // SQLite works outside the fake clock.
  const untilFired = async (count: number): Promise<void> => {
    const isFired = async (): Promise<boolean> =>
      (await second.schedules.get("rounds"))?.lastAt === start + count * hour &&
      (await runsOf(second, "rounds")).every(({ status }) => status === "completed");
    for (let round = 0; round < 50 && !(await isFired()); round++) await settle();
  };
  await untilFired(1);
  await clock.advance(hour);
  await untilFired(2);
  const runs = await runsOf(second, "rounds");
  await second.close();
  await writer.close();
  return { diedFiring, fires: runs.map(({ metadata }) => (Number(metadata["fireAt"]) - start) / hour) };
}

test.each(twoStores)(
  "T1: a process that dies at any write of a schedule's fire neither loses nor doubles the fire (%s)",
  async (_name, prepare) => {
    let writes = 0;
    for (const when of ["before", "after"] as const)
      // The first write registers the worker, before the runtime is open.
      for (let at = 2, diedFiring = true; diedFiring; at++) {
        const end = await fireAndDie(await prepare(), { at, when });
        expect([when, at, end.fires]).toEqual([when, at, [1, 2]]);
        ({ diedFiring } = end);
        writes = at;
      }
    expect(writes).toBeGreaterThan(5);
  },
);
