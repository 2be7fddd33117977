import { setImmediate } from "node:timers/promises";
import { conversationOf, unnamedBy, type RunId, type SessionId } from "../../../kernel/index.ts";
import { entriesOfSession } from "./migrations.ts";
import type { Tables } from "./tables.ts";

interface AgedSession {
  readonly id: number;
  readonly sessionId: SessionId;
  readonly updatedAt: number;
}

interface UnnamedSession {
  readonly sessionId: SessionId;
  /** It, or that of the root in whose run a worker has it. */
  readonly conversation: SessionId;
  readonly runId: RunId;
}

/** A page of them, by age. */
const oldSessions = `SELECT id, session_id AS sessionId, updated_at AS updatedAt FROM sessions
  WHERE session_id IS NOT NULL AND updated_at < ?1 AND (updated_at, id) > (?2, ?3) ORDER BY updated_at, id LIMIT 64`;
const deleteForgotten = `UPDATE sessions SET session_id = NULL WHERE session_id = ?1 AND updated_at < ?2
    AND NOT EXISTS (SELECT 1 FROM runs WHERE session_id = ?3 AND run_id IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM entries WHERE ${entriesOfSession("sessions.id")} AND run_id IS NOT ?4)`;

/**
 * Takes those that nobody named and nobody came back to out of every reader's sight, and says how many; a page at a time, between which
 * others get their turn.
 */
export async function deleteUnnamed(tables: Tables, before: number): Promise<number> {
  const { database } = tables;
  let count = 0;
  let last: Pick<AgedSession, "id" | "updatedAt"> | undefined = { id: 0, updatedAt: Number.MIN_SAFE_INTEGER };
  while (last !== undefined) {
    const { id, updatedAt }: Pick<AgedSession, "id" | "updatedAt"> = last;
    const page: readonly AgedSession[] = await tables.read(() =>
      database.all<AgedSession>(oldSessions, before, updatedAt, id),
    );
    const found = page.flatMap(({ sessionId }) => unnamedOf(sessionId) ?? []);
    const deleteNow = ({ sessionId, conversation, runId }: UnnamedSession): number =>
      database.run(deleteForgotten, sessionId, before, conversation, runId);
    if (found.length > 0)
      count += await tables.write({
        apply: () => found.map(deleteNow).reduce((one, other) => one + other),
      });
    last = page.at(-1);
    await setImmediate();
  }
  return count;
}

function unnamedOf(sessionId: SessionId): UnnamedSession | undefined {
  const conversation = conversationOf(sessionId);
  const runId = unnamedBy(conversation);
  return runId === undefined ? undefined : { sessionId, conversation, runId };
}
