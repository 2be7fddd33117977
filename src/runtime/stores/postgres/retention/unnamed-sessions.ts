import { conversationOf, unnamedBy, type RunId, type SessionId } from "../../../../kernel/index.ts";
import { isUnnamed } from "../../sql/session-rows.ts";
import type { Queries, Value } from "../db/queries.ts";
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

/** One page of unnamed sessions, oldest first. */
const oldSessions = `SELECT session_id AS "sessionId", updated_at AS "updatedAt" FROM {sessions}
  WHERE ${isUnnamed} AND updated_at < $1 AND (updated_at, session_id) > ($2, $3) ORDER BY updated_at, session_id LIMIT 64`;
const findSession = "SELECT 1 FROM {sessions} WHERE session_id = $1";
/** The session and those within it (`sessionWithin`). Of the characters in ids, only "#" sorts before "$". */
const ofConversation = "session_id >= $1 AND session_id < $1::text || '$'";
const isForgotten = `NOT EXISTS (SELECT 1 FROM {runs} WHERE session_id = $1 AND run_id IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM {sessions} AS sessions WHERE ${ofConversation} AND (updated_at >= $2
      OR EXISTS (SELECT 1 FROM {entries} WHERE session = sessions.id AND run_id IS DISTINCT FROM $3)))`;
const findForgotten = `SELECT 1 WHERE ${isForgotten}`;
const deleteForgotten = `UPDATE {sessions} SET session_id = NULL WHERE ${ofConversation} AND ${isForgotten}`;

/**
 * Deletes unnamed sessions that no later run used, for every reader at once, and returns their number. Works page by
 * page. Sessions that stay are only read. `lockOf` returns the name of a session's lock.
 */
export async function deleteUnnamed(
  { database }: Tables,
  before: number,
  lockOf: (sessionId: SessionId) => string,
): Promise<number> {
  let count = 0;
  const { statements } = database;
  const first: AgedSession = { sessionId: "" as SessionId, updatedAt: Number.MIN_SAFE_INTEGER };
  for (let last: AgedSession | undefined = first; last !== undefined;) {
    const from: readonly Value[] = [before, last.updatedAt, last.sessionId];
    const sessions: readonly AgedSession[] = await statements.all<AgedSession>(oldSessions, ...from);
    const found = await forgottenIn(statements, sessions, before);
    if (found.length > 0)
      count += await database.write(async (transaction) => {
        await transaction.lock(...found.map(({ conversation }) => lockOf(conversation)));
        let deleted = 0;
        for (const { conversation, runId } of found)
          deleted += await transaction.run(deleteForgotten, conversation, before, runId);
        return deleted;
      });
    last = sessions.at(-1);
  }
  return count;
}

/** Returns each conversation once: with its own session, or with a session within it if it has none itself. */
async function forgottenIn(
  queries: Queries,
  sessions: readonly AgedSession[],
  before: number,
): Promise<readonly UnnamedConversation[]> {
  const found = new Map<SessionId, UnnamedConversation>();
  for (const { sessionId } of sessions) {
    const conversation = conversationOf(sessionId);
    const runId = unnamedBy(conversation);
    if (runId === undefined || found.has(conversation)) continue;
    if (sessionId !== conversation && (await queries.get(findSession, conversation)) !== undefined) continue;
    if ((await queries.get(findForgotten, conversation, before, runId)) !== undefined)
      found.set(conversation, { conversation, runId });
  }
  return [...found.values()];
}
