import {
  describeValue,
  Fault,
  readScore,
  rootTaskId,
  type AuditEntry,
  type RunId,
  type RunScore,
  type ScoreOptions,
  type Scores,
  type StoredScore,
  type TenantScope,
} from "../../kernel/index.ts";

/** Who scores a run, and where. */
interface Judge {
  readonly scores: Scores;
  readonly runId: RunId;
  /** The author of a score that names none. */
  readonly by: string;
  /** S6: the scope of the handle. If it names a user, all scores through this handle have that user as author. */
  readonly scope: TenantScope | undefined;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** Z1: checks a score, stores it and returns it without its comment. */
export async function putScore(
  { scores, runId, by, scope, at }: Judge,
  options: ScoreOptions,
): Promise<RunScore> {
  const score = { ...readScore(options, by), at };
  const { userId = score.by } = scope ?? {};
  if (userId !== score.by)
    throw new Fault(
      "invalid_argument",
      `invalid by ${describeValue(score.by)} of score(): this handle comes from the view of user ${describeValue(userId)} and scores only as that user; use a handle of the runtime for another name`,
    );
  await scores.put(runId, score);
  return { name: score.name, value: score.value, by: score.by, at };
}

/**
 * Z2: returns the entry of a score in the audit log. Scores come after the events, because they have no place among
 * them.
 */
export function scoreEntry(runId: RunId, { by, at, ...given }: StoredScore): AuditEntry {
  return {
    runId,
    seq: null,
    at,
    taskId: rootTaskId,
    actor: by,
    fromOutside: true,
    action: "run_score",
    details: given,
  };
}
