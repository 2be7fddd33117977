/**
 * Identifies an item of an inbox, with the time since when it is there. If an item comes back, its time is
 * different.
 */
export interface InboxKey {
  readonly id: string;
  /** Epoch milliseconds. Converted to text, this is the state in which a person saw the item. */
  readonly at: number;
}

/** The key of a question to a person. */
export function keyOfQuestion(question: {
  readonly runId: string;
  readonly approvalId: string;
  readonly requestedAt: number;
}): InboxKey {
  return { id: `${question.runId}:${question.approvalId}`, at: question.requestedAt };
}

/** Returns the inbox key of a run that stopped, or that is paused as a crash loop. */
export function keyOfRun(run: {
  readonly runId: string;
  readonly endedAt: number | null;
  readonly updatedAt: number;
}): InboxKey {
  return { id: run.runId, at: run.endedAt ?? run.updatedAt };
}

/** Returns the inbox key of an undelivered message. */
export function keyOfLetter({
  message,
}: {
  readonly message: { readonly id: string; readonly sentAt: number };
}): InboxKey {
  return { id: message.id, at: message.sentAt };
}
