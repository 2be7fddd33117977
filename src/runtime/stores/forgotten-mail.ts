import type { Commit } from "../../kernel/index.ts";

const none: readonly never[] = [];

/**
 * P7: returns the ids of the mails that a commit removes from the record of received mail, because it reopens the
 * promises that they settled.
 */
export function forgottenMail({ events }: Pick<Commit, "events">): readonly string[] {
  if (events === undefined) return none;
  let found: string[] | undefined;
  for (const event of events) if (event.type === "promise_reopen") (found ??= []).push(event.data.mailId);
  return found ?? none;
}
