import type {
  SessionId,
  SessionPage,
  SessionQuery,
  SessionSummary,
  TenantScope,
} from "../../../../kernel/index.ts";
import { sessionCursorOf, sessionPageOf } from "../../session-cursor.ts";
import type { Database } from "../db/database.ts";
import { isWithin } from "../../sql/session-rows.ts";
import { noTenant, tenantText } from "../../codec/stored-run.ts";
import { summaryOf, type ListedSession, type NewSession, type SessionRow } from "../../sql/session-state.ts";
import { isInScope, scopeValues } from "../../sql/run-row.ts";

/** A condition and its parameters. */
type Term = readonly [sql: string, ...values: (string | number | null)[]];

const findRow = `SELECT id, updated_at AS updatedAt, leaf_id AS leafId, last_id AS lastId, name, title
  FROM sessions WHERE session_id = $1 AND ${isInScope(2)}`;
const insertRow = `INSERT INTO sessions (session_id, agent_id, tenant, user_id, updated_at, leaf_id, last_id, name, title)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const updateRow =
  "UPDATE sessions SET updated_at = ?2, leaf_id = ?3, last_id = ?4, name = ?5, title = ?6 WHERE id = ?1";
const listedColumns = `id AS place, session_id AS sessionId, agent_id AS agentId, user_id AS userId,
  CASE WHEN tenant = '${noTenant}' THEN NULL ELSE substr(tenant, 2) END AS tenantId,
  name, title, leaf_id AS leafId, updated_at AS updatedAt,
  (SELECT total(count) FROM entries WHERE session = sessions.id) AS entries`;
const findListed = `SELECT ${listedColumns} FROM sessions WHERE session_id = $1 AND ${isInScope(2)}`;

/** The rows of `sessions`. */
export class SessionRows {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** S6: returns the row of a session. `undefined` if it does not exist in the scope. */
  find(sessionId: SessionId, scope?: TenantScope): SessionRow | undefined {
    return this.#database.get<SessionRow>(findRow, sessionId, ...scopeValues(scope));
  }

  /** S6: returns a session. `undefined` if it does not exist in the scope. */
  summary(sessionId: SessionId, scope?: TenantScope): SessionSummary | undefined {
    const row = this.#database.get<ListedSession>(findListed, sessionId, ...scopeValues(scope));
    return row === undefined ? undefined : summaryOf(row);
  }

  list(query: SessionQuery): SessionPage {
    const { after, limit } = sessionCursorOf(query);
    const { index, terms } = planOf(query);
    const sql = [...terms.map(([term]) => term), "session_id IS NOT NULL AND (updated_at, id) < (?, ?)"];
    const found = this.#database.all<ListedSession>(
      `SELECT ${listedColumns} FROM sessions ${index} WHERE ${sql.join(" AND ")}
       ORDER BY updated_at DESC, id DESC LIMIT ?`,
      ...terms.flatMap(([, ...values]) => values),
      after.updatedAt,
      after.place,
      limit + 1,
    );
    const { shown, next } = sessionPageOf(found, limit);
    return { sessions: shown.map(summaryOf), next };
  }

  /** Creates a session and returns the id of its row. */
  insert(session: NewSession): number {
    const { sessionId, agentId, tenantId, userId, updatedAt, leafId, lastId, name, title } = session;
    const tenant = tenantText(tenantId);
    return this.#database.insert(
      insertRow,
      sessionId,
      agentId,
      tenant,
      userId,
      updatedAt,
      leafId,
      lastId,
      name,
      title,
    );
  }

  update({ id, updatedAt, leafId, lastId, name, title }: SessionRow): void {
    this.#database.run(updateRow, id, updatedAt, leafId, lastId, name, title);
  }

  /** Deletes the row of a session without entries. */
  delete(id: number): void {
    this.#database.run("DELETE FROM sessions WHERE id = ?", id);
  }
}

/** The conditions of a query, and the most selective index for them. */
function planOf(query: SessionQuery): { readonly index: string; readonly terms: readonly Term[] } {
  const { agentId, under, withWorkers = true, tenantId, userId, text } = query;
  const terms: Term[] = [];
  if (under !== undefined) terms.push([isWithin("?"), under, under]);
  if (agentId !== undefined) terms.push(["agent_id = ?", agentId]);
  if (!withWorkers) terms.push(["instr(session_id, '#') = 0"]);
  if (tenantId === null) terms.push([`tenant = '${noTenant}'`]);
  else if (tenantId !== undefined)
    terms.push([`tenant = ? AND tenant <> '${noTenant}'`, tenantText(tenantId)]);
  if (userId === null) terms.push(["user_id IS NULL"]);
  else if (userId !== undefined) terms.push(["user_id = ? AND user_id IS NOT NULL", userId]);
  if (text !== undefined) terms.push([`(${contains("name")} OR ${contains("title")})`, text, text]);
  return { index: indexFor(query), terms };
}

function contains(column: string): string {
  return `instr(lower(ifnull(${column}, '')), lower(?)) > 0`;
}

function indexFor({ agentId, under, tenantId, userId }: SessionQuery): string {
  if (under !== undefined) return "";
  if (userId !== undefined && userId !== null) return "INDEXED BY sessions_of_user";
  // The index holds only sessions with a tenant.
  if (tenantId !== undefined && tenantId !== null) return "INDEXED BY sessions_of_tenant";
  return agentId === undefined ? "INDEXED BY sessions_by_age" : "INDEXED BY sessions_of_agent";
}
