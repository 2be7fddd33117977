import { setImmediate } from "node:timers/promises";
import type { RunId, SessionId, CollectOptions } from "../../../kernel/index.ts";
import type { Collector } from "./retention/collector.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";
import { freeHeldRuns } from "../sql/held-runs.ts";
import { freeMessages } from "../sql/inbox.ts";
import type { RunFeeds } from "./tail/run-feed.ts";
import { RunState } from "../codec/stored-run.ts";
import { isInScope, scopeValues } from "../sql/run-row.ts";
import type { SessionChanges } from "../sql/session-changes.ts";
import type { Tables } from "./db/tables.ts";

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

/** Maximum time that one transaction spends on deletions. */
const sliceMs = 2;
const mostRuns = 256;

/** Deletes runs for every reader at once. The collector frees their rows later. */
export class Deletion {
  readonly #options: DeletionOptions;

  constructor(options: DeletionOptions) {
    this.#options = options;
  }

  async delete(runId: RunId): Promise<void> {
    await this.#write(() =>
      this.#deleteSome(
        this.#options.tables.database.all<Doomed>(
          "SELECT run_id AS runId, session_id AS sessionId FROM runs WHERE run_id = ?",
          runId,
        ),
      ),
    );
    await this.#options.collector.collect();
  }

  async collect(options: CollectOptions): Promise<number> {
    let count = 0;
    for (;;) {
      const deleted = await this.#write(() => this.#deleteSome(this.#findEnded(options)));
      if (deleted === 0) break;
      count += deleted;
      await setImmediate();
    }
    if (count > 0) await this.#options.collector.collect();
    return count;
  }

  #findEnded({ endedBefore, except, scope }: CollectOptions): Doomed[] {
    return this.#options.tables.database.all<Doomed>(
      `SELECT run_id AS runId, session_id AS sessionId FROM runs
       WHERE ended_at < $1 AND run_id IS NOT NULL AND owner IS NULL AND state <> ${RunState.READY}
         AND NOT EXISTS (SELECT 1 FROM mail WHERE run = runs.id)
         AND run_id NOT IN (SELECT value FROM json_each($2))
         AND ${isInScope(3)}
       ORDER BY ended_at LIMIT ${mostRuns}`,
      endedBefore,
      JSON.stringify(except?.() ?? []),
      ...scopeValues(scope),
    );
  }

  /** Deletes as many of the runs as fit into `sliceMs`. Call inside a transaction. */
  #deleteSome(runs: readonly Doomed[]): readonly RunId[] {
    const began = performance.now();
    const deleted: RunId[] = [];
    for (const run of runs) {
      this.#deleteNow(run);
      deleted.push(run.runId);
      if (performance.now() - began > sliceMs) break;
    }
    return deleted;
  }

  #deleteNow({ runId, sessionId }: Doomed): void {
    const { tables, sessions } = this.#options;
    tables.now(freeMessages(runId));
    tables.now(sessions.removeHidden(sessionId, runId));
    tables.owned.delete(runId);
    tables.database.run(
      `UPDATE runs SET run_id = NULL, owner = NULL, holder = NULL, wake_at = NULL, state = ${RunState.ENDED}
       WHERE run_id = ?`,
      runId,
    );
    tables.now(freeHeldRuns(sessionId, tables.tick()));
  }

  async #write(apply: () => readonly RunId[]): Promise<number> {
    const { tables, deltas, feeds } = this.#options;
    const deleted = await tables.write({
      apply,
      committed: (runs) => {
        for (const runId of runs) {
          deltas.forget(runId);
          feeds.drop(runId);
        }
      },
    });
    return deleted.length;
  }
}
