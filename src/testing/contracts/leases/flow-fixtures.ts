import {
  formatSessionId,
  type ClaimOptions,
  type Commit,
  type Lease,
  type Mail,
  type RunFlow,
  type RunId,
  type RunRecord,
  type Store,
} from "../../../kernel/index.ts";
import { rootTask, runEnd, runRecord } from "../store-fixtures.ts";

export type More = Partial<Pick<RunRecord, "priority" | "tenantId" | "startAt" | "createdAt" | "userId">>;

export const first: Commit = { number: 0, at: 1 };

/** A limit of concurrency. */
export function slots(key: string, limit: number): RunFlow {
  return { concurrency: { name: "order", key, limit } };
}

/** Creates a run with limits, in a separate session. */
export async function create(store: Store, name: string, flow: RunFlow, more: More = {}): Promise<RunId> {
  const record = { ...runRecord(name), sessionId: formatSessionId(name), flow, ...more };
  await store.journal.create(record, first);
  return record.runId;
}

export async function claim(
  store: Store,
  more: Partial<ClaimOptions> = {},
  workerId = "w1",
): Promise<readonly Lease[]> {
  return store.leases.claim({ workerId, limit: 10, now: 0, ...more });
}

export function names(leases: readonly Lease[]): string[] {
  return leases.map(({ runId }) => runId.slice("run_".length));
}

/** Claims runs and returns their names. */
export async function claimed(store: Store, more: Partial<ClaimOptions> = {}): Promise<string[]> {
  return names(await claim(store, more));
}

/** Ends the run and releases it. */
export async function end(store: Store, lease: Lease): Promise<void> {
  await store.journal.append(lease, { number: 1, at: 2, events: [runEnd(lease.runId, 0)] });
  await store.leases.release(lease, { kind: "ended" });
}

export function only([lease]: readonly Lease[]): Lease {
  return lease as Lease;
}

export async function standing(store: Store, runId: RunId): Promise<unknown> {
  const { status, waitsFor } = (await store.journal.summary(runId)) ?? {};
  return { status, waitsFor };
}

export function mailTo(runId: RunId, id = "m1"): Mail {
  return {
    runId,
    id,
    from: "someone",
    at: 1,
    body: { type: "resolve", taskId: rootTask, wait: id, value: null },
  };
}
