import { rootTaskId, type Journal, type RunId, type RunRecord } from "../kernel/index.ts";
import type { WorkerContext } from "./process/worker-context.ts";
import { RunOwner } from "./run/run-owner.ts";

/**
 * L18: ends a cancelled run that was started by name and that no worker has adopted, so that a run with a misspelt
 * name does not wait forever. The run is claimed for this time. A run that a worker has adopted or owns is left to
 * the workers.
 */
export async function endUnadopted(worker: WorkerContext, { runId, kind }: RunRecord): Promise<void> {
  if (kind !== "workflow" || !(await isUnadopted(worker.store.journal, runId))) return;
  await claimAndEnd(worker, runId);
}

/**
 * L21: number of poll intervals in which the workers of its machine can end a cancelled run, before another worker
 * ends it.
 */
const pollsOfGrace = 4;

/**
 * L21: ends a cancelled run that is bound to another machine, without executing its code, if no worker there has
 * ended it within four times `pollMs`. That machine may no longer exist. It does nothing to a run that a live
 * worker owns, and to a run that has not been cancelled.
 */
export async function endBound(worker: WorkerContext, { runId }: RunRecord, pollMs: number): Promise<void> {
  const { store, clock, host } = worker;
  const isElsewhere = async (): Promise<boolean> => {
    const summary = await store.journal.summary(runId);
    return summary?.endedAt === null && (summary.host ?? host) !== host;
  };
  for (let poll = 0; poll < pollsOfGrace; poll++) {
    if (!(await isElsewhere())) return;
    await new Promise<void>((resolve) => clock.schedule(clock.now() + pollMs, resolve));
  }
  if (await isElsewhere()) await claimAndEnd(worker, runId);
}

async function claimAndEnd(worker: WorkerContext, runId: RunId): Promise<void> {
  const { store, ids, clock } = worker;
  const workerId = `cancel-${ids.next()}`;
  await store.leases.enlist(workerId);
  try {
    const [lease] = await store.leases.claim({ workerId, limit: 1, only: [runId], now: clock.now() });
    if (lease === undefined) return;
    const owner = await RunOwner.load(worker, lease);
    const { rest, isReleased } = await owner.endIfCancelled();
    if (!isReleased) await store.leases.release(lease, rest);
    // The caller may close the store next.
    await owner.whenObserved();
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
