import {
  deepFreeze,
  Fault,
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
import { ComingEntries } from "../coming-entries.ts";

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
    for (const { entry } of seen) deepFreeze(entry);
    return seen;
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
    this.#refuseOrphans(changes);
    for (const change of changes) this.#apply(change);
  }

  /** What a run wrote that never became visible. For those who delete it. */
  removeHiddenNow(sessionId: SessionId, runId: RunId): void {
    const entries = this.#rows.get(sessionId)?.entries;
    for (const [id, { entry, visibility }] of entries ?? []) {
      if (entry.runId === runId && visibility !== "visible") entries?.delete(id);
    }
  }

  #refuseOrphans(changes: readonly SessionChange[]): void {
    const coming = new ComingEntries();
    for (const change of changes) {
      if (change.type !== "append") continue;
      const { sessionId, entry } = change;
      const { parentId } = entry;
      if (
        change.atLeaf !== true &&
        parentId !== null &&
        !coming.has(sessionId, parentId) &&
        this.#rows.get(sessionId)?.entries.has(parentId) !== true
      ) {
        throw new Fault(
          "not_found",
          `entry ${entry.id} names a parent that session ${sessionId} does not have: ${parentId}`,
        );
      }
      coming.add(sessionId, entry.id);
    }
  }

  #apply(change: SessionChange): void {
    const row = this.#rows.get(change.sessionId);
    switch (change.type) {
      case "append": {
        const { sessionId, agentId, visibility, atLeaf } = change;
        const kept = row ?? { agentId, entries: new Map<string, PlacedEntry>(), updatedAt: 0 };
        this.#rows.set(sessionId, kept);
        const entry = atLeaf === true ? { ...change.entry, parentId: leafIn(kept) } : change.entry;
        if (kept.entries.has(entry.id)) return;
        kept.entries.set(entry.id, { entry, visibility });
        kept.updatedAt = Math.max(kept.updatedAt, entry.at);
        return;
      }
      case "reveal":
        for (const [id, { entry }] of row?.entries ?? []) {
          if (isOf(entry, change)) row?.entries.set(id, { entry, visibility: "visible" });
        }
        return;
      case "remove":
        for (const [id, { entry }] of row?.entries ?? []) {
          if (isOf(entry, change)) row?.entries.delete(id);
        }
    }
  }
}

function isOf(
  { runId, taskId }: SessionEntry,
  change: Extract<SessionChange, { readonly runId: RunId }>,
): boolean {
  return runId === change.runId && (change.taskId === undefined || taskId === change.taskId);
}

/** N2. */
function leafIn({ entries }: SessionRow): string | null {
  const visible = [...entries.values()].filter(({ visibility }) => visibility === "visible");
  return rootLeafOf(visible.map(({ entry }) => entry));
}
