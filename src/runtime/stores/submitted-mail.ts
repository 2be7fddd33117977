import type { Commit, Mail, Submission } from "../../kernel/index.ts";

/**
 * P6: returns the mail of a commit to runs that its submissions create. It is stored after the runs exist; storing
 * it again has no effect (P1).
 */
export function mailToSubmitted({ mail = [] }: Commit, submissions: readonly Submission[]): readonly Mail[] {
  return mail.filter(({ runId }) => submissions.some(({ run }) => run.runId === runId));
}
