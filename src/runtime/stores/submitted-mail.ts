import type { Commit, Mail, Submission } from "../../kernel/index.ts";

/** P6: the mail of a commit to runs that its submissions create. It is put after the runs exist, and again has no effect (P1). */
export function mailToSubmitted({ mail = [] }: Commit, submissions: readonly Submission[]): readonly Mail[] {
  return mail.filter(({ runId }) => submissions.some(({ run }) => run.runId === runId));
}
