import type { RunId } from "../base/identity.ts";
import type { StoredScore } from "../run/run-score.ts";
import type { TenantScope } from "../run/run-meta.ts";

/** Maximum number of current scores of a run, which are pairs of a name and an author. */
export const maxScores = 100;

/** Maximum number of scores of a run, including scores that later ones have replaced. */
export const maxScoreHistory = 1_000;

/** A score as a caller gives it to a store. @advanced */
export type ScoreDraft = Omit<StoredScore, "replacedAt">;

/**
 * The scores of runs. People and scorers give them from outside the run, mostly after its end and in processes that
 * host no agent. Therefore they are not events, which only the owner of a run can write. Every store passes
 * `scoreContract`, which checks:
 *
 * - Z1 For each name and author, the run has one current score. A later score replaces it; a score with the same
 *   value and comment changes nothing.
 * - Z2 `list` returns every score, oldest first, including replaced ones. No later write changes value, author or
 *   time of a score.
 * - Z3 `Journal.list` and `Journal.summary` return the current scores without their comments, and `Journal.changes`
 *   reports the run.
 * - Z4 `RunQuery.score` selects the runs with a current score of this name, by any author, that lies between the
 *   bounds.
 * - Z5 A score of a run that does not exist, or is outside the scope (S6), throws `not_found`. A run that has ended
 *   can still be scored.
 * - Z6 A run has at most `maxScores` current scores, and `maxScoreHistory` scores in all. A further score throws
 *   `too_large`.
 * - Z7 The erasure of the root task removes the comments, and later scores are stored without a comment. Names,
 *   values, authors and times remain. The scores of a run are deleted with it. A fork begins without scores.
 *
 * @advanced
 */
export interface Scores {
  put(runId: RunId, score: ScoreDraft, scope?: TenantScope): Promise<void>;
  list(runId: RunId, scope?: TenantScope): Promise<readonly StoredScore[]>;
}
