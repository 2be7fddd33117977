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

/** Z1: whether a score says what the one that counts says already. */
export function isSameScore(
  former: Pick<StoredScore, "value" | "comment">,
  { value, comment }: ScoreDraft,
): boolean {
  return former.value === value && former.comment === comment;
}

/**
 * Z6: returns the scores of a run that count after another one. Throws `too_large` if the run has no room for it. `all` is the
 * number of its scores with those that were replaced.
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
