import type { LostOwner } from "../../../kernel/index.ts";
import { RunState } from "../codec/stored-run.ts";
import type { Queries } from "./db/queries.ts";
import type { Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";
import type { FormerWorker } from "../worker-beats.ts";
import { isBeating } from "./db/beat-table.ts";
import { hasEnded, hostOf } from "./db/worker-process.ts";
import { mostWoken } from "./ready-runs.ts";
import { checkTime } from "../sql/flow-queue.ts";
import { isChanged } from "../sql/run-row.ts";

const lastCommit = "(SELECT max(number) FROM {commits} WHERE run = runs.id)";

/**
 * L7: number of lease durations without a sign of life after which the process of a worker counts as ended,
 * wherever it ran.
 */
const leasesUntilKnown = 10;

/** L7: SQL for the number of recoveries of a run since its last commit. */
export const recoveriesNow = `CASE WHEN recoveries > 0 AND recovered_at = ${lastCommit} THEN recoveries ELSE 0 END`;

/** SQL for the list of workers that own runs. It costs one index lookup per owner. */
const withOwners = `WITH RECURSIVE owners AS (
    (SELECT owner FROM {runs} WHERE owner IS NOT NULL ORDER BY owner LIMIT 1)
    UNION ALL
    SELECT (SELECT runs.owner FROM {runs} AS runs WHERE runs.owner > owners.owner ORDER BY runs.owner LIMIT 1)
    FROM owners WHERE owners.owner IS NOT NULL
  )`;

/** SQL of the dead workers that own runs. */
export const deadOwners = `${withOwners}
  SELECT owner FROM owners WHERE owner IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM {workers} WHERE worker_id = owner AND ${isBeating})`;

const ownersNow = `${withOwners}
  SELECT owner, process, coalesce(${isBeating}, false) AS "isBeating" FROM owners LEFT JOIN {workers} ON worker_id = owner
  WHERE owner IS NOT NULL`;

/** Returns the workers that own runs and whose lease has expired, or whose process is known to have ended. */
export async function goneOwners(queries: Queries): Promise<readonly string[]> {
  const found = await queries.all<{
    readonly owner: string;
    readonly process: string | null;
    readonly isBeating: boolean;
  }>(ownersNow);
  return found.filter((each) => !each.isBeating || hasEnded(each.process)).map(({ owner }) => owner);
}

/**
 * SQL that inserts a row which no other transaction ever sees. Until the end of this transaction, no worker can
 * register under the name.
 */
const lockName = `INSERT INTO {workers} (worker_id, incarnation, beat_at, lease_ms) VALUES ($1, 0, '-infinity', 0)
  ON CONFLICT (worker_id) DO NOTHING`;
const gone = 'RETURNING incarnation, beat_at::text AS "beatAt", lease_ms AS "leaseMs", process';
const unregister = `DELETE FROM {workers} WHERE worker_id = $1 AND NOT ${isBeating} ${gone}`;
const unregisterEnded = `DELETE FROM {workers} WHERE worker_id = $1 AND incarnation = $2 ${gone}`;

const noteLost = `INSERT INTO {lost_workers} (worker_id, incarnation, beat_at, lease_ms, process, ended)
  VALUES ($1, $2, $3::timestamptz, $4, $5, $6) ON CONFLICT (worker_id, incarnation) DO UPDATE SET ended = excluded.ended`;
const forgetOld = "DELETE FROM {lost_workers} WHERE beat_at < clock_timestamp() - interval '30 days'";
const lastLost = `SELECT incarnation, process, ended FROM {lost_workers} WHERE worker_id = $1
  ORDER BY beat_at DESC LIMIT 1`;
/** L7: SQL that marks the earlier processes of a worker as ended, because its name has a new registration. */
const endEarlier = "UPDATE {lost_workers} SET ended = true WHERE worker_id = $1 AND NOT withdrawn";
const endedNow = `SELECT lost.worker_id AS "workerId", incarnation::text AS registration, process, withdrawn,
    ended OR beat_at <= clock_timestamp() - ${leasesUntilKnown} * lease_ms * interval '1 millisecond' AS "isKnown"
  FROM {lost_workers} AS lost JOIN unnest($1::text[], $2::bigint[]) AS wanted (worker_id, registration)
    ON lost.worker_id = wanted.worker_id AND lost.incarnation = wanted.registration`;

const recover = `UPDATE {runs} AS runs SET owner = NULL, state = ${RunState.READY}, ready_at = $2, wake_at = ${checkTime}, ${isChanged},
    recoveries_in_all = recoveries_in_all + 1,
    recoveries = CASE WHEN recovered_at = ${lastCommit} THEN recoveries + 1 ELSE 1 END,
    lost = CASE WHEN recovered_at = ${lastCommit} THEN coalesce(lost, $4) ELSE $4 END, lost_at = $5, recovered_at = ${lastCommit}`;
const recoverRuns = `${recover} WHERE id IN (SELECT id FROM {runs} WHERE owner = $1 AND ($3::bigint IS NULL OR id = $3)
    ORDER BY id LIMIT ${mostWoken} FOR UPDATE SKIP LOCKED)`;

/** A registration that was deleted because its worker is probably dead. */
interface GoneWorker {
  readonly incarnation: number;
  readonly beatAt: string;
  readonly leaseMs: number;
  readonly process: string | null;
}

/** What is known about a worker whose runs are recovered. */
interface LostWorker {
  readonly workerId: string;
  /** Number of the registration. `null` if it was deleted before, because the worker was unregistered. */
  readonly incarnation: number | null;
  readonly process: string | null;
  /** Whether the worker's process is known to have ended. */
  readonly hasEnded: boolean;
}

/** L7: makes several runs of a worker, or one of them, ready and counts their recovery. Returns their number. */
async function recoverRunsOf(
  tables: Tables,
  transaction: Transaction,
  { workerId, incarnation, process, hasEnded: isKnown }: LostWorker,
  id: number | null = null,
): Promise<number> {
  for (const run of tables.owned.values())
    if (run.workerId === workerId && (id === null || run.id === id)) tables.owned.delete(run.runId);
  const now = tables.tick();
  const lost: LostOwner = {
    workerId,
    registration: incarnation === null ? null : String(incarnation),
    host: hostOf(process),
    at: Math.floor(now / 1_000),
    hasEnded: isKnown,
  };
  return transaction.run(recoverRuns, workerId, now, id, JSON.stringify(lost), lost.at);
}

/**
 * L6, L7: recovers the runs of an earlier process, because a worker has registered under the same name. Returns
 * their number.
 */
export async function recoverFormer(
  tables: Tables,
  transaction: Transaction,
  workerId: string,
  former: FormerWorker,
): Promise<number> {
  await transaction.run(endEarlier, workerId);
  return recoverRunsOf(tables, transaction, { workerId, ...former, hasEnded: true });
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
  const [row] = await transaction.all<GoneWorker>(unregisterEnded, workerId, incarnation);
  if (row === undefined) return;
  await recoverRunsOf(tables, transaction, await lostWorker(transaction, workerId, row), id);
}

/**
 * Recovers runs of a worker that is probably dead. Its registration is deleted first, so that a late sign of life
 * fails; if a sign of life came before, the worker is alive and nothing is recovered. A worker whose registration
 * was already deleted must not register again before its runs are taken. Otherwise it would find that it still owns
 * them and answer `check` from memory (J3).
 */
export async function recoverDead(
  tables: Tables,
  transaction: Transaction,
  { workerId, id = null }: { readonly workerId: string; readonly id?: number | null },
): Promise<void> {
  await transaction.run(lockName, workerId);
  const [row] = await transaction.all<GoneWorker>(unregister, workerId);
  if (row === undefined) return;
  await recoverRunsOf(tables, transaction, await lostWorker(transaction, workerId, row), id);
}

/**
 * Records that a registration is lost, and returns the lost worker. If the registration was deleted before, the
 * last record about the worker is used; without a record, the worker was unregistered.
 */
async function lostWorker(
  transaction: Transaction,
  workerId: string,
  { incarnation, beatAt, leaseMs, process }: GoneWorker,
): Promise<LostWorker> {
  if (incarnation === 0) {
    const known = await transaction.get<Pick<LostWorker, "incarnation" | "process"> & { ended: boolean }>(
      lastLost,
      workerId,
    );
    if (known === undefined) return { workerId, incarnation: null, process: null, hasEnded: true };
    return { workerId, ...known, hasEnded: known.ended || hasEnded(known.process) };
  }
  const isKnown = hasEnded(process);
  await transaction.run(forgetOld);
  await transaction.run(noteLost, workerId, incarnation, beatAt, leaseMs, process, isKnown);
  return { workerId, incarnation, process, hasEnded: isKnown };
}

/**
 * L7: returns which of the lost owners' processes are known to have ended. This is known if it was known at the
 * loss, if the process no longer exists on this machine, if the worker has registered again with a new process, or
 * after ten lease durations without a sign of life. A later sign of life makes all of this invalid.
 */
export async function knownEnds(queries: Queries, owners: readonly LostOwner[]): Promise<readonly boolean[]> {
  const registered = owners.filter(({ registration }) => registration !== null);
  if (registered.length === 0) return owners.map(({ hasEnded: isKnown }) => isKnown);
  const rows = await queries.all<{
    readonly workerId: string;
    readonly registration: string;
    readonly process: string | null;
    readonly withdrawn: boolean;
    readonly isKnown: boolean;
  }>(
    endedNow,
    registered.map(({ workerId }) => workerId),
    registered.map(({ registration }) => Number(registration)),
  );
  return owners.map(({ workerId, registration, hasEnded: wasKnown }) => {
    const row = rows.find((each) => each.workerId === workerId && each.registration === registration);
    if (row === undefined) return wasKnown;
    return !row.withdrawn && (wasKnown || row.isKnown || hasEnded(row.process));
  });
}
