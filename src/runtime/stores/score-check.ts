import {
  Fault,
  maxScoreHistory,
  maxScores,
  withScore,
  type RunId,
  type RunScore,
  type ScoreDraft,
  type StoredScore,
} from "../../kernel/index.ts";

/** Z1: whether a score is equal to the current one in value and comment. */
export function isSameScore(
  former: Pick<StoredScore, "value" | "comment">,
  { value, comment }: ScoreDraft,
): boolean {
  return former.value === value && former.comment === comment;
}

/**
 * Z6: returns the current scores of a run after another one is added. Throws `too_large` if the run cannot have
 * another score. `all` is the number of its scores, including replaced ones.
 */
export function checkRoom(
  runId: RunId,
  score: ScoreDraft,
  counting: readonly RunScore[],
  all: number,
): readonly RunScore[] {
  const next = withScore(counting, score);
  if (next.length > maxScores)
    throw new Fault(
      "too_large",
      `run ${runId} has scores of ${maxScores} pairs of a name and an author, the maximum: use a name and an author that it has`,
      { details: { runId } },
    );
  if (all >= maxScoreHistory)
    throw new Fault(
      "too_large",
      `run ${runId} has been scored ${maxScoreHistory} times, the maximum: the scores that it has stay`,
      { details: { runId } },
    );
  return next;
}
