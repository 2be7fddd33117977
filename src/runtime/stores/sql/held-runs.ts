import type { RunId, SessionId } from "../../../kernel/index.ts";
import { RunState } from "../codec/stored-run.ts";
import { atOnce } from "./flow-queue.ts";
import { isChanged, isExcluded } from "./run-row.ts";
import { all, announce, type Work } from "./work.ts";

/**
 * SQL condition for a run that has never started and has a start time. Such a held run is then suspended until that
 * time; every other held run has work.
 */
const isLater = "(start_at IS NOT NULL AND epoch = 0 AND mail_count = 0)";

/** L17: SQL condition for a run without mail that its limits have not admitted yet. */
const isQueued = "(gate IS NOT NULL AND mail_count = 0)";

const freeHeld = `UPDATE {runs} AS runs INDEXED BY runs_held
  SET state = CASE WHEN ${isLater} THEN ${RunState.SUSPENDED} WHEN ${isQueued} THEN ${RunState.QUEUED} ELSE ${RunState.READY} END,
    wake_at = CASE WHEN ${isLater} THEN start_at WHEN gate IS NOT NULL THEN ${atOnce} END, ready_at = $2, ${isChanged}
  WHERE session_id = $1 AND state = ${RunState.HELD} AND NOT ${isExcluded}
  RETURNING run_id AS "runId", wake_at AS "startAt"`;

/**
 * S5: lets workers claim the runs of a session that waited for its compaction, if no compaction is left. Call it
 * inside the transaction in which a run ends or is deleted, which has the lock of the session. `tick` is the time
 * of `SqlTables.tick`.
 */
export function* freeHeldRuns(sessionId: SessionId, tick: number): Work<void> {
  const freed = yield* all<{ readonly runId: RunId; readonly startAt: number | null }>(
    freeHeld,
    sessionId,
    tick,
  );
  for (const { runId, startAt } of freed)
    yield* announce({ kind: "new", runId, startAt: startAt === atOnce ? null : startAt });
}
