import { setImmediate } from "node:timers/promises";
import type { CollectOptions, RunId } from "../../../kernel/index.ts";
import { RunState, type RunKey } from "../codec/stored-run.ts";
import type { Collector } from "./contents.ts";
import { gateLocks, leaveGates } from "./flow-queue.ts";
import { freeHeldRuns } from "./held-runs.ts";
import { freeMessages } from "./inbox.ts";
import { isInScope, runKeyColumns, scopeValues } from "./run-row.ts";
import type { SessionChanges } from "./session-changes.ts";
import { sessionLock } from "./session-rows.ts";
import type { SqlTables } from "./tables.ts";
import { all, get, lock, run, type Work } from "./work.ts";

export interface DeletionOptions {
  readonly tables: SqlTables;
  readonly collector: Collector;
  readonly sessions: SessionChanges;
  readonly deltas: { forget(runId: RunId): void };
  readonly feeds: { drop(runId: RunId): void };
}

type Doomed = Pick<RunKey, "id" | "runId" | "sessionId" | "tenantId" | "flowText">;

/** Maximum number of runs that one transaction deletes. */
const mostRuns = 64;

const findOne = `SELECT ${runKeyColumns} FROM {runs} WHERE run_id = $1`;
const isCollectable = `ended_at < $1 AND run_id IS NOT NULL AND owner IS NULL AND state <> ${RunState.READY}
  AND NOT EXISTS (SELECT 1 FROM {mail} WHERE run = runs.id) AND run_id <> ALL($2::text[]) AND ${isInScope(3)}`;
const findEnded = `SELECT ${runKeyColumns} FROM {runs} AS runs WHERE ${isCollectable}
  ORDER BY ended_at LIMIT ${mostRuns}`;
const findOnly = `SELECT ${runKeyColumns} FROM {runs} AS runs
  WHERE ${isCollectable} AND run_id = ANY($5::text[]) ORDER BY ended_at LIMIT ${mostRuns}`;
/** SQL that locks an ended run, so that no worker claims it and no mail reaches it before the transaction ends. */
const lockEnded = `SELECT 1 FROM {runs} AS runs WHERE ${isCollectable} AND run_id = $5 FOR UPDATE`;
const lockAny = "SELECT 1 FROM {runs} WHERE run_id = $1 FOR UPDATE";

/** Deletes runs, so that no reader sees them any more. The collector deletes their rows later. */
export class Deletion {
  readonly #options: DeletionOptions;
  readonly #deleteRun: string;

  constructor(options: DeletionOptions) {
    this.#options = options;
    const { leave } = options.tables.dialect;
    this.#deleteRun = `UPDATE {runs} SET run_id = NULL, ${leave}, wake_at = NULL, state = ${RunState.ENDED} WHERE run_id = $1`;
  }

  async delete(runId: RunId): Promise<void> {
    await this.#write(() => this.#deleteOne(runId));
    await this.#options.collector.collect();
  }

  *#deleteOne(runId: RunId): Work<readonly RunId[]> {
    const runs = yield* all<Doomed>(findOne, runId);
    return yield* this.#deleteSome(runs, () => get(lockAny, runId));
  }

  async collect(options: CollectOptions): Promise<number> {
    let count = 0;
    for (;;) {
      const deleted = await this.#write(() => this.#deleteEnded(options));
      if (deleted === 0) break;
      count += deleted;
      await setImmediate();
    }
    if (count > 0) await this.#options.collector.collect();
    return count;
  }

  *#deleteEnded({ endedBefore, only, except, scope }: CollectOptions): Work<readonly RunId[]> {
    const values = [endedBefore, except?.() ?? [], ...scopeValues(scope)] as const;
    const runs =
      only === undefined
        ? yield* all<Doomed>(findEnded, ...values)
        : yield* all<Doomed>(findOnly, ...values, only);
    return yield* this.#deleteSome(runs, ({ runId }) => get(lockEnded, ...values, runId));
  }

  /** Deletes those of the runs that `find` still finds, as many as one transaction may delete. */
  *#deleteSome(
    runs: readonly Doomed[],
    find: (run: Doomed) => Work<object | undefined>,
  ): Work<readonly RunId[]> {
    const { tables, sessions } = this.#options;
    const began = performance.now();
    const deleted: RunId[] = [];
    yield* lock(...runs.flatMap((each) => [sessionLock(each.sessionId), ...gateLocks(each)]));
    for (const doomed of runs) {
      const { runId, sessionId } = doomed;
      if ((yield* find(doomed)) === undefined) continue;
      yield* freeMessages(runId);
      yield* sessions.removeHidden(sessionId, runId);
      // The owner in this store reads the fence again.
      tables.owned.delete(runId);
      yield* run(this.#deleteRun, runId);
      yield* freeHeldRuns(sessionId, tables.tick());
      yield* leaveGates(doomed);
      deleted.push(runId);
      if (performance.now() - began > tables.dialect.sliceMs) break;
    }
    return deleted;
  }

  async #write(work: () => Work<readonly RunId[]>): Promise<number> {
    const { tables, deltas, feeds } = this.#options;
    const deleted = await tables.transact(work);
    for (const runId of deleted) {
      deltas.forget(runId);
      feeds.drop(runId);
    }
    return deleted.length;
  }
}
