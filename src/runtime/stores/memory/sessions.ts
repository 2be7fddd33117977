import {
  deepFreeze,
  rootLeafOf,
  type AgentId,
  type PlacedEntry,
  type RunId,
  type SessionChange,
  type SessionEntry,
  type SessionId,
  type Sessions,
  type SessionSummary,
} from "../../../kernel/index.ts";
import { refuseOrphans } from "../orphan-entries.ts";

type Append = Extract<SessionChange, { readonly type: "append" }>;

interface SessionRow {
  readonly agentId: AgentId;
  readonly entries: Map<string, PlacedEntry>;
  updatedAt: number;
}

export class MemorySessions implements Sessions {
  readonly #rows = new Map<SessionId, SessionRow>();

  async apply(changes: readonly SessionChange[]): Promise<void> {
    this.applyNow(changes);
  }

  async read(
    sessionId: SessionId,
    { hiddenToo = false }: { readonly hiddenToo?: boolean } = {},
  ): Promise<readonly PlacedEntry[]> {
    const entries = [...(this.#rows.get(sessionId)?.entries.values() ?? [])];
    const seen = hiddenToo ? entries : entries.filter(({ visibility }) => visibility === "visible");
    // Nobody who is handed an entry can change it for the others.
    return seen.map(({ entry, visibility }) => ({ entry: deepFreeze(entry), visibility }));
  }

  async list(
    options: { readonly agentId?: AgentId; readonly limit?: number } = {},
  ): Promise<readonly SessionSummary[]> {
    const { agentId, limit = 50 } = options;
    return [...this.#rows]
      .filter(([, row]) => agentId === undefined || row.agentId === agentId)
      .map(([sessionId, row]) => ({
        sessionId,
        agentId: row.agentId,
        entries: row.entries.size,
        updatedAt: row.updatedAt,
      }))
      .toSorted((one, other) => other.updatedAt - one.updatedAt)
      .slice(0, limit);
  }

  async delete(sessionId: SessionId): Promise<void> {
    this.#rows.delete(sessionId);
  }

  /** For the journal, which applies a commit's changes with the rest of it. Refuses before it changes anything. */
  applyNow(changes: readonly SessionChange[]): void {
    refuseOrphans(changes, (sessionId, entryId) => this.#rows.get(sessionId)?.entries.has(entryId) ?? false);
    for (const change of changes) this.#apply(change);
  }

  #create({ sessionId, agentId }: Append): SessionRow {
    const row = { agentId, entries: new Map<string, PlacedEntry>(), updatedAt: 0 };
    this.#rows.set(sessionId, row);
    return row;
  }

  /** What a run wrote that never became visible. For those who delete it. */
  removeHiddenNow(sessionId: SessionId, runId: RunId): void {
    const entries = this.#rows.get(sessionId)?.entries;
    for (const [id, { entry, visibility }] of entries ?? []) {
      if (entry.runId === runId && visibility !== "visible") entries?.delete(id);
    }
  }

  #apply(change: SessionChange): void {
    const row = this.#rows.get(change.sessionId);
    switch (change.type) {
      case "append": {
        const kept = row ?? this.#create(change);
        const { id, at } = change.entry;
        if (kept.entries.has(id)) return;
        kept.entries.set(id, change.atLeaf === true ? placedAtLeaf(change, kept) : change);
        kept.updatedAt = Math.max(kept.updatedAt, at);
        return;
      }
      case "reveal":
        for (const [id, { entry, visibility }] of row?.entries ?? []) {
          if (visibility !== "visible" && isOf(entry, change))
            row?.entries.set(id, { entry, visibility: "visible" });
        }
        return;
      case "remove":
        for (const [id, { entry }] of row?.entries ?? []) {
          if (isOf(entry, change)) row?.entries.delete(id);
        }
    }
  }
}

/** The change that brought an entry stands for it, where it says all there is to say: a session has many. */
function placedAtLeaf({ entry, visibility }: Append, row: SessionRow): PlacedEntry {
  const parentId = leafIn(row);
  return { entry: parentId === entry.parentId ? entry : { ...entry, parentId }, visibility };
}

function isOf(
  { runId, taskId }: SessionEntry,
  change: Extract<SessionChange, { readonly runId: RunId }>,
): boolean {
  return runId === change.runId && (change.taskId === undefined || taskId === change.taskId);
}

/** N2. */
function leafIn({ entries }: SessionRow): string | null {
  if (entries.size === 0) return null;
  const visible = [...entries.values()].filter(({ visibility }) => visibility === "visible");
  return rootLeafOf(visible.map(({ entry }) => entry));
}
