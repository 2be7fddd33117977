import { rootTaskId, type Journal, type RunId, type RunRecord } from "../kernel/index.ts";
import type { WorkerContext } from "./process/worker-context.ts";
import { RunOwner } from "./run/run-owner.ts";

/**
 * L18: ends a cancelled run that was started by name and that no worker has adopted, so that a misspelt name needs no worker.
 * The run is claimed for the time that this takes; a run that a worker has adopted or owns is left to workers.
 */
export async function endUnadopted(worker: WorkerContext, { runId, kind }: RunRecord): Promise<void> {
  const { store, ids, clock } = worker;
  if (kind !== "workflow" || !(await isUnadopted(store.journal, runId))) return;
  const workerId = `cancel-${ids.next()}`;
  await store.leases.enlist(workerId);
  try {
    const [lease] = await store.leases.claim({ workerId, limit: 1, only: [runId], now: clock.now() });
    if (lease === undefined) return;
    const owner = await RunOwner.load(worker, lease);
    const { rest, isReleased } = await owner.endIfCancelled();
    if (!isReleased) await store.leases.release(lease, rest);
  } finally {
    await store.leases.dismiss(workerId);
  }
}

/** Whether the run was started by name and its root has not been replaced by an adoption. Reads the first commits only. */
async function isUnadopted(journal: Pick<Journal, "read">, runId: RunId): Promise<boolean> {
  let isByName = false;
  for await (const { tasks = [] } of journal.read(runId))
    for (const change of tasks) {
      if (change.type !== "create" || change.task.taskId !== rootTaskId) continue;
      isByName = change.task.byName !== undefined;
      if (!isByName) return false;
    }
  return isByName;
}
