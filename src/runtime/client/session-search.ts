import {
  type EventLoop,
  Fault,
  messageText,
  type SearchHit,
  type SearchPage,
  type SessionEntry,
  type SessionId,
  type SessionQuery,
  type Sessions,
  type SessionSummary,
  type TenantScope,
} from "../../kernel/index.ts";

/** Number of entries that are read at once. */
const pageSize = 256;
/** Number of characters around a match. */
const around = 40;

/** Position at which a search continues: after an entry of the session that follows `list` in the list of sessions. */
interface Position {
  readonly list: string | null;
  readonly sessionId: SessionId | null;
  readonly entryId: string | null;
}

const start: Position = { list: null, sessionId: null, entryId: null };

/** What a search reads. With `sessionId`, it reads only this session. */
export interface Search {
  readonly text: string;
  readonly sessionId?: SessionId;
  readonly query: Omit<SessionQuery, "limit" | "after">;
  readonly scope?: TenantScope;
  readonly limit: number;
  readonly after?: string;
}

/**
 * Searches the visible entries of sessions, one session after the other. Between two pages, other work of the
 * process runs. Costs O(entries read).
 */
export async function searchSessions(
  sessions: Sessions,
  search: Search,
  eventLoop: EventLoop,
): Promise<SearchPage> {
  const hits: SearchHit[] = [];
  let position = search.after === undefined ? start : positionOf(search.after);
  for (;;) {
    const found = await nextSession(sessions, search, position.list);
    if (found === undefined) return { hits, next: null };
    const after = found.sessionId === position.sessionId ? position.entryId : null;
    for await (const hit of searchSession(sessions, found.sessionId, search, after, eventLoop)) {
      if (hits.length === search.limit) {
        const last = hits.at(-1);
        const entryId = last?.sessionId === found.sessionId ? last.entryId : null;
        return { hits, next: cursorAt({ list: position.list, sessionId: found.sessionId, entryId }) };
      }
      hits.push(hit);
    }
    if (found.next === null) return { hits, next: null };
    position = { list: found.next, sessionId: null, entryId: null };
  }
}

async function nextSession(
  sessions: Sessions,
  { sessionId, query }: Search,
  after: string | null,
): Promise<{ readonly sessionId: SessionId; readonly next: string | null } | undefined> {
  if (sessionId !== undefined) {
    const session = await sessions.find(sessionId);
    return session !== undefined && isSelected(session, query) ? { sessionId, next: null } : undefined;
  }
  const { sessions: found, next } = await sessions.list({
    ...query,
    withWorkers: false,
    limit: 1,
    ...(after !== null && { after }),
  });
  const [first] = found;
  return first === undefined ? undefined : { sessionId: first.sessionId, next };
}

function isSelected(session: SessionSummary, { agentId, tenantId, userId }: SessionQuery): boolean {
  return (
    (agentId === undefined || session.agentId === agentId) &&
    (tenantId === undefined || session.tenantId === tenantId) &&
    (userId === undefined || session.userId === userId)
  );
}

async function* searchSession(
  sessions: Sessions,
  sessionId: SessionId,
  { text, scope }: Search,
  from: string | null,
  eventLoop: EventLoop,
): AsyncGenerator<SearchHit> {
  const wanted = text.toLowerCase();
  for (let after = from; ;) {
    const page = await sessions.read(sessionId, {
      limit: pageSize,
      ...(after !== null && { after }),
      ...(scope !== undefined && { scope }),
    });
    for (const { entry } of page) {
      const excerpt = excerptOf(textOfEntry(entry), wanted);
      if (excerpt !== undefined) yield { sessionId, entryId: entry.id, at: entry.at, excerpt };
    }
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    after = last.entry.id;
    await new Promise<void>((resolve) => eventLoop.nextTurn(resolve));
  }
}

function textOfEntry(entry: SessionEntry): string {
  if (entry.type === "message" || entry.type === "custom_message") return messageText(entry.message);
  return entry.type === "compaction" || entry.type === "branch_summary" ? entry.summary : "";
}

function excerptOf(text: string, wanted: string): string | undefined {
  const place = text.toLowerCase().indexOf(wanted);
  if (place < 0) return undefined;
  const from = Math.max(0, place - around);
  return text.slice(from, place + wanted.length + around).toWellFormed();
}

function cursorAt(position: Position): string {
  return JSON.stringify([position.list, position.sessionId, position.entryId]);
}

function positionOf(cursor: string): Position {
  try {
    const parts: unknown = JSON.parse(cursor);
    if (Array.isArray(parts) && parts.length === 3 && parts.every(isTextOrNull)) {
      const [list, sessionId, entryId] = parts as [string | null, SessionId | null, string | null];
      return { list, sessionId, entryId };
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new Fault(
    "invalid_argument",
    `invalid cursor ${JSON.stringify(cursor)}: pass the \`next\` of an earlier page of the same search`,
  );
}

function isTextOrNull(value: unknown): boolean {
  return value === null || typeof value === "string";
}
