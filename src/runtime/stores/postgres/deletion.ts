import type { CollectOptions, RunId, SessionId } from "../../../kernel/index.ts";
import { RunState } from "../codec/stored-run.ts";
import { isInScope, scopeValues } from "../sql/run-row.ts";
import type { Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";
import { freeHeldRuns } from "../sql/held-runs.ts";
import { freeMessages } from "../sql/inbox.ts";
import type { Collector } from "./retention/collector.ts";
import { sessionLock } from "../sql/session-rows.ts";
import type { SessionChanges } from "../sql/session-changes.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";
import type { RunFeeds } from "./tail/run-feed.ts";

export interface DeletionOptions {
  readonly tables: Tables;
  readonly collector: Collector;
  readonly sessions: SessionChanges;
  readonly deltas: DeltaBoard;
  readonly feeds: RunFeeds;
}

interface Doomed {
  readonly runId: RunId;
  readonly sessionId: SessionId;
}

/** Maximum number of runs that one transaction deletes. */
const mostRuns = 64;

const findOne = `SELECT run_id AS "runId", session_id AS "sessionId" FROM {runs} WHERE run_id = $1`;
const isCollectable = `ended_at < $1 AND run_id IS NOT NULL AND owner IS NULL AND state <> ${RunState.READY}
  AND NOT EXISTS (SELECT 1 FROM {mail} WHERE run = runs.id) AND run_id <> ALL($2::text[]) AND ${isInScope(3)}`;
const findEnded = `SELECT run_id AS "runId", session_id AS "sessionId" FROM {runs} AS runs WHERE ${isCollectable}
  ORDER BY ended_at LIMIT ${mostRuns}`;
/** The lock lets no worker take the run and no mail reach it before the transaction ends. */
const lockEnded = `SELECT 1 FROM {runs} AS runs WHERE ${isCollectable} AND run_id = $5 FOR UPDATE`;
const lockAny = "SELECT 1 FROM {runs} WHERE run_id = $1 FOR UPDATE";
const deleteRun = `UPDATE {runs} SET run_id = NULL, owner = NULL, wake_at = NULL, state = ${RunState.ENDED} WHERE run_id = $1`;

/** Deletes runs for every reader at once. The collector frees their rows later. */
export class Deletion {
  readonly #options: DeletionOptions;

  constructor(options: DeletionOptions) {
    this.#options = options;
  }

  async delete(runId: RunId): Promise<void> {
    await this.#write(async (transaction) => {
      const runs = await transaction.all<Doomed>(findOne, runId);
      return this.#deleteAll(transaction, runs, (run) => transaction.get(lockAny, run.runId));
    });
    await this.#options.collector.collect();
  }

  async collect(options: CollectOptions): Promise<number> {
    let count = 0;
    for (;;) {
      const deleted = await this.#write((transaction) => this.#deleteEnded(transaction, options));
      if (deleted === 0) break;
      count += deleted;
    }
    if (count > 0) await this.#options.collector.collect();
    return count;
  }

  async #deleteEnded(
    transaction: Transaction,
    { endedBefore, except, scope }: CollectOptions,
  ): Promise<readonly RunId[]> {
    const values = [endedBefore, except?.() ?? [], ...scopeValues(scope)] as const;
    const runs = await transaction.all<Doomed>(findEnded, ...values);
    return this.#deleteAll(transaction, runs, (run) => transaction.get(lockEnded, ...values, run.runId));
  }

  /** Deletes those of the runs that `lock` still finds. */
  async #deleteAll(
    transaction: Transaction,
    runs: readonly Doomed[],
    lock: (run: Doomed) => Promise<object | undefined>,
  ): Promise<readonly RunId[]> {
    const { tables, sessions } = this.#options;
    if (runs.length > 0) await transaction.lock(...runs.map(({ sessionId }) => sessionLock(sessionId)));
    const deleted: RunId[] = [];
    for (const run of runs) {
      const { runId, sessionId } = run;
      if ((await lock(run)) === undefined) continue;
      await transaction.do(freeMessages(runId));
      await transaction.do(sessions.removeHidden(sessionId, runId));
      await transaction.run(deleteRun, runId);
      await transaction.do(freeHeldRuns(sessionId, tables.tick()));
      deleted.push(runId);
    }
    return deleted;
  }

  async #write(apply: (transaction: Transaction) => Promise<readonly RunId[]>): Promise<number> {
    const { tables, deltas, feeds } = this.#options;
    const deleted = await tables.database.write(apply);
    for (const runId of deleted) {
      tables.owned.delete(runId);
      deltas.forget(runId);
      feeds.drop(runId);
    }
    return deleted.length;
  }
}
