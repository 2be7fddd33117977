import {
  sessionTitle,
  type AgentId,
  type ChatMessage,
  type SessionEntry,
  type SessionId,
  type SessionOwner,
  type SessionSummary,
} from "../../../kernel/index.ts";
import { idAfter, latestOf, nameOf, type EntryBatch } from "../codec/entry-batch.ts";
import { ordinalOf } from "./entry-row.ts";

/** The facts about a session's entries that its row contains. */
interface SessionState {
  readonly updatedAt: number;
  /** N2: the current entry. */
  readonly leafId: string | null;
  /** N3: the current entry of a child task. */
  readonly lastId: string | null;
  readonly name: string | null;
  readonly title: string | null;
  /** Number of entries. */
  readonly size: number;
}

export interface SessionRow extends SessionState {
  readonly id: number;
}

/** What a session is created with. */
export interface NewSession extends SessionState, SessionOwner {
  readonly sessionId: SessionId;
  readonly agentId: AgentId;
}

/** A row of a list of sessions. */
export interface ListedSession extends SessionSummary {
  readonly place: number;
}

type Mutable<Value> = { -readonly [Key in keyof Value]: Value[Key] };

/** A session that is being changed. `stored` is its row in the table. */
export interface OpenSession extends Mutable<SessionState> {
  readonly id: number;
  readonly sessionId: SessionId;
  /** Tenant of the writer, whose contents the new entries use. */
  readonly tenantId: string | null;
  readonly stored: SessionState;
}

export function summaryOf({ place: _place, ...summary }: ListedSession): SessionSummary {
  return summary;
}

/** Returns the state of a new session with its first entries. `at` is the time of their commit. */
export function newSession(first: EntryBatch, at: number, { tenantId, userId }: SessionOwner): NewSession {
  const { sessionId, agentId } = first.first;
  const updatedAt = Math.max(latestOf(first), at);
  const state = { updatedAt, leafId: null, lastId: null, name: null, title: titleIn(first), size: 0 };
  return { sessionId, agentId, tenantId, userId, ...state };
}

/** Updates the session after a batch was stored. */
export function noteBatch(session: OpenSession, batch: EntryBatch): void {
  const { first, rests } = batch;
  const { type } = first.entry;
  session.updatedAt = Math.max(session.updatedAt, latestOf(batch));
  session.size += rests.length;
  session.title ??= titleIn(batch);
  if (type === "session_info") session.name = (rests.at(-1) as { readonly name: string }).name;
  else if (type !== "label" && first.visibility === "visible") moveLeaf(session, batch);
}

/** Returns the row to be stored, or `undefined` if nothing has changed. */
export function changedRow(session: OpenSession): SessionRow | undefined {
  const { id, updatedAt, leafId, lastId, name, title, size, stored } = session;
  const isChanged =
    updatedAt !== stored.updatedAt ||
    leafId !== stored.leafId ||
    lastId !== stored.lastId ||
    name !== stored.name ||
    title !== stored.title ||
    size !== stored.size;
  return isChanged ? { id, updatedAt, leafId, lastId, name, title, size } : undefined;
}

/** Whether one of the batches that are about to be added contains the entry. In most cases it is the last one. */
export function isComing(coming: readonly EntryBatch[], sessionId: SessionId, entryId: string): boolean {
  const { stem, number } = nameOf(entryId);
  const holder = coming.findLast(
    (batch) =>
      batch.first.sessionId === sessionId &&
      batch.stem === stem &&
      number >= batch.number &&
      number < batch.number + batch.rests.length,
  );
  return holder !== undefined;
}

/** Whether one of the batches that are about to be added contains the entry as a visible one. */
export function isShownSoon(coming: readonly EntryBatch[], sessionId: SessionId, entryId: string): boolean {
  const shown = coming.filter(({ first }) => first.visibility === "visible");
  return isComing(shown, sessionId, entryId);
}

export function titleOf(entry: SessionEntry): string | null {
  return entry.type === "message" ? sessionTitle(entry.message) : null;
}

function titleIn({ first, rests }: EntryBatch): string | null {
  if (first.entry.type !== "message") return null;
  for (const { message } of rests) {
    const title = sessionTitle(message as ChatMessage);
    if (title !== null) return title;
  }
  return null;
}

/** N2, N3: updates the current entries after a visible batch of the conversation. */
function moveLeaf(session: OpenSession, batch: EntryBatch): void {
  const { first, rests } = batch;
  const { type, taskId } = first.entry;
  const leafId =
    type === "leaf"
      ? (rests.at(-1) as { readonly targetId: string | null }).targetId
      : idAfter(batch, rests.length - 1);
  session.lastId = leafId;
  if (taskId === null || ordinalOf(taskId) === 0) session.leafId = leafId;
}
