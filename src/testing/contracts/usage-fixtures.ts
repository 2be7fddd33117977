import {
  noUsageDelta,
  type CapLimits,
  type DrawOutcome,
  type DrawRequest,
  type Lease,
  type RunId,
  type Store,
  type UsageDelta,
  type UsageQuery,
} from "../../kernel/index.ts";
import { runRecord } from "./store-fixtures.ts";

export const day = "2026-11-16";

export function delta(more: Partial<UsageDelta> = {}): UsageDelta {
  return { ...noUsageDelta, day, agent: "scout", model: "acme/m1", ...more };
}

interface Owner {
  readonly tenantId?: string | null;
  readonly userId?: string | null;
}

/** Creates a run of this user and returns the lease of the worker. */
export async function ownRunOf(store: Store, name: string, owner: Owner = {}, worker = "w1"): Promise<Lease> {
  const record = { ...runRecord(name), tenantId: null, userId: null, ...owner };
  await store.journal.create(record, { number: 0, at: 1 });
  await store.leases.enlist(worker);
  const lease = await store.leases.seize(record.runId, worker);
  if (lease === undefined) throw new Error(`the new run ${record.runId} could not be seized`);
  return lease;
}

/** Creates a run with one commit that contains this usage. */
export async function spend(
  store: Store,
  name: string,
  usage: readonly UsageDelta[],
  owner?: Owner,
): Promise<RunId> {
  const lease = await ownRunOf(store, name, owner);
  await store.journal.append(lease, { number: 1, at: 2, usage });
  return lease.runId;
}

/** Returns the keys of the rows, and their costs in dollars. */
export async function costs(store: Store, query: UsageQuery): Promise<[string | null, number][]> {
  return (await store.usage.sum(query)).map(({ key, costUsd }) => [key, costUsd]);
}

export function request(need: number, caps: CapLimits, more: Partial<DrawRequest> = {}): DrawRequest {
  return { day, need, want: need, caps, ...more };
}

export function held(amount: number): DrawOutcome {
  return { kind: "held", amount, tight: null };
}
