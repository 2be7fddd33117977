import {
  conversationOf,
  sessionWithin,
  unnamedBy,
  type AgentId,
  type StoredEntry,
  type RunId,
  type RunSummary,
  type SessionChange,
  type SessionId,
  type SessionQuery,
  type Sessions,
  type SessionSummary,
} from "../../../kernel/index.ts";
import type { MemoryContents } from "./contents.ts";
import { refuseOrphans } from "../orphan-entries.ts";
import { summaryOf } from "./run-summary.ts";
import { SessionRow } from "./session-row.ts";
import type { Tables } from "./tables.ts";

const none: readonly StoredEntry[] = [];

export class MemorySessions implements Sessions {
  readonly #rows = new Map<SessionId, SessionRow>();
  readonly #tables: Tables;
  readonly #contents: MemoryContents;

  constructor(tables: Tables, contents: MemoryContents) {
    this.#tables = tables;
    this.#contents = contents;
  }

  has(sessionId: SessionId): boolean {
    return this.#rows.has(sessionId);
  }

  #drop(sessionId: SessionId): void {
    this.#rows.delete(sessionId);
    this.#contents.releaseNow({ sessionId });
  }

  async apply(changes: readonly SessionChange[]): Promise<void> {
    this.applyNow(changes);
  }

  read(
    sessionId: SessionId,
    { includeHidden = false }: { readonly includeHidden?: boolean } = {},
  ): readonly StoredEntry[] {
    return this.#rows.get(sessionId)?.entries(includeHidden) ?? none;
  }

  async list({ agentId, under, limit = 50 }: SessionQuery = {}): Promise<readonly SessionSummary[]> {
    return [...this.#rows]
      .filter(([, row]) => agentId === undefined || row.agentId === agentId)
      .filter(([sessionId]) => under === undefined || sessionId.startsWith(sessionWithin(under, "")))
      .map(([sessionId, row]) => ({
        sessionId,
        agentId: row.agentId,
        entries: row.size,
        updatedAt: row.updatedAt,
      }))
      .toSorted((one, other) => other.updatedAt - one.updatedAt)
      .slice(0, limit);
  }

  async delete(sessionId: SessionId): Promise<RunSummary | undefined> {
    const run = this.#tables.ofSession
      .get(sessionId)
      ?.find(({ end, mail }) => end === null || mail.length > 0);
    if (run !== undefined) return summaryOf(run);
    this.#drop(sessionId);
    const within = sessionWithin(sessionId, "");
    const workers = [...this.#rows].filter(([each]) => each.startsWith(within));
    for (const [each] of workers) this.#drop(each);
    return undefined;
  }

  async collect({ unnamedBefore }: { readonly unnamedBefore: number }): Promise<number> {
    /** Sessions that may be deleted, by conversation. */
    const over = new Map<SessionId, SessionId[]>();
    const kept = new Set<SessionId>();
    for (const [sessionId, row] of this.#rows) {
      const conversation = conversationOf(sessionId);
      const runId = unnamedBy(conversation);
      if (runId === undefined || kept.has(conversation)) continue;
      const those = over.get(conversation);
      if (this.#tables.ofSession.has(conversation) || row.updatedAt >= unnamedBefore || !row.isOnlyOf(runId))
        kept.add(conversation);
      else if (those === undefined) over.set(conversation, [sessionId]);
      else those.push(sessionId);
    }
    let count = 0;
    for (const [conversation, sessionIds] of over) {
      if (kept.has(conversation)) continue;
      for (const sessionId of sessionIds) this.#drop(sessionId);
      count += sessionIds.length;
    }
    return count;
  }

  /** Applies the session changes of a commit. The journal calls this. Validates before it changes anything. */
  applyNow(changes: readonly SessionChange[], at = 0): void {
    refuseOrphans(changes, (sessionId, entryId) => this.#rows.get(sessionId)?.has(entryId) ?? false);
    for (const change of changes) this.#apply(change, at);
  }

  /** Removes the entries of a run that are not visible. Called when the run is deleted. */
  removeHiddenNow(sessionId: SessionId, runId: RunId): void {
    this.#remove(sessionId, (row) => row.remove({ runId }, (visibility) => visibility !== "visible"));
  }

  /** Removes entries, and the session with its last entry. */
  #remove(sessionId: SessionId, remove: (row: SessionRow) => void): void {
    const row = this.#rows.get(sessionId);
    if (row === undefined) return;
    remove(row);
    if (row.size === 0) this.#drop(sessionId);
  }

  #apply(change: SessionChange, at: number): void {
    switch (change.type) {
      case "append":
        this.#row(change, at).append(change);
        return;
      case "say":
        this.#row(change, at).say(change);
        return;
      case "reveal":
        this.#rows.get(change.sessionId)?.reveal(change);
        return;
      case "remove":
        this.#remove(change.sessionId, (row) => row.remove(change));
    }
  }

  #row(where: { readonly sessionId: SessionId; readonly agentId: AgentId }, at: number): SessionRow {
    const { sessionId, agentId } = where;
    let row = this.#rows.get(sessionId);
    if (row === undefined) this.#rows.set(sessionId, (row = new SessionRow(agentId, at)));
    return row;
  }
}
