import { RunState } from "../codec/stored-run.ts";
import type { Tables } from "./db/tables.ts";
import type { WorkerLocks } from "./db/worker-lock.ts";
import { mostWoken } from "./ready-runs.ts";

const lastCommit = "(SELECT max(number) FROM commits WHERE run = runs.id)";

/** L7: SQL of the number of recoveries of a run since its last commit. */
export const recoveriesNow = `iif(recoveries > 0 AND recovered_at = ${lastCommit}, recoveries, 0)`;

/** Finds the workers that died while they owned runs, and recovers these runs. */
export class DeadWorkers {
  readonly #tables: Tables;
  readonly #locks: WorkerLocks;

  constructor(tables: Tables, locks: WorkerLocks) {
    this.#tables = tables;
    this.#locks = locks;
  }

  /** Returns the dead workers that own runs. */
  find(): string[] {
    const owners = this.#owners();
    this.#locks.forgetAllBut(new Set(owners));
    return owners.filter((owner) => this.#locks.isGone(owner));
  }

  /** L7: makes some runs of a dead worker, or one of them, ready, counts their recovery and returns their number. */
  recover(workerId: string, id: number | null = null): number {
    const { owned } = this.#tables;
    for (const run of owned.values())
      if (run.workerId === workerId && (id === null || run.id === id)) owned.delete(run.runId);
    return this.#tables.database.run(
      `UPDATE runs SET owner = NULL, holder = NULL, state = ${RunState.READY}, ready_at = ?2,
         recoveries_in_all = recoveries_in_all + 1,
         recoveries = iif(recovered_at = ${lastCommit}, recoveries + 1, 1), recovered_at = ${lastCommit}
       WHERE id IN (SELECT id FROM runs WHERE owner = ?1 AND (?3 IS NULL OR id = ?3) LIMIT ${mostWoken})`,
      workerId,
      this.#tables.tick(),
      id,
    );
  }

  #owners(): string[] {
    const owners: string[] = [];
    for (;;) {
      const row = this.#tables.database.get<{ readonly owner: string }>(
        "SELECT owner FROM runs WHERE owner > ? ORDER BY owner LIMIT 1",
        owners.at(-1) ?? "",
      );
      if (row === undefined) return owners;
      owners.push(row.owner);
    }
  }
}
