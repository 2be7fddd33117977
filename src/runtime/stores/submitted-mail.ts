import type { Commit, Mail, Submission } from "../../kernel/index.ts";

const noMail: readonly Mail[] = [];

/** P6: the mail of a commit to runs that its submissions create. It is put after the runs exist, and again has no effect (P1). */
export function mailToSubmitted(
  { mail }: Commit,
  submissions: readonly Submission[] | undefined,
): readonly Mail[] {
  if (mail === undefined || submissions === undefined) return noMail;
  return mail.filter(({ runId }) => submissions.some(({ run }) => run.runId === runId));
}
