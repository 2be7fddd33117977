import type { RunId } from "../base/identity.ts";
import type { StoredScore } from "../run/run-score.ts";
import type { TenantScope } from "../run/run-meta.ts";

/** Maximum number of scores of a run that count: pairs of a name and an author. */
export const maxScores = 100;

/** Maximum number of scores of a run with those that were replaced. */
export const maxScoreHistory = 1_000;

/** A score as a caller gives it to a store. */
export type ScoreDraft = Omit<StoredScore, "replacedAt">;

/**
 * The scores of runs. They are given from outside, by people and scorers, mostly after the end of a run and by processes that host no
 * agent; so they are no events, which only the owner of a run writes. Every store passes `scoreContract`, which checks:
 *
 * - Z1 One score of each name and author counts. A later one replaces it; one with the same value and comment changes nothing.
 * - Z2 `list` returns every score that was put, the first one first, also those that were replaced. No later write changes value,
 *   author or time of a score.
 * - Z3 `Journal.list` and `Journal.summary` return the scores that count, without their comments, and `Journal.changes` reports the run.
 * - Z4 `RunQuery.score` selects the runs with a score of this name that counts and lies between the bounds, by any author.
 * - Z5 A score of a run that does not exist, or is outside the scope (S6), is refused with `not_found`. The end of a run changes nothing.
 * - Z6 A run has at most `maxScores` scores that count, and `maxScoreHistory` in all. More are refused with `too_large`.
 * - Z7 The erasure of the root task removes the comments, and scores that come later keep none. Names, values, authors and times stay.
 *   The scores of a run are deleted with it. A fork begins without scores.
 */
export interface Scores {
  put(runId: RunId, score: ScoreDraft, scope?: TenantScope): Promise<void>;
  list(runId: RunId, scope?: TenantScope): Promise<readonly StoredScore[]>;
}
