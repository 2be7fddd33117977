import assert from "node:assert/strict";
import fc from "fast-check";
import { noUsageDelta, type CapName, type Lease, type Store } from "../../../src/kernel/index.ts";
import { runRecord } from "../../../src/testing/contracts/store-fixtures.ts";
import { onStore, type Model } from "./store-model.ts";

/** The users of the runs: two tenants have a user of the same name, and two runs have the same user. */
const owners = [
  { tenantId: null, userId: null },
  { tenantId: "acme", userId: "ann" },
  { tenantId: "acme", userId: "ann" },
  { tenantId: "acme", userId: "bob" },
  { tenantId: "beta", userId: "ann" },
] as const;
const days = ["2026-11-16", "2026-11-17"] as const;
const caps = { perDayUsd: 40, perTenantPerDayUsd: 25, perUserPerDayUsd: 15 };

const run = fc.nat({ max: owners.length - 1 });
const day = fc.constantFrom(...days);
const moves = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        type: fc.constant("draw" as const),
        run,
        day,
        more: fc.nat({ max: 12 }),
        extra: fc.nat({ max: 6 }),
        mayWait: fc.boolean(),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ type: fc.constant("pay" as const), run, day, amount: fc.nat({ max: 8 }) }),
    },
    { weight: 2, arbitrary: fc.record({ type: fc.constant("rest" as const), run }) },
    {
      weight: 2,
      arbitrary: fc.record({ type: fc.constant("settle" as const), run, day, keep: fc.nat({ max: 8 }) }),
    },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("crash" as const), run }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant("delete" as const), run }) },
  ),
  { maxLength: 25 },
);

/**
 * A run: what it has paid per day since it last stored its usage, what it had paid before, and how much of the caps it
 * may have.
 */
class Payer {
  lease: Lease;
  number = 1;
  isDeleted = false;
  readonly paid = new Map<string, number>();
  readonly totalled = new Map<string, number>();
  readonly held = new Map<string, number>();
  readonly place: number;

  constructor(place: number, lease: Lease) {
    this.place = place;
    this.lease = lease;
  }

  of(amounts: ReadonlyMap<string, number>, on: string): number {
    return amounts.get(on) ?? 0;
  }

  /** Returns the amount that counts for the caps. A deleted run may have spent all of its cap share. */
  counts(on: string): number {
    return this.of(this.totalled, on) + this.of(this.held, on);
  }

  bill(on: string): number {
    return this.of(this.totalled, on) + this.of(this.paid, on);
  }
}

function isUnder(name: CapName, one: number, other: number): boolean {
  const [left, right] = [owners[one], owners[other]];
  if (name === "perDayUsd") return true;
  if (left?.tenantId !== right?.tenantId) return false;
  return name === "perTenantPerDayUsd" || left?.userId === right?.userId;
}

/** Returns what the cap leaves for a run, computed from scratch. */
function roomOf(payers: readonly Payer[], payer: Payer, on: string): number {
  return Math.min(
    ...(Object.entries(caps) as [CapName, number][]).map(([name, limit]) => {
      const peers = payers.filter((each) => isUnder(name, each.place, payer.place));
      return limit - peers.reduce((sum, each) => sum + each.counts(on), 0) + payer.of(payer.held, on);
    }),
  );
}

/** Returns what the caps leave for a run if all other runs return their cap shares, computed from scratch. */
function reachOf(payers: readonly Payer[], payer: Payer, on: string): number {
  return Math.min(
    ...(Object.entries(caps) as [CapName, number][]).map(([name, limit]) => {
      const peers = payers.filter((each) => isUnder(name, each.place, payer.place));
      return limit - peers.reduce((sum, each) => sum + each.of(each.totalled, on), 0);
    }),
  );
}

/**
 * B7: for every cap and day, the billed amount of all runs is at most what is spent and reserved, which is at most the
 * cap.
 */
function assertWithinCaps(payers: readonly Payer[]): void {
  for (const on of days)
    for (const payer of payers)
      for (const [name, limit] of Object.entries(caps) as [CapName, number][]) {
        const peers = payers.filter((each) => isUnder(name, each.place, payer.place));
        const counted = peers.reduce((sum, each) => sum + each.counts(on), 0);
        const billed = peers.reduce((sum, each) => sum + each.bill(on), 0);
        assert.ok(counted <= limit, `${name} on ${on}: ${counted} is spent or held`);
        assert.ok(billed <= counted, `${name} on ${on}: ${billed} is billed and only ${counted} is counted`);
      }
}

async function own(store: Store, place: number, workerId: string): Promise<Lease> {
  await store.leases.enlist(workerId);
  const lease = await store.leases.seize(runRecord(`r${place}`).runId, workerId);
  assert.ok(lease);
  return lease;
}

/** Adds what the run has paid to the totals. The run keeps only `holds` of its cap shares. */
async function rest(store: Store, payer: Payer, holds?: Readonly<Record<string, number>>): Promise<void> {
  const usage = [...payer.paid].map(([on, nanoUsd]) => ({
    ...noUsageDelta,
    day: on,
    agent: "payer",
    model: null,
    nanoUsd,
  }));
  await store.journal.append(payer.lease, { number: payer.number++, at: 1, usage, ...(holds && { holds }) });
  for (const [on, amount] of payer.paid) payer.totalled.set(on, payer.of(payer.totalled, on) + amount);
  payer.paid.clear();
  const before = new Map(payer.held);
  payer.held.clear();
  for (const [on, amount] of Object.entries(holds ?? {}))
    payer.held.set(on, Math.min(amount, payer.of(before, on)));
}

/**
 * U7, U8, B7: runs draw from caps, pay, wait, crash and are deleted in any order. The result is compared with amounts
 * that are counted from scratch.
 */
export const capShareModel: Model = (open) =>
  onStore(moves, open, async (store, sequence) => {
    const payers: Payer[] = [];
    for (const [place, owner] of owners.entries()) {
      await store.journal.create({ ...runRecord(`r${place}`), ...owner }, { number: 0, at: 1 });
      payers.push(new Payer(place, await own(store, place, `w${place}`)));
    }
    let workers = owners.length;
    for (const move of sequence) {
      const payer = payers[move.run];
      if (payer === undefined || payer.isDeleted) continue;
      if (move.type === "draw") {
        const need = payer.of(payer.paid, move.day) + move.more;
        const want = need + move.extra;
        const room = roomOf(payers, payer, move.day);
        const had = payer.of(payer.held, move.day);
        const { mayWait } = move;
        const outcome = await store.usage.draw(payer.lease, { day: move.day, need, want, caps, mayWait });
        const within = Math.min(want, reachOf(payers, payer, move.day));
        const waits = mayWait && within >= need && within > Math.max(had, Math.min(want, room));
        if (waits) assert.equal(outcome.kind, "waits");
        else assert.equal(outcome.kind, Math.max(had, room) >= need ? "held" : "exhausted");
        if (outcome.kind === "held") {
          assert.equal(outcome.amount, Math.max(had, Math.min(want, room)));
          if (outcome.amount > 0) payer.held.set(move.day, outcome.amount);
        }
      } else if (move.type === "pay") {
        const free = payer.of(payer.held, move.day) - payer.of(payer.paid, move.day);
        if (move.amount <= free) payer.paid.set(move.day, payer.of(payer.paid, move.day) + move.amount);
      } else if (move.type === "rest") await rest(store, payer);
      else if (move.type === "settle") {
        const free = payer.of(payer.held, move.day) - payer.of(payer.paid, move.day);
        await rest(store, payer, { [move.day]: Math.max(0, Math.min(free, move.keep)) });
      } else if (move.type === "crash") {
        const late = payer.lease;
        await store.leases.dismiss(late.workerId);
        payer.lease = await own(store, payer.place, `w${workers++}`);
        const request = { day: days[0], need: 1, want: 1, caps };
        await assert.rejects(store.usage.draw(late, request), { code: "lease_lost" });
      } else {
        await store.journal.delete(payer.lease.runId);
        payer.isDeleted = true;
      }
      assertWithinCaps(payers);
    }
    // When every run has come to rest, only what was spent counts, and what deleted runs held.
    for (const payer of payers) if (!payer.isDeleted) await rest(store, payer);
    assertWithinCaps(payers);
    const rows = await store.usage.sum({ by: "day" });
    for (const on of days) {
      const spent = payers.reduce((sum, each) => sum + each.of(each.totalled, on), 0);
      assert.equal(Math.round((rows.find(({ key }) => key === on)?.costUsd ?? 0) * 1e9), spent);
    }
  });
