import { RunState } from "../codec/stored-run.ts";
import type { Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";
import { isBeating } from "./db/worker-beats.ts";
import { mostWoken } from "./ready-runs.ts";

const lastCommit = "(SELECT max(number) FROM {commits} WHERE run = runs.id)";

/** L7: SQL of the number of recoveries of a run since its last commit. */
export const recoveriesNow = `CASE WHEN recoveries > 0 AND recovered_at = ${lastCommit} THEN recoveries ELSE 0 END`;

/** SQL of the dead workers that own runs: a list that costs one look into an index per owner. */
export const deadOwners = `WITH RECURSIVE owners AS (
    (SELECT owner FROM {runs} WHERE owner IS NOT NULL ORDER BY owner LIMIT 1)
    UNION ALL
    SELECT (SELECT runs.owner FROM {runs} AS runs WHERE runs.owner > owners.owner ORDER BY runs.owner LIMIT 1)
    FROM owners WHERE owners.owner IS NOT NULL
  )
  SELECT owner FROM owners WHERE owner IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM {workers} WHERE worker_id = owner AND ${isBeating})`;

/** A row that no other transaction ever sees. Until the end of this one, no worker can register under the name. */
const lockName = `INSERT INTO {workers} (worker_id, incarnation, beat_at, lease_ms) VALUES ($1, 0, '-infinity', 0)
  ON CONFLICT (worker_id) DO NOTHING`;
const unregister = `DELETE FROM {workers} WHERE worker_id = $1 AND NOT ${isBeating}`;
const unregisterEnded = "DELETE FROM {workers} WHERE worker_id = $1 AND incarnation = $2";
const recover = `UPDATE {runs} AS runs SET owner = NULL, state = ${RunState.READY}, ready_at = $2,
    recoveries_in_all = recoveries_in_all + 1,
    recoveries = CASE WHEN recovered_at = ${lastCommit} THEN recoveries + 1 ELSE 1 END, recovered_at = ${lastCommit}`;
const recoverRuns = `${recover} WHERE id IN (SELECT id FROM {runs} WHERE owner = $1 AND ($3::bigint IS NULL OR id = $3)
    ORDER BY id LIMIT ${mostWoken} FOR UPDATE SKIP LOCKED)`;

/** L7: makes some runs of a worker, or one of them, ready, counts their recovery and returns their number. */
export async function recoverRunsOf(
  tables: Tables,
  transaction: Transaction,
  workerId: string,
  id: number | null = null,
): Promise<number> {
  for (const run of tables.owned.values())
    if (run.workerId === workerId && (id === null || run.id === id)) tables.owned.delete(run.runId);
  return transaction.run(recoverRuns, workerId, tables.tick(), id);
}

/** L15: unregisters a worker whose process has ended and recovers one of its runs, unless the worker has registered again. */
export async function recoverEnded(
  tables: Tables,
  transaction: Transaction,
  {
    workerId,
    incarnation,
    id,
  }: { readonly workerId: string; readonly incarnation: number; readonly id: number },
): Promise<void> {
  if ((await transaction.run(unregisterEnded, workerId, incarnation)) === 0) return;
  await recoverRunsOf(tables, transaction, workerId, id);
}

/**
 * Recovers runs of a worker that seems dead. Its registration is deleted first, so that a late beat of it fails; if a beat
 * came before, the worker is alive and nothing is recovered. A worker whose registration was already gone must not register
 * again before its runs are taken, or it would find that it still owns them and answer `check` from memory (J3).
 */
export async function recoverDead(
  tables: Tables,
  transaction: Transaction,
  { workerId, id = null }: { readonly workerId: string; readonly id?: number | null },
): Promise<void> {
  await transaction.run(lockName, workerId);
  if ((await transaction.run(unregister, workerId)) === 0) return;
  await recoverRunsOf(tables, transaction, workerId, id);
}
