import type { Beat, BeatTable } from "../../worker-beats.ts";
import type { Database } from "./database.ts";
import { hasEnded, processName } from "./worker-process.ts";

/**
 * SQL condition that a worker's lease is valid. For each worker the duration with which it registered is used, not
 * that of the process that checks.
 */
export const isBeating = "beat_at > clock_timestamp() - lease_ms * interval '1 millisecond'";

const register = `INSERT INTO {workers} AS known (worker_id, incarnation, beat_at, lease_ms, process)
  VALUES ($1, $2, clock_timestamp(), $3, $4)
  ON CONFLICT (worker_id) DO UPDATE
  SET incarnation = excluded.incarnation, beat_at = excluded.beat_at, lease_ms = excluded.lease_ms, process = excluded.process
  WHERE known.beat_at <= clock_timestamp() - known.lease_ms * interval '1 millisecond'
    OR known.incarnation = excluded.incarnation RETURNING 1`;
const timeNow = "extract(epoch FROM clock_timestamp())::float8 * 1000 AS now";
const beat = `UPDATE {workers} SET beat_at = clock_timestamp() WHERE worker_id = $1 AND incarnation = $2 RETURNING ${timeNow}`;
const registerAgain = `INSERT INTO {workers} (worker_id, incarnation, beat_at, lease_ms, process)
  VALUES ($1, $2, clock_timestamp(), $3, $4)
  ON CONFLICT (worker_id) DO NOTHING`;
const lastBeat = "SELECT incarnation, beat_at::text AS at, process FROM {workers} WHERE worker_id = $1";
const unregister = "DELETE FROM {workers} WHERE worker_id = $1 AND incarnation = $2";
const withdraw = `INSERT INTO {lost_workers} (worker_id, incarnation, beat_at, lease_ms, process, ended, withdrawn)
  VALUES ($1, $2, clock_timestamp(), $3, $4, false, true)
  ON CONFLICT (worker_id, incarnation) DO UPDATE SET ended = false, withdrawn = true`;

/** The clock of the database, in epoch milliseconds. */
interface DatabaseTime {
  readonly now: number;
}

/** Creates the registrations of workers in the table `workers`, with this lease duration. */
export function beatTable(database: Database, leaseMs: number): BeatTable {
  const { statements } = database;
  return {
    address: database.address,
    now: async () => (await statements.get<DatabaseTime>(`SELECT ${timeNow}`))?.now,
    lastBeat: (workerId) => statements.get<Beat>(lastBeat, workerId),
    register: async (workerId, incarnation) =>
      (await statements.run(register, workerId, incarnation, leaseMs, processName())) > 0,
    registerAgain: async (workerId, incarnation) =>
      (await statements.run(registerAgain, workerId, incarnation, leaseMs, processName())) > 0,
    beat: async (workerId, incarnation) => {
      const { rows } = await database.once(beat, workerId, incarnation);
      return (rows as readonly DatabaseTime[])[0]?.now;
    },
    withdraw: async (workerId, incarnation) =>
      void (await statements.run(withdraw, workerId, incarnation, leaseMs, processName())),
    unregister: async (workerId, incarnation) =>
      void (await statements.run(unregister, workerId, incarnation)),
    hasEnded,
  };
}
