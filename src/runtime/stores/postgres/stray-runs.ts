import type { RunId } from "../../../kernel/index.ts";
import { RunState } from "../codec/stored-run.ts";
import type { Tables } from "./db/tables.ts";

/** A transaction that took runs for a worker, if it has committed. */
export interface Doubt {
  readonly workerId: string;
  /** The server's id of the transaction. */
  readonly transaction: string;
  readonly runs: readonly { readonly runId: RunId; readonly epoch: number }[];
}

const outcome = "SELECT pg_xact_status($1::xid8) AS status";
/** If the transaction has committed, no other one took a run at the same epoch. */
const free = `UPDATE {runs} AS runs SET owner = NULL, state = ${RunState.READY}, ready_at = $2
  FROM unnest($3::text[], $4::bigint[]) AS stray (run_id, epoch)
  WHERE runs.run_id = stray.run_id AND runs.epoch = stray.epoch AND owner = $1`;

/** Runs that a claim may have taken without this process learning of it, because its commit got no answer. */
export class StrayRuns {
  readonly #tables: Tables;
  readonly #doubts = new Set<Doubt>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  note(doubt: Doubt): void {
    if (doubt.runs.length > 0) this.#doubts.add(doubt);
  }

  /** Makes the stray runs of a worker ready. It never touches a run that another claim of the worker has taken. */
  async free(workerId: string): Promise<void> {
    const { statements } = this.#tables.database;
    for (const doubt of this.#doubts) {
      if (doubt.workerId !== workerId) continue;
      const { transaction, runs } = doubt;
      const status = (await statements.get<{ readonly status: string | null }>(outcome, transaction))?.status;
      // The server has not noticed yet that the connection is lost. The next claim asks again.
      if (status === "in progress") continue;
      const [runIds, epochs] = [runs.map(({ runId }) => runId), runs.map(({ epoch }) => epoch)];
      if (status === "committed") await statements.run(free, workerId, this.#tables.tick(), runIds, epochs);
      this.#doubts.delete(doubt);
    }
  }
}
