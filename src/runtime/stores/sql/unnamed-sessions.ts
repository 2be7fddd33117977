import { setImmediate } from "node:timers/promises";
import { conversationOf, unnamedBy, type RunId, type SessionId } from "../../../kernel/index.ts";
import { isUnnamed, sessionLock } from "./session-rows.ts";
import type { SqlTables } from "./tables.ts";
import { all, get, lock, run, type Work } from "./work.ts";

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
  /** The conversations among these sessions that must be deleted. */
  readonly found: readonly UnnamedConversation[];
}

/** One page of unnamed sessions, oldest first. */
const oldSessions = `SELECT session_id AS "sessionId", updated_at AS "updatedAt" FROM {sessions} AS sessions INDEXED BY sessions_unnamed
  WHERE ${isUnnamed} AND updated_at < $1 AND (updated_at, session_id) > ($2, $3) ORDER BY updated_at, session_id LIMIT 64`;
const findSession = "SELECT 1 FROM {sessions} WHERE session_id = $1";
/**
 * SQL condition for a session and the sessions within it (`sessionWithin`). Of the characters in ids, only "#"
 * sorts before "$".
 */
const ofConversation = "session_id >= $1 AND session_id < $1::text || '$'";

/** Deletes unnamed sessions that no later run has used. Sessions that are kept are only read. */
export class UnnamedSessions {
  readonly #tables: SqlTables;
  readonly #findForgotten: string;
  readonly #deleteForgotten: string;

  constructor(tables: SqlTables) {
    this.#tables = tables;
    const entries = tables.dialect.entriesOf("sessions.id");
    const isForgotten = `NOT EXISTS (SELECT 1 FROM {runs} WHERE session_id = $1 AND run_id IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM {sessions} AS sessions WHERE ${ofConversation} AND (updated_at >= $2
        OR EXISTS (SELECT 1 FROM {entries} AS entries WHERE ${entries} AND run_id IS DISTINCT FROM $3)))`;
    this.#findForgotten = `SELECT 1 WHERE ${isForgotten}`;
    this.#deleteForgotten = `UPDATE {sessions} SET session_id = NULL WHERE ${ofConversation} AND ${isForgotten}`;
  }

  /** Deletes the sessions that were last used before a time, page by page, and returns their number. */
  async delete(before: number): Promise<number> {
    let count = 0;
    const first: AgedSession = { sessionId: "" as SessionId, updatedAt: Number.MIN_SAFE_INTEGER };
    for (let last: AgedSession | undefined = first; last !== undefined;) {
      const after: AgedSession = last;
      const { sessions, found }: Page = await this.#tables.query(() => this.#page(after, before));
      if (found.length > 0) count += await this.#tables.transact(() => this.#deleteAll(found, before));
      last = sessions.at(-1);
      await setImmediate();
    }
    return count;
  }

  *#page({ sessionId, updatedAt }: AgedSession, before: number): Work<Page> {
    const sessions = yield* all<AgedSession>(oldSessions, before, updatedAt, sessionId);
    return { sessions, found: yield* this.#forgottenIn(sessions, before) };
  }

  *#deleteAll(found: readonly UnnamedConversation[], before: number): Work<number> {
    yield* lock(...found.map(({ conversation }) => sessionLock(conversation)));
    let deleted = 0;
    for (const { conversation, runId } of found)
      deleted += yield* run(this.#deleteForgotten, conversation, before, runId);
    return deleted;
  }

  /** Returns each conversation once: with its own session, or with a session within it if its own does not exist. */
  *#forgottenIn(sessions: readonly AgedSession[], before: number): Work<readonly UnnamedConversation[]> {
    const found = new Map<SessionId, UnnamedConversation>();
    for (const { sessionId } of sessions) {
      const conversation = conversationOf(sessionId);
      const runId = unnamedBy(conversation);
      if (runId === undefined || found.has(conversation)) continue;
      if (sessionId !== conversation && (yield* get(findSession, conversation)) !== undefined) continue;
      if ((yield* get(this.#findForgotten, conversation, before, runId)) !== undefined)
        found.set(conversation, { conversation, runId });
    }
    return [...found.values()];
  }
}
