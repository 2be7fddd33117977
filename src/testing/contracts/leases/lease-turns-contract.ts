import {
  formatAgentId,
  Priority,
  type Creation,
  type MaybePromise,
  type RunRecord,
  type Store,
} from "../../../kernel/index.ts";
import type { ContractHarness } from "../contract-harness.ts";
import { runRecord } from "../store-fixtures.ts";

/** Tests of the order in which `Leases.claim` serves ready runs (L5). */
export function leaseTurnsContract({ test, expect, open }: ContractHarness): void {
  test("L5: claim() alternates between tenants; within a tenant by priority, then by time of waiting", async () => {
    const store = await open();
    const create = (name: string, tenantId: string, priority: Priority): MaybePromise<Creation> =>
      store.journal.create({ ...runRecord(name), tenantId, priority }, { number: 0, at: 1 });
    await create("a1", "a", Priority.NORMAL);
    await create("a2", "a", Priority.NORMAL);
    await create("a3", "a", Priority.HIGH);
    await create("b1", "b", Priority.LOW);
    await store.leases.enlist("w1");
    const order: string[] = [];
    for (let count = 0; count < 4; count++) {
      const [lease] = await store.leases.claim({ workerId: "w1", limit: 1, now: 0 });
      if (lease !== undefined) order.push(lease.runId.slice("run_".length));
    }
    expect(order).toEqual(["a3", "b1", "a1", "a2"]);
  });

  const party = (name: string, more: Partial<RunRecord> = {}): RunRecord => ({ ...runRecord(name), ...more });

  /** Creates the runs, claims them one by one and returns their names in the order of the claims. */
  const claimOrder = async (store: Store, runs: readonly RunRecord[]): Promise<string[]> => {
    for (const run of runs) await store.journal.create(run, { number: 0, at: 1 });
    await store.leases.enlist("w1");
    const order: string[] = [];
    for (const _ of runs) {
      const [lease] = await store.leases.claim({ workerId: "w1", limit: 1, now: 0 });
      if (lease !== undefined) order.push(lease.runId.slice("run_".length));
    }
    return order;
  };
  const zealous = formatAgentId({ name: "zealous" });

  for (const tenantId of [null, "acme"]) {
    const where = tenantId === null ? "without a tenant" : "of one tenant";
    test(`L5: runs ${where} take turns by user, then by time of waiting`, async () => {
      const [ann, bob] = [
        { tenantId, userId: "ann" },
        { tenantId, userId: "bob" },
      ];
      const runs = [party("a1", ann), party("a2", ann), party("a3", ann), party("b1", bob), party("b2", bob)];
      expect(await claimOrder(await open(), runs)).toEqual(["a1", "b1", "a2", "b2", "a3"]);
    });

    test(`L5: runs ${where} take turns by agent, then by time of waiting`, async () => {
      const [one, two] = [{ tenantId }, { tenantId, agentId: zealous }];
      const runs = [party("a1", one), party("a2", one), party("a3", one), party("z1", two), party("z2", two)];
      expect(await claimOrder(await open(), runs)).toEqual(["a1", "z1", "a2", "z2", "a3"]);
    });

    test(`L5: of the runs ${where}, the higher priority comes first, before turns`, async () => {
      const ann = { tenantId, userId: "ann" };
      const runs = [
        party("a1", ann),
        party("a2", ann),
        party("b1", { tenantId, userId: "bob", priority: Priority.LOW }),
        party("c1", { tenantId, agentId: zealous, priority: Priority.HIGH }),
      ];
      expect(await claimOrder(await open(), runs)).toEqual(["c1", "a1", "a2", "b1"]);
    });
  }

  test("L5: one claim() takes a run of each user before a second run of any user", async () => {
    const store = await open();
    for (const name of ["a1", "a2", "a3", "a4", "a5"])
      await store.journal.create(party(name, { userId: "ann" }), { number: 0, at: 1 });
    for (const userId of ["bob", "cid", "dan"])
      await store.journal.create(party(userId, { userId }), { number: 0, at: 1 });
    await store.leases.enlist("w1");
    const leases = await store.leases.claim({ workerId: "w1", limit: 5, now: 0 });
    expect(leases.map(({ runId }) => runId.slice("run_".length)).toSorted()).toEqual([
      "a1",
      "a2",
      "bob",
      "cid",
      "dan",
    ]);
  });
}
