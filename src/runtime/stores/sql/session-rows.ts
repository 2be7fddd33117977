import type {
  SessionId,
  SessionPage,
  SessionQuery,
  SessionSummary,
  TenantScope,
} from "../../../kernel/index.ts";
import { noTenant, tenantText } from "../codec/stored-run.ts";
import { asciiLower, sessionCursorOf, sessionPageOf } from "../session-cursor.ts";
import { Conditions } from "./conditions.ts";
import { isInScope, scopeValues } from "./run-row.ts";
import { summaryOf, type ListedSession, type NewSession, type SessionRow } from "./session-state.ts";
import { all, get, run, type Work } from "./work.ts";

/** SQL condition for rows of `sessions` within another session (`sessionWithin`). "$" is the character after "#". */
export function isWithin(sessionId: string): string {
  return `session_id > ${sessionId}::text || '#' AND session_id < ${sessionId}::text || '$'`;
}

/**
 * SQL condition for rows of `sessions` whose id may be generated from a run id (`unnamedSessionId`). "`" is the
 * character after "_".
 */
export const isUnnamed = "session_id >= 'ses_run_' AND session_id < 'ses_run`'";

const findRow = `SELECT id, updated_at AS "updatedAt", leaf_id AS "leafId", last_id AS "lastId", name, title, size
  FROM {sessions} WHERE session_id = $1 AND ${isInScope(2)}`;
const insertRow = `INSERT INTO {sessions} (session_id, agent_id, tenant, user_id, updated_at, leaf_id, last_id, name, title, size)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id`;
const updateRow = `UPDATE {sessions} SET updated_at = $2, leaf_id = $3, last_id = $4, name = $5, title = $6, size = $7 WHERE id = $1`;
const listedColumns = `id AS place, session_id AS "sessionId", agent_id AS "agentId", user_id AS "userId",
  CASE WHEN tenant = '${noTenant}' THEN NULL ELSE substr(tenant, 2) END AS "tenantId",
  name, title, leaf_id AS "leafId", updated_at AS "updatedAt", size AS entries`;
const findListed = `SELECT ${listedColumns} FROM {sessions} AS sessions WHERE session_id = $1 AND ${isInScope(2)}`;

/**
 * Returns the name of the lock of a session. A transaction needs it to decide about runs of the session and to
 * change its entries.
 */
export function sessionLock(sessionId: SessionId): string {
  return `session ${sessionId}`;
}

/** S6: returns the row of a session. `undefined` if it does not exist in the scope. */
export function findSession(sessionId: SessionId, scope?: TenantScope): Work<SessionRow | undefined> {
  return get<SessionRow>(findRow, sessionId, ...scopeValues(scope));
}

/** S6: returns a session. `undefined` if it does not exist in the scope. */
export function* sessionSummary(sessionId: SessionId, scope?: TenantScope): Work<SessionSummary | undefined> {
  const row = yield* get<ListedSession>(findListed, sessionId, ...scopeValues(scope));
  return row === undefined ? undefined : summaryOf(row);
}

export function* listSessions(query: SessionQuery): Work<SessionPage> {
  const { after, limit } = sessionCursorOf(query);
  const where = conditionsOf(query);
  where.add("session_id IS NOT NULL AND (updated_at, id) < (?, ?)", after.updatedAt, after.place);
  const found = yield* all<ListedSession>(
    `SELECT ${listedColumns} FROM {sessions} AS sessions${indexFor(query)} WHERE ${where.sql}
     ORDER BY updated_at DESC, id DESC LIMIT ${where.value(limit + 1)}`,
    ...where.values,
  );
  const { shown, next } = sessionPageOf(found, limit);
  return { sessions: shown.map(summaryOf), next };
}

/** Creates a session and returns the id of its row. */
export function* insertSession(session: NewSession): Work<number> {
  const { sessionId, agentId, tenantId, userId, updatedAt, leafId, lastId, name, title, size } = session;
  const row = yield* get<{ readonly id: number }>(
    insertRow,
    sessionId,
    agentId,
    tenantText(tenantId),
    userId,
    updatedAt,
    leafId,
    lastId,
    name,
    title,
    size,
  );
  return (row as { readonly id: number }).id;
}

export function* updateSession(session: SessionRow): Work<void> {
  const { id, updatedAt, leafId, lastId, name, title, size } = session;
  yield* run(updateRow, id, updatedAt, leafId, lastId, name, title, size);
}

/** Deletes the row of a session without entries. */
export function* deleteSession(id: number): Work<void> {
  yield* run("DELETE FROM {sessions} WHERE id = $1", id);
}

function conditionsOf(query: SessionQuery): Conditions {
  const { agentId, under, withWorkers = true, tenantId, userId, text } = query;
  const where = new Conditions();
  if (under !== undefined) where.add(isWithin("?"), under, under);
  if (agentId !== undefined) where.add("agent_id = ?", agentId);
  if (!withWorkers) where.add("strpos(session_id, '#') = 0");
  if (tenantId === null) where.add(`tenant = '${noTenant}'`);
  else if (tenantId !== undefined) where.add(`tenant = ? AND tenant <> '${noTenant}'`, tenantText(tenantId));
  if (userId === null) where.add("user_id IS NULL");
  else if (userId !== undefined) where.add("user_id = ? AND user_id IS NOT NULL", userId);
  if (text !== undefined) {
    const part = asciiLower(text);
    where.add(`(${contains("name")} OR ${contains("title")})`, part, part);
  }
  return where;
}

/**
 * Returns an SQL condition that a column contains a text. With the collation "C", `lower` changes only ASCII
 * letters.
 */
function contains(column: string): string {
  return `strpos(lower(coalesce(${column}, '') COLLATE "C"), ?) > 0`;
}

/** The most selective index for a query in SQLite. */
function indexFor({ agentId, under, tenantId, userId }: SessionQuery): string {
  if (under !== undefined) return "";
  if (userId !== undefined && userId !== null) return " INDEXED BY sessions_of_user";
  // The index holds only sessions with a tenant.
  if (tenantId !== undefined && tenantId !== null) return " INDEXED BY sessions_of_tenant";
  return agentId === undefined ? " INDEXED BY sessions_by_age" : " INDEXED BY sessions_of_agent";
}
