import { setImmediate } from "node:timers/promises";
import { conversationOf, unnamedBy, type RunId, type SessionId } from "../../../../kernel/index.ts";
import { isUnnamed } from "../../sql/session-rows.ts";
import { entriesOfSession } from "../db/migrations.ts";
import type { Tables } from "../db/tables.ts";

interface AgedSession {
  readonly sessionId: SessionId;
  readonly updatedAt: number;
}

interface UnnamedConversation {
  readonly conversation: SessionId;
  /** The run that created the session. */
  readonly runId: RunId;
}

interface Page {
  readonly sessions: readonly AgedSession[];
  /** The conversations among these sessions that are to be deleted. */
  readonly found: readonly UnnamedConversation[];
}

/** One page of unnamed sessions, oldest first. */
const oldSessions = `SELECT session_id AS sessionId, updated_at AS updatedAt FROM sessions INDEXED BY sessions_unnamed
  WHERE ${isUnnamed} AND updated_at < ?1 AND (updated_at, session_id) > (?2, ?3) ORDER BY updated_at, session_id LIMIT 64`;
const findSession = "SELECT 1 FROM sessions WHERE session_id = ?";
/** The session and those within it (`sessionWithin`). Of the characters in ids, only "#" sorts before "$". */
const ofConversation = "session_id >= ?1 AND session_id < ?1 || '$'";
const isForgotten = `NOT EXISTS (SELECT 1 FROM runs WHERE session_id = ?1 AND run_id IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE ${ofConversation} AND (updated_at >= ?2
      OR EXISTS (SELECT 1 FROM entries WHERE ${entriesOfSession("sessions.id")} AND run_id IS NOT ?3)))`;
const findForgotten = `SELECT 1 WHERE ${isForgotten}`;
const deleteForgotten = `UPDATE sessions SET session_id = NULL WHERE ${ofConversation} AND ${isForgotten}`;

/**
 * Deletes unnamed sessions that no later run used, for every reader at once, and returns their number. Works page by
 * page and yields to the event loop between pages. Sessions that stay are only read.
 */
export async function deleteUnnamed(tables: Tables, before: number): Promise<number> {
  const { database } = tables;
  let count = 0;
  let last: AgedSession | undefined = { sessionId: "" as SessionId, updatedAt: Number.MIN_SAFE_INTEGER };
  while (last !== undefined) {
    const { sessions, found }: Page = await readPage(tables, last, before);
    const deleteNow = ({ conversation, runId }: UnnamedConversation): number =>
      database.run(deleteForgotten, conversation, before, runId);
    if (found.length > 0)
      count += await tables.write({
        apply: () => found.map(deleteNow).reduce((one, other) => one + other),
      });
    last = sessions.at(-1);
    await setImmediate();
  }
  return count;
}

async function readPage(
  tables: Tables,
  { sessionId, updatedAt }: AgedSession,
  before: number,
): Promise<Page> {
  return tables.read(() => {
    const sessions = tables.database.all<AgedSession>(oldSessions, before, updatedAt, sessionId);
    return { sessions, found: forgottenIn(tables, sessions, before) };
  });
}

/** Returns each conversation once: with its own session, or with a session within it if it has none itself. */
function forgottenIn(
  { database }: Tables,
  sessions: readonly AgedSession[],
  before: number,
): readonly UnnamedConversation[] {
  const found = new Map<SessionId, UnnamedConversation>();
  for (const { sessionId } of sessions) {
    const conversation = conversationOf(sessionId);
    const runId = unnamedBy(conversation);
    if (runId === undefined || found.has(conversation)) continue;
    if (sessionId !== conversation && database.get(findSession, conversation) !== undefined) continue;
    if (database.get(findForgotten, conversation, before, runId) !== undefined)
      found.set(conversation, { conversation, runId });
  }
  return [...found.values()];
}
