import { Fault, type Commit, type SessionChange } from "../../../kernel/index.ts";
import { approvalChangesIn } from "../approval-changes.ts";
import type { Draft, Position } from "../codec/commit-draft.ts";
import { endIn } from "../run-end.ts";
import { hostIn } from "../run-host.ts";
import { forgottenMail } from "../forgotten-mail.ts";
import { stateChangeIn } from "../state-changes.ts";

const noTenant = { tenantId: null };

/** Throws `invalid_argument` if the commit or one of its events does not follow the position. */
export function checkGaps({ number, events }: Commit, position: Position): void {
  if (number !== position.number)
    throw new Fault("invalid_argument", `commit ${number} leaves a gap: expected ${position.number}`);
  let next = position.seq;
  for (const { seq } of events ?? []) {
    if (seq !== next) throw new Fault("invalid_argument", `event ${seq} leaves a gap: expected ${next}`);
    next++;
  }
}

/** Whether the commit changes more than its own row and the deltas of the messages that it records. */
export function changesMore({ commit, values }: Draft): boolean {
  const { sessions, mail, inbox, topics, mailThrough, erases, standing, spent, usage } = commit;
  return (
    values.length > 0 ||
    (mailThrough ?? sessions ?? mail ?? inbox ?? topics ?? erases ?? standing ?? spent ?? usage) !==
      undefined ||
    endIn(commit) !== undefined ||
    stateChangeIn(commit, noTenant) !== undefined ||
    hostIn(commit) !== undefined ||
    forgottenMail(commit).length > 0 ||
    approvalChangesIn(commit) !== undefined
  );
}

/** Whether the commit removes entries, which may have been the last owners of contents. */
export function removesEntries({ sessions }: { readonly sessions?: readonly SessionChange[] }): boolean {
  return sessions?.some(({ type }) => type === "remove") === true;
}
