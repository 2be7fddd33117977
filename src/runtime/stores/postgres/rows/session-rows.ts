import type {
  SessionId,
  SessionPage,
  SessionQuery,
  SessionSummary,
  TenantScope,
} from "../../../../kernel/index.ts";
import { noTenant, tenantText } from "../../codec/stored-run.ts";
import { asciiLower, sessionCursorOf, sessionPageOf } from "../../session-cursor.ts";
import { Conditions } from "../../sql/conditions.ts";
import { isWithin } from "../../sql/session-rows.ts";
import type { Queries } from "../db/queries.ts";
import { summaryOf, type ListedSession, type NewSession, type SessionRow } from "../../sql/session-state.ts";
import { isInScope, scopeValues } from "../../sql/run-row.ts";

const findRow = `SELECT id, updated_at AS "updatedAt", leaf_id AS "leafId", last_id AS "lastId", name, title
  FROM {sessions} WHERE session_id = $1 AND ${isInScope(2)}`;
const insertRow = `INSERT INTO {sessions} (session_id, agent_id, tenant, user_id, updated_at, leaf_id, last_id, name, title)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id`;
const updateRow = `UPDATE {sessions} SET updated_at = $2, leaf_id = $3, last_id = $4, name = $5, title = $6 WHERE id = $1`;
const listedColumns = `id AS place, session_id AS "sessionId", agent_id AS "agentId", user_id AS "userId",
  CASE WHEN tenant = '${noTenant}' THEN NULL ELSE substr(tenant, 2) END AS "tenantId",
  name, title, leaf_id AS "leafId", updated_at AS "updatedAt",
  (SELECT coalesce(sum(count), 0) FROM {entries} WHERE session = sessions.id) AS entries`;
const findListed = `SELECT ${listedColumns} FROM {sessions} AS sessions WHERE session_id = $1 AND ${isInScope(2)}`;

/** S6: returns the row of a session. `undefined` if it does not exist in the scope. */
export function findSession(
  queries: Queries,
  sessionId: SessionId,
  scope?: TenantScope,
): Promise<SessionRow | undefined> {
  return queries.get<SessionRow>(findRow, sessionId, ...scopeValues(scope));
}

/** S6: returns a session. `undefined` if it does not exist in the scope. */
export async function sessionSummary(
  queries: Queries,
  sessionId: SessionId,
  scope?: TenantScope,
): Promise<SessionSummary | undefined> {
  const row = await queries.get<ListedSession>(findListed, sessionId, ...scopeValues(scope));
  return row === undefined ? undefined : summaryOf(row);
}

export async function listSessions(queries: Queries, query: SessionQuery): Promise<SessionPage> {
  const { after, limit } = sessionCursorOf(query);
  const where = conditionsOf(query);
  where.add("session_id IS NOT NULL AND (updated_at, id) < (?, ?)", after.updatedAt, after.place);
  const found = await queries.all<ListedSession>(
    `SELECT ${listedColumns} FROM {sessions} AS sessions WHERE ${where.sql}
     ORDER BY updated_at DESC, id DESC LIMIT ${where.value(limit + 1)}`,
    ...where.values,
  );
  const { shown, next } = sessionPageOf(found, limit);
  return { sessions: shown.map(summaryOf), next };
}

/** Creates a session and returns the id of its row. */
export async function insertSession(queries: Queries, session: NewSession): Promise<number> {
  const { sessionId, agentId, tenantId, userId, updatedAt, leafId, lastId, name, title } = session;
  const row = await queries.get<{ readonly id: number }>(
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
  );
  return (row as { readonly id: number }).id;
}

export async function updateSession(queries: Queries, session: SessionRow): Promise<void> {
  const { id, updatedAt, leafId, lastId, name, title } = session;
  await queries.run(updateRow, id, updatedAt, leafId, lastId, name, title);
}

/** Deletes the row of a session without entries. */
export async function deleteSession(queries: Queries, id: number): Promise<void> {
  await queries.run("DELETE FROM {sessions} WHERE id = $1", id);
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

/** The collation "C" makes `lower` change ASCII letters only. */
function contains(column: string): string {
  return `strpos(lower(coalesce(${column}, '') COLLATE "C"), ?) > 0`;
}
