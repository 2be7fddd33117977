import { userMessage, type RunId, type SessionEntry, type Store } from "../../../src/kernel/index.ts";
import {
  appendEntry,
  ownRun,
  rootTask,
  sessionEntry,
  sessionId,
} from "../../../src/testing/contracts/store-fixtures.ts";

/** Writes entries of a run, among them one with a large text and one that is moved, and an entry of no run. */
export async function writeEntries(store: Store): Promise<RunId> {
  const lease = await ownRun(store);
  const { runId } = lease;
  const entry = (number: number, text: string): SessionEntry => {
    const parentId = number === 0 ? null : `${runId}/${number - 1}`;
    const message = userMessage(text);
    return { type: "message", id: `${runId}/${number}`, parentId, at: 1, runId, taskId: rootTask, message };
  };
  const large = appendEntry(entry(1, "x".repeat(10_000)));
  const first = appendEntry(entry(0, "fly to Oslo"));
  await store.journal.append(lease, { number: 1, at: 1, sessions: [first, large] });
  // Pending entries behind which the conversation continues are moved when they become visible.
  const pending = appendEntry(entry(2, "stay in Bergen"), "pending");
  await store.journal.append(lease, { number: 2, at: 2, sessions: [pending] });
  const outside = { ...sessionEntry("outside", `${runId}/1`), runId: null, taskId: null };
  await store.sessions.apply([appendEntry(outside)]);
  const reveal = { type: "reveal", sessionId, runId } as const;
  await store.journal.append(lease, { number: 3, at: 3, sessions: [reveal] });
  return runId;
}

/**
 * Edits of session entries that a person with write access to the tables could make. Each edit has the entry that
 * `verify` names.
 */
export const entryEdits: readonly (readonly [name: string, sql: string, entry: string])[] = [
  ["an edited text", "UPDATE entries SET body = replace(body, 'Oslo', 'Rome')", "run_a/0 to run_a/1"],
  [
    "an edited text of an entry that was moved",
    "UPDATE entries SET body = replace(body, 'Bergen', 'Rome')",
    "run_a/2",
  ],
  [
    "another parent",
    `UPDATE entries SET body = replace(body, '"outside"', 'null') WHERE number = 2`,
    "run_a/2",
  ],
  ["another type", "UPDATE entries SET type = 'custom' WHERE number = 2", "run_a/2"],
  ["another task", "UPDATE entries SET task = 7 WHERE number = 2", "run_a/2"],
  ["another name", "UPDATE entries SET number = 9 WHERE number = 2", "run_a/9"],
  ["no run", "UPDATE entries SET run_id = NULL WHERE number = 2", "run_a/2"],
  ["a run that does not exist", "UPDATE entries SET run_id = 'run_gone' WHERE number = 2", "run_a/2"],
  ["an empty run", "UPDATE entries SET run_id = '' WHERE number = 2", "run_a/2"],
  ["another seal", "UPDATE entries SET seal = 'made up' WHERE number = 2", "run_a/2"],
  [
    "an edited entry of no run",
    "UPDATE entries SET body = replace(body, 'outside', 'elsewhere') WHERE run_id IS NULL",
    "outside",
  ],
  ["a large text that is missing", "DELETE FROM content_pieces", "run_a/0 to run_a/1"],
];
