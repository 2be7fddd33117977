import {
  latencyList,
  sumOfUsage,
  type Commit,
  type Lease,
  type Store,
  type UsageDimension,
  type UsageQuery,
  type UsageRow,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { runEnd, runRecord } from "./store-fixtures.ts";
import { costs, day, delta, held, ownRunOf, request, spend } from "./usage-fixtures.ts";
import { usageHoursContract } from "./usage-hours-contract.ts";

/** Tests of the rules that every implementation of `UsageTotals` must keep. */
export function usageContract(harness: ContractHarness): void {
  adding(harness);
  summing(harness);
  usageHoursContract(harness);
  drawing(harness);
}

function adding({ test, expect, open, reopen }: ContractHarness): void {
  test("U1: the totals on every connection contain the usage of a commit once the commit is stored", async () => {
    const store = await open();
    const usage = [
      delta({ inputTokens: 10, outputTokens: 5, cachedTokens: 4, turns: 2, nanoUsd: 7e6, runs: 1 }),
      delta({ nanoUsd: 1e6, lostTokens: 99, lostNanoUsd: 1e6, unpriced: 3 }),
    ];
    await spend(store, "a", usage);
    const total: UsageRow = {
      key: "scout",
      runs: 1,
      turns: 2,
      inputTokens: 10,
      outputTokens: 5,
      cachedTokens: 4,
      costUsd: 0.008,
      unreported: { tokens: 99, costUsd: 0.001, likelyUsd: null },
      unpricedTurns: 3,
      details: {
        isComplete: true,
        runs: 1,
        failedRuns: 0,
        calls: 0,
        failedCalls: 0,
        latency: latencyList({}),
      },
    };
    expect(await store.usage.sum({ by: "agent" })).toEqual([total]);
    const other = await reopen();
    expect(await other.usage.sum({ by: "agent" })).toEqual([total]);
  });

  test("U1: a commit that is written twice under the same number counts once", async () => {
    const store = await open();
    const lease = await ownRunOf(store, "a");
    const commit: Commit = { number: 1, at: 2, usage: [delta({ nanoUsd: 5e9 })] };
    await store.journal.append(lease, commit);
    await store.journal.append(lease, commit);
    await store.journal.append(lease, { ...commit, usage: [delta({ nanoUsd: 9e9 })] });
    expect(await costs(store, { by: "day" })).toEqual([[day, 5]]);
  });

  test("U1: a commit of a worker that lost the run, and a commit that leaves a gap, add nothing", async () => {
    const store = await open();
    const lost = await ownRunOf(store, "a");
    await store.leases.dismiss("w1");
    await store.leases.enlist("w2");
    const lease = await store.leases.seize(lost.runId, "w2");
    if (lease === undefined) throw new Error("the run could not be seized by another worker");
    const usage = [delta({ nanoUsd: 1e9 })];
    const late = async (): Promise<Commit> => store.journal.append(lost, { number: 1, at: 2, usage });
    const gap = async (): Promise<Commit> => store.journal.append(lease, { number: 7, at: 2, usage });
    await expect(late()).rejects.toMatchObject({ code: "lease_lost" });
    await expect(gap()).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await costs(store, { by: "day" })).toEqual([]);
  });

  test("U1: the commits of several runs through two connections at once all count", async () => {
    const store = await open();
    const other = await reopen();
    const leases: [Store, Lease][] = [];
    for (let index = 0; index < 10; index++) {
      leases.push([store, await ownRunOf(store, `a${index}`)]);
      leases.push([other, await ownRunOf(other, `b${index}`, {}, "w2")]);
    }
    const usage = [delta({ turns: 1, nanoUsd: 1 })];
    await Promise.all(
      leases.map(async ([each, lease]) => each.journal.append(lease, { number: 1, at: 2, usage })),
    );
    const [row] = await store.usage.sum({ by: "day" });
    expect([row?.turns, row?.costUsd]).toEqual([20, 20e-9]);
  });

  test("U1: a run that adds usage with several commits adds each of them", async () => {
    const store = await open();
    const lease = await ownRunOf(store, "a");
    for (const number of [1, 2, 3])
      await store.journal.append(lease, { number, at: 2, usage: [delta({ turns: number, nanoUsd: 1e9 })] });
    const [row] = await store.usage.sum({ by: "model" });
    expect([row?.turns, row?.costUsd]).toEqual([6, 3]);
  });

  test("U1, U4: a later commit of an ended run may lower the totals once, for example when an unreported call is corrected", async () => {
    const store = await open();
    const lease = await ownRunOf(store, "a");
    const lost = { lostCalls: 2, lostTokens: 90, lostNanoUsd: 90e6 };
    await store.journal.append(lease, {
      number: 1,
      at: 2,
      usage: [delta({ turns: 4, nanoUsd: 100e6, runs: 1, ...lost })],
      events: [runEnd(lease.runId, 0)],
    });
    const unreported = async (): Promise<UsageRow["unreported"] | undefined> =>
      (await store.usage.sum({ by: "day" }))[0]?.unreported;
    expect(await unreported()).toEqual({ tokens: 90, costUsd: 0.09, likelyUsd: 0.005 });
    const usage = [
      delta({ nanoUsd: -40e6, lostCalls: -1, lostTokens: -45, lostNanoUsd: -45e6, inputTokens: 7 }),
    ];
    const commit: Commit = { number: 2, at: 3, usage };
    await store.journal.append(lease, commit);
    await store.journal.append(lease, commit);
    const [row] = await store.usage.sum({ by: "day" });
    expect([row?.costUsd, row?.inputTokens, row?.turns, row?.runs]).toEqual([0.06, 7, 4, 1]);
    expect(row?.unreported).toEqual({ tokens: 45, costUsd: 0.045, likelyUsd: 0.00375 });
    // What a call without an answer cost without a reported call of the same agent and model is not known. In a sum it counts as charged.
    await spend(store, "b", [
      delta({ agent: "lead", nanoUsd: 1e6, lostCalls: 1, lostTokens: 9, lostNanoUsd: 1e6 }),
    ]);
    expect(await unreported()).toEqual({ tokens: 54, costUsd: 0.046, likelyUsd: 0.00475 });
    const alone = await store.usage.sum({ by: "agent", keys: [{ key: "lead" }] });
    expect(alone.map((each) => each.unreported)).toEqual([{ tokens: 9, costUsd: 0.001, likelyUsd: null }]);
    expect(sumOfUsage(alone).unreported.likelyUsd).toBe(null);
  });

  test("U2: the totals stay when the run and its session are deleted, and when ended runs are collected", async () => {
    const store = await open();
    const runId = await spend(store, "a", [delta({ nanoUsd: 1e9 })]);
    const lease = await ownRunOf(store, "b");
    const usage = [delta({ nanoUsd: 2e9, runs: 1 })];
    await store.journal.append(lease, { number: 1, at: 2, usage, events: [runEnd(lease.runId, 0)] });
    await store.leases.release(lease, { kind: "ended" });
    await store.journal.delete(runId);
    expect(await store.journal.collect({ endedBefore: 9 })).toBe(1);
    await store.sessions.delete(runRecord().sessionId);
    expect(await costs(store, { by: "day" })).toEqual([[day, 3]]);
  });
}

function summing({ test, expect, open }: ContractHarness): void {
  test("U3: sum() by tenant returns one row per tenant, and agent, model and keys select usage", async () => {
    const store = await open();
    await spend(store, "a", [delta({ nanoUsd: 1e9 }), delta({ agent: "lead", model: null })]);
    await spend(store, "b", [delta({ nanoUsd: 2e9 })], { tenantId: "acme", userId: "ann" });
    await spend(store, "c", [delta({ nanoUsd: 4e9, model: "acme/m2" })], { tenantId: "beta", userId: "ann" });
    await spend(store, "d", [delta({ nanoUsd: 8e9 })], { tenantId: "beta", userId: null });
    const found = async (query: UsageQuery): Promise<[string | null, number][]> => costs(store, query);
    expect(await found({ by: "tenant" })).toEqual([
      [null, 1],
      ["acme", 2],
      ["beta", 12],
    ]);
    expect(await found({ by: "tenant", model: "acme/m2" })).toEqual([["beta", 4]]);
    expect(await found({ by: "agent", model: null })).toEqual([["lead", 0]]);
    expect(await found({ by: "model", agent: "lead" })).toEqual([[null, 0]]);
    expect(await found({ by: "tenant", keys: [{ key: null }, { key: "beta" }] })).toEqual([
      [null, 1],
      ["beta", 12],
    ]);
    const users = [{ key: "ann", tenantId: "beta" }, { key: null }, { key: "bob", tenantId: null }];
    expect(await found({ by: "user", keys: users })).toEqual([
      [null, 1],
      ["ann", 4],
    ]);
    expect(await found({ by: "agent", keys: [] })).toEqual([]);
  });

  test("U3: sum() returns one row per day, agent, model or user, in ascending order, and null first", async () => {
    const store = await open();
    await spend(store, "a", [
      delta({ day: "2026-11-17", agent: "lead", nanoUsd: 1e9 }),
      delta({ day: "2026-11-15", model: "acme/m0", nanoUsd: 2e9 }),
      delta({ nanoUsd: 4e9 }),
      delta({ model: null, runs: 1 }),
    ]);
    await spend(store, "b", [delta({ nanoUsd: 8e9 })], { userId: "bob" });
    await spend(store, "c", [delta({ nanoUsd: 16e9 })], { userId: "ann" });
    const found = async (by: UsageDimension): Promise<[string | null, number][]> => costs(store, { by });
    expect(await found("day")).toEqual([
      ["2026-11-15", 2],
      [day, 28],
      ["2026-11-17", 1],
    ]);
    expect(await found("agent")).toEqual([
      ["lead", 1],
      ["scout", 30],
    ]);
    expect(await found("model")).toEqual([
      [null, 0],
      ["acme/m0", 2],
      ["acme/m1", 29],
    ]);
    expect(await found("user")).toEqual([
      [null, 7],
      ["ann", 16],
      ["bob", 8],
    ]);
  });

  test("U3: sum() selects by first and last day, tenant and user, and returns no row for a selection without usage", async () => {
    const store = await open();
    const days = ["2026-11-14", "2026-11-15", day];
    await spend(
      store,
      "a",
      days.map((each) => delta({ day: each, nanoUsd: 1e9 })),
      { tenantId: "acme", userId: "ann" },
    );
    await spend(store, "b", [delta({ nanoUsd: 4e9 })]);
    const sum = async (query: Omit<UsageQuery, "by">): Promise<number> =>
      (await costs(store, { by: "day", ...query })).reduce((all, [, cost]) => all + cost, 0);
    expect(await sum({ from: "2026-11-15" })).toBe(6);
    expect(await sum({ to: "2026-11-15" })).toBe(2);
    expect(await sum({ from: "2026-11-15", to: "2026-11-15" })).toBe(1);
    expect(await sum({ tenantId: "acme" })).toBe(3);
    expect(await sum({ tenantId: null })).toBe(4);
    expect(await sum({ userId: "ann", from: day })).toBe(1);
    expect(await sum({ userId: null })).toBe(4);
    expect(await costs(store, { by: "day", tenantId: "other" })).toEqual([]);
  });

  test("U4: ten thousand amounts of one nano-dollar are exactly ten thousand nano-dollars", async () => {
    const store = await open();
    const usage = Array.from({ length: 10_000 }, () => delta({ nanoUsd: 1 }));
    await spend(store, "a", [...usage, delta({ nanoUsd: 1e8 }), delta({ nanoUsd: 2e8 })]);
    expect(await costs(store, { by: "agent" })).toEqual([["scout", 0.30001]]);
  });

  test("U5: equal user ids of two tenants are two rows, and a user or tenant named - is not the absence of one", async () => {
    const store = await open();
    const owners = [
      { tenantId: "acme", userId: "ann" },
      { tenantId: "beta", userId: "ann" },
      { tenantId: "-", userId: "-" },
      {},
    ];
    for (const [index, owner] of owners.entries())
      await spend(store, `r${index}`, [delta({ nanoUsd: 1e9 * (index + 1) })], owner);
    const rows = await store.usage.sum({ by: "user" });
    expect(rows.map(({ key, tenantId, costUsd }) => [key, tenantId, costUsd])).toEqual([
      [null, null, 4],
      ["-", "-", 3],
      ["ann", "acme", 1],
      ["ann", "beta", 2],
    ]);
    expect(await costs(store, { by: "user", tenantId: "-" })).toEqual([["-", 3]]);
  });

  test("U6: an unknown dimension or option, and a day that does not exist, are refused", async () => {
    const { usage } = await open();
    const refused = async (query: object, message: string): Promise<void> =>
      expect(usage.sum(query as UsageQuery)).rejects.toMatchObject({ code: "invalid_argument", message });
    const dimensions = "day, hour, agent, model, user, tenant";
    await refused({}, `invalid by undefined of usage(): expected one of ${dimensions}`);
    await refused({ by: "days" }, `invalid by "days" of usage(): expected one of ${dimensions}; use "day"`);
    await refused({ by: "day", form: day }, 'unknown option "form" of usage(): use "from"');
    await refused(
      { by: "hour", per: "day" },
      'invalid per "day" of usage(): expected no step, because by is "hour"',
    );
    const wrong: readonly object[] = [
      { by: "agent", per: "week" },
      { by: "agent", keys: "scout" },
      { by: "agent", keys: Array.from({ length: 101 }, () => ({ key: "scout" })) },
      { by: "agent", keys: [{ name: "scout" }] },
      { by: "agent", agent: null },
      { by: "agent", model: 5 },
    ];
    for (const query of wrong)
      await expect(usage.sum(query as UsageQuery)).rejects.toMatchObject({ code: "invalid_argument" });
    const times = ["2026-11-16T24", "2026-02-30T01", "2026-11-16T1", "2026-11-16 01"];
    for (const from of [...times, "2026-02-30", "2026-2-3", "yesterday", "", 5, Number.NaN, null])
      await expect(usage.sum({ by: "day", from: from as string })).rejects.toMatchObject({
        code: "invalid_argument",
      });
    await expect(usage.sum({ by: "day", userId: 5 as unknown as string })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });
}

function drawing(harness: ContractHarness): void {
  const { test, expect, open, reopen } = harness;
  returning(harness);

  test("U7: runs take shares of a cap until it is used up, and an exhausted cap names what is spent and reserved", async () => {
    const store = await open();
    await spend(store, "past", [delta({ nanoUsd: 10 })]);
    const [one, other] = [await ownRunOf(store, "a"), await ownRunOf(store, "b")];
    const caps = { perDayUsd: 100 };
    expect(await store.usage.draw(one, request(60, caps))).toEqual(held(60));
    const tight = { name: "perDayUsd", limit: 100, spent: 10, held: 60 };
    expect(await store.usage.draw(other, request(31, caps))).toEqual({ kind: "exhausted", tight });
    expect(await store.usage.draw(other, request(30, caps))).toEqual(held(30));
    expect((await store.usage.draw(one, request(61, caps))).kind).toBe("exhausted");
  });

  test("U7: a draw from a cap grants as much as the cap leaves, and never takes back what the run already has", async () => {
    const store = await open();
    const lease = await ownRunOf(store, "a");
    const caps = { perDayUsd: 100 };
    const tight = { name: "perDayUsd", limit: 100, spent: 0, held: 0 };
    const wanted = await store.usage.draw(lease, request(60, caps, { want: 150 }));
    expect(wanted).toEqual({ kind: "held", amount: 100, tight });
    expect(await store.usage.draw(lease, request(20, caps))).toEqual(held(100));
    expect(await store.usage.draw(lease, request(90, { perDayUsd: 50 }))).toEqual(held(100));
  });

  test("U7: caps per user, per tenant and per day are counted separately, and the tightest one decides", async () => {
    const store = await open();
    const caps = { perUserPerDayUsd: 10, perTenantPerDayUsd: 15, perDayUsd: 22 };
    const owners = [
      { tenantId: "acme", userId: "ann" },
      { tenantId: "acme", userId: "bob" },
      { tenantId: "beta", userId: "ann" },
      {},
    ];
    const names: string[] = [];
    const drawn: number[] = [];
    for (const [index, owner] of owners.entries()) {
      const lease = await ownRunOf(store, `r${index}`, owner);
      const outcome = await store.usage.draw(lease, request(1, caps, { want: 99 }));
      names.push(outcome.tight?.name ?? "none");
      drawn.push(outcome.kind === "held" ? outcome.amount : 0);
    }
    expect(names).toEqual(["perUserPerDayUsd", "perTenantPerDayUsd", "perDayUsd", "perDayUsd"]);
    expect(drawn).toEqual([10, 5, 7, 0]);
  });

  test("U7: caps per month count all days of the month, and the next month starts anew", async () => {
    const store = await open();
    await spend(store, "past", [
      delta({ nanoUsd: 30, day: "2026-11-01" }),
      delta({ nanoUsd: 5, day: "2026-10-31" }),
    ]);
    const caps = { perUserPerMonthUsd: 100, perDayUsd: 60 };
    const [one, other] = [await ownRunOf(store, "a"), await ownRunOf(store, "b")];
    expect(await store.usage.draw(one, request(60, caps))).toEqual(held(60));
    const next = { day: "2026-11-17" };
    const tight = { name: "perUserPerMonthUsd", limit: 100, spent: 30, held: 60 };
    expect(await store.usage.draw(other, request(11, caps, next))).toEqual({ kind: "exhausted", tight });
    expect(await store.usage.draw(other, request(10, caps, next))).toEqual(held(10));
    expect(await store.usage.draw(other, request(60, caps, { day: "2026-12-01" }))).toEqual(held(60));
    expect(await costs(store, { by: "day" })).toEqual([
      ["2026-10-31", 5e-9],
      ["2026-11-01", 30e-9],
    ]);
  });

  test("U7: caps per agent count the calls of the agent in all runs, and each agent of a run has its own share", async () => {
    const store = await open();
    await spend(store, "past", [delta({ nanoUsd: 10 }), delta({ nanoUsd: 40, agent: "clerk" })]);
    const caps = { perAgentPerDayUsd: 50, perAgentPerMonthUsd: 70, perDayUsd: 120 };
    const [scout, clerk] = [{ agent: "scout" }, { agent: "clerk" }];
    const [one, other] = [await ownRunOf(store, "a", { userId: "ann" }), await ownRunOf(store, "b")];
    expect(await store.usage.draw(one, request(30, caps, scout))).toEqual(held(30));
    const tight = { name: "perAgentPerDayUsd", limit: 50, spent: 10, held: 30 };
    expect(await store.usage.draw(other, request(11, caps, scout))).toEqual({ kind: "exhausted", tight });
    expect(await store.usage.draw(one, request(10, caps, clerk))).toEqual(held(10));
    const month = { name: "perAgentPerMonthUsd", limit: 70, spent: 10, held: 30 };
    const later = { ...scout, day: "2026-11-17" };
    expect(await store.usage.draw(other, request(31, caps, later))).toEqual({
      kind: "exhausted",
      tight: month,
    });
    // The other agents of a run count for the caps of the store.
    const all = { name: "perDayUsd", limit: 120, spent: 50, held: 40 };
    expect(await store.usage.draw(other, request(31, caps, { agent: "cook" }))).toEqual({
      kind: "exhausted",
      tight: all,
    });
    const usage = [delta({ nanoUsd: 20 })];
    await store.journal.append(one, { number: 1, at: 2, usage, holds: { [`${day} clerk`]: 10 } });
    expect(await store.usage.draw(other, request(20, caps, scout))).toEqual(held(20));
    expect((await store.usage.draw(other, request(1, caps, clerk))).kind).toBe("exhausted");
  });

  test("U7: each day has a cap of its own", async () => {
    const store = await open();
    const lease = await ownRunOf(store, "a");
    const caps = { perDayUsd: 10 };
    expect(await store.usage.draw(lease, request(10, caps))).toEqual(held(10));
    expect(await store.usage.draw(lease, request(10, caps, { day: "2026-11-17" }))).toEqual(held(10));
    const other = await ownRunOf(store, "b");
    expect((await store.usage.draw(other, request(1, caps))).kind).toBe("exhausted");
    expect((await store.usage.draw(other, request(1, caps, { day: "2026-11-17" }))).kind).toBe("exhausted");
  });

  test("U7: a draw that may wait takes nothing while other runs have the amount, and fails at once if it can never fit", async () => {
    const store = await open();
    const [one, other] = [await ownRunOf(store, "a"), await ownRunOf(store, "b")];
    const caps = { perDayUsd: 100, perTenantPerDayUsd: 90 };
    await store.usage.draw(one, request(60, caps));
    const asked = request(10, caps, { want: 50, mayWait: true });
    const tight = { name: "perTenantPerDayUsd", limit: 90, spent: 0, held: 60 };
    expect(await store.usage.draw(other, asked)).toEqual({ kind: "waits", tight });
    // It holds nothing: the other run can draw the rest.
    expect(await store.usage.draw(one, request(90, caps))).toEqual(held(90));
    await store.journal.append(one, { number: 1, at: 2, usage: [delta({ nanoUsd: 50 })] });
    // No run holds anything, so it gets what is left.
    const left = { ...tight, spent: 50, held: 0 };
    expect(await store.usage.draw(other, asked)).toEqual({ kind: "held", amount: 40, tight: left });
    await store.usage.draw(one, request(40, { perDayUsd: 100 }));
    const more = request(41, caps, { mayWait: true });
    expect((await store.usage.draw(other, more)).kind).toBe("exhausted");
  });

  test("U7: a draw of a worker that lost the run is refused with lease_lost and takes nothing", async () => {
    const store = await open();
    const lost = await ownRunOf(store, "a");
    await store.leases.dismiss("w1");
    await store.leases.enlist("w2");
    const lease = await store.leases.seize(lost.runId, "w2");
    const caps = { perDayUsd: 10 };
    await expect(store.usage.draw(lost, request(10, caps))).rejects.toMatchObject({ code: "lease_lost" });
    const other = await ownRunOf(store, "b", {}, "w2");
    expect(lease?.runId).toBe(lost.runId);
    expect(await store.usage.draw(other, request(10, caps))).toEqual(held(10));
  });

  test("U7: runs that draw through two connections at once never take more than the cap", async () => {
    const store = await open();
    const other = await reopen();
    const leases: [Store, Lease][] = [];
    for (let index = 0; index < 10; index++) {
      leases.push([store, await ownRunOf(store, `a${index}`)]);
      leases.push([other, await ownRunOf(other, `b${index}`, {}, "w2")]);
    }
    const draws = leases.map(([each, lease]) => each.usage.draw(lease, request(7, { perDayUsd: 50 })));
    const kinds = (await Promise.all(draws)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "held").length).toBe(7);
  });
}

function returning({ test, expect, open, reopen }: ContractHarness): void {
  const caps = { perDayUsd: 100 };

  test("U8: a commit with usage returns the part of a cap that the run did not spend, also with an empty list", async () => {
    const store = await open();
    const [one, other] = [await ownRunOf(store, "a"), await ownRunOf(store, "b")];
    await store.usage.draw(one, request(80, caps));
    expect((await store.usage.draw(other, request(50, caps))).kind).toBe("exhausted");
    await store.journal.append(one, { number: 1, at: 2 });
    expect((await store.usage.draw(other, request(50, caps))).kind).toBe("exhausted");
    await store.journal.append(one, { number: 2, at: 3, usage: [delta({ nanoUsd: 30 })] });
    expect(await store.usage.draw(other, request(70, caps))).toEqual(held(70));
    await store.journal.append(other, { number: 1, at: 4, usage: [] });
    expect(await store.usage.draw(one, request(70, caps))).toEqual(held(70));
    expect((await store.usage.draw(one, request(71, caps))).kind).toBe("exhausted");
  });

  test("U8: a commit with usage lowers the cap shares of its run to the given amounts and never raises a share", async () => {
    const store = await open();
    const [one, other] = [await ownRunOf(store, "a"), await ownRunOf(store, "b")];
    const later = { day: "2026-11-17" };
    await store.usage.draw(one, request(80, caps));
    await store.usage.draw(one, request(80, caps, later));
    const usage = [delta({ nanoUsd: 10 })];
    await store.journal.append(one, { number: 1, at: 2, usage, holds: { [day]: 30 } });
    expect((await store.usage.draw(other, request(61, caps))).kind).toBe("exhausted");
    expect(await store.usage.draw(other, request(60, caps))).toEqual(held(60));
    expect(await store.usage.draw(other, request(100, caps, later))).toEqual(held(100));
    await store.journal.append(one, { number: 2, at: 3, usage: [], holds: { [day]: 90 } });
    await store.journal.append(other, { number: 1, at: 3, usage: [] });
    expect(await store.usage.draw(other, request(60, caps))).toEqual(held(60));
    expect((await store.usage.draw(other, request(61, caps))).kind).toBe("exhausted");
  });

  test("U8: the next owner of a run has the cap share that its last owner drew", async () => {
    const store = await open();
    const first = await ownRunOf(store, "a");
    await store.usage.draw(first, request(80, caps));
    await store.leases.dismiss("w1");
    const other = await reopen();
    await other.leases.enlist("w2");
    const second = await other.leases.seize(first.runId, "w2");
    if (second === undefined) throw new Error("the run could not be seized by another worker");
    expect(await other.usage.draw(second, request(80, caps))).toEqual(held(80));
    expect(await other.usage.draw(second, request(100, caps))).toEqual(held(100));
  });

  test("U8: a refused commit returns no cap share", async () => {
    const store = await open();
    const [one, other] = [await ownRunOf(store, "a"), await ownRunOf(store, "b")];
    await store.usage.draw(one, request(80, caps));
    const gap = async (): Promise<Commit> => store.journal.append(one, { number: 9, at: 2, usage: [] });
    await expect(gap()).rejects.toMatchObject({ code: "invalid_argument" });
    expect((await store.usage.draw(other, request(30, caps))).kind).toBe("exhausted");
  });

  test("U8: the cap share of a deleted run counts until its day is over, because the run may have spent it", async () => {
    const store = await open();
    const [one, other] = [await ownRunOf(store, "a"), await ownRunOf(store, "b")];
    await store.usage.draw(one, request(80, caps));
    await store.journal.delete(one.runId);
    expect((await store.usage.draw(other, request(30, caps))).kind).toBe("exhausted");
    expect(await store.usage.draw(other, request(100, caps, { day: "2026-11-17" }))).toEqual(held(100));
  });
}
