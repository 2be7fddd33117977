import {
  addDays,
  latencyList as counts,
  startOfDay,
  usageHoursKeptDays,
  type Commit,
  type UsageQuery,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { costs, day, delta, held, ownRunOf, request, spend } from "./usage-fixtures.ts";

/** U9: tests of the totals by hour. */
export function usageHoursContract({ test, expect, open, reopen }: ContractHarness): void {
  test("U9: usage with an hour counts once for its day and once for its hour, in every connection", async () => {
    const store = await open();
    const lease = await ownRunOf(store, "a");
    const commit: Commit = {
      number: 1,
      at: 2,
      usage: [
        delta({ hour: 0, turns: 2, nanoUsd: 1e9, runs: 1, latency: { b3: 1, b24: 1 } }),
        delta({ hour: 23, turns: 1, nanoUsd: 2e9, failedCalls: 2, latency: { b3: 1 } }),
        delta({ hour: 23, failedRuns: 1 }),
        delta({ nanoUsd: 4e9 }),
      ],
    };
    await store.journal.append(lease, commit);
    await store.journal.append(lease, commit);
    for (const each of [store, await reopen()]) {
      expect(await costs(each, { by: "day" })).toEqual([[day, 7]]);
      expect(await costs(each, { by: "hour" })).toEqual([
        [`${day}T00`, 1],
        [`${day}T23`, 2],
      ]);
      const details = { isComplete: true, runs: 1, failedRuns: 1, calls: 3, failedCalls: 2 };
      const [row] = await each.usage.sum({ by: "day" });
      expect(row?.details).toEqual({ ...details, latency: counts({ b3: 2, b24: 1 }) });
      const [, late] = await each.usage.sum({ by: "hour" });
      expect(late?.details).toEqual({ ...details, runs: 0, calls: 1, latency: counts({ b3: 1 }) });
    }
  });

  test("U9: sum() over a range of hours returns hours, and the option step splits the rows of each key by time", async () => {
    const store = await open();
    await spend(
      store,
      "a",
      [
        delta({ hour: 22, nanoUsd: 1e9 }),
        delta({ hour: 23, nanoUsd: 2e9 }),
        delta({ day: "2026-11-17", hour: 0, nanoUsd: 4e9 }),
        delta({ day: "2026-11-17", hour: 0, agent: "lead", nanoUsd: 8e9 }),
        delta({ day: "2026-11-17", hour: 1, nanoUsd: 16e9 }),
      ],
      { userId: "ann" },
    );
    const night = { from: `${day}T23`, to: "2026-11-17T00" };
    expect(await costs(store, { by: "agent", ...night })).toEqual([
      ["lead", 8],
      ["scout", 6],
    ]);
    expect(await costs(store, { by: "day", ...night })).toEqual([
      [day, 2],
      ["2026-11-17", 12],
    ]);
    expect(await costs(store, { by: "hour", from: "2026-11-17", to: "2026-11-17" })).toEqual([
      ["2026-11-17T00", 12],
      ["2026-11-17T01", 16],
    ]);
    const split = async (query: UsageQuery): Promise<unknown[]> =>
      (await store.usage.sum(query)).map(({ key, at, costUsd }) => [key, at, costUsd]);
    expect(await split({ by: "agent", per: "day" })).toEqual([
      ["lead", "2026-11-17", 8],
      ["scout", day, 3],
      ["scout", "2026-11-17", 20],
    ]);
    expect(await split({ by: "user", per: "hour", ...night, agent: "scout" })).toEqual([
      ["ann", `${day}T23`, 2],
      ["ann", "2026-11-17T00", 4],
    ]);
  });

  test("U9: a correction of usage lowers the hour of its call, and caps count each call once", async () => {
    const store = await open();
    const lease = await ownRunOf(store, "a");
    const lost = { hour: 5, lostCalls: 1, lostTokens: 9, lostNanoUsd: 9, nanoUsd: 9, failedCalls: 1 };
    await store.journal.append(lease, { number: 1, at: 2, usage: [delta(lost)] });
    const corrected = { hour: 5, lostCalls: -1, lostTokens: -9, lostNanoUsd: -9, nanoUsd: -3 };
    await store.journal.append(lease, { number: 2, at: 3, usage: [delta(corrected)] });
    const [row] = await store.usage.sum({ by: "hour" });
    expect([row?.key, row?.costUsd, row?.details?.failedCalls]).toEqual([`${day}T05`, 6e-9, 1]);
    const other = await ownRunOf(store, "b");
    expect(await store.usage.draw(other, request(94, { perDayUsd: 100 }))).toEqual(held(94));
  });

  test("U9: hours are deleted when they are no longer kept, days stay, and a late correction brings no hour back", async () => {
    const store = await open();
    const lease = await ownRunOf(store, "a");
    const at = startOfDay(day);
    const old = addDays(day, -usageHoursKeptDays - 1);
    const kept = addDays(day, -usageHoursKeptDays);
    const before = startOfDay(old);
    const usage = [delta({ day: old, hour: 23, nanoUsd: 2e9 }), delta({ day: kept, hour: 0, nanoUsd: 4e9 })];
    await store.journal.append(lease, { number: 1, at: before, usage });
    expect((await costs(store, { by: "hour" })).length).toBe(2);
    const late = [delta({ day: old, hour: 23, nanoUsd: -1e9 })];
    await store.journal.append(lease, { number: 2, at, usage: late });
    expect(await costs(store, { by: "hour" })).toEqual([[`${kept}T00`, 4]]);
    expect(await costs(store, { by: "day" })).toEqual([
      [old, 1],
      [kept, 4],
    ]);
  });
}
