import type { SQLInputValue } from "node:sqlite";
import {
  formatTaskId,
  parseTaskId,
  type AgentId,
  type EntryVisibility,
  type PlacedEntry,
  type RunId,
  type SessionChange,
  type SessionEntry,
  type SessionId,
  type Sessions,
  type SessionSummary,
  type TaskId,
} from "../../../kernel/index.ts";
import { refuseOrphans } from "../orphan-entries.ts";
import type { Collector } from "./collector.ts";
import type { Tables } from "./tables.ts";

/** As they are stored: their place in this list. */
const visibilities: readonly EntryVisibility[] = ["pending", "hidden", "visible"];
const visible = visibilities.indexOf("visible");

const entryColumns = "entry_id AS id, run_id AS runId, task, visibility, body";

/** So many at once. */
const manyRows = 16;
const intoEntries =
  "INSERT OR IGNORE INTO entries (session, entry_id, run_id, task, visibility, body) VALUES";
const oneEntry = `${intoEntries} (?, ?, ?, ?, ?, ?)`;
const manyEntries = `${intoEntries} ${Array.from({ length: manyRows }, () => "(?, ?, ?, ?, ?, ?)").join(", ")}`;

type Append = Extract<SessionChange, { readonly type: "append" }>;

interface EntryRow {
  readonly id: string;
  readonly runId: RunId | null;
  /** Counts the tasks of its run. */
  readonly task: number | null;
  readonly visibility: number;
  /** The rest of the entry. */
  readonly body: string;
}

export class SqliteSessions implements Sessions {
  readonly #tables: Tables;
  readonly #collector: Collector;

  constructor(tables: Tables, collector: Collector) {
    this.#tables = tables;
    this.#collector = collector;
  }

  apply(changes: readonly SessionChange[]): Promise<void> {
    return this.#tables.write({
      apply: () => {
        this.refuseOrphans(changes);
        this.applyNow(changes);
      },
    });
  }

  read(
    sessionId: SessionId,
    { hiddenToo = false }: { readonly hiddenToo?: boolean } = {},
  ): Promise<readonly PlacedEntry[]> {
    return this.#tables.read(() =>
      this.#tables.database
        .all<EntryRow>(
          `SELECT ${entryColumns} FROM entries
           WHERE session = (SELECT id FROM sessions WHERE session_id = ?) AND visibility >= ? ORDER BY entries.id`,
          sessionId,
          hiddenToo ? 0 : visible,
        )
        .map((row) => ({ entry: entryOf(row), visibility: visibilities[row.visibility] ?? "hidden" })),
    );
  }

  list(
    options: { readonly agentId?: AgentId; readonly limit?: number } = {},
  ): Promise<readonly SessionSummary[]> {
    const { agentId, limit = 50 } = options;
    const columns = `session_id AS sessionId, agent_id AS agentId, updated_at AS updatedAt,
      (SELECT count(*) FROM entries WHERE session = sessions.id) AS entries`;
    const newest = "ORDER BY updated_at DESC LIMIT ?";
    return this.#tables.read(() => {
      const { database } = this.#tables;
      const rows =
        agentId === undefined
          ? database.all<SessionSummary>(
              `SELECT ${columns} FROM sessions WHERE session_id IS NOT NULL ${newest}`,
              limit,
            )
          : database.all<SessionSummary>(
              `SELECT ${columns} FROM sessions WHERE session_id IS NOT NULL AND agent_id = ? ${newest}`,
              agentId,
              limit,
            );
      return rows.map((row) => ({ ...row }));
    });
  }

  async delete(sessionId: SessionId): Promise<void> {
    await this.#tables.write({
      apply: () =>
        this.#tables.database.run("UPDATE sessions SET session_id = NULL WHERE session_id = ?", sessionId),
    });
    await this.#collector.collect();
  }

  /** For those who read the journal. */
  find(sessionId: SessionId, entryId: string): SessionEntry | undefined {
    const row = this.#tables.database.get<EntryRow>(
      `SELECT ${entryColumns} FROM entries
       WHERE session = (SELECT id FROM sessions WHERE session_id = ?) AND entry_id = ?`,
      sessionId,
      entryId,
    );
    return row === undefined ? undefined : entryOf(row);
  }

  /** N1. For the journal, inside its transaction, before anything is changed. */
  refuseOrphans(changes: readonly SessionChange[]): void {
    refuseOrphans(changes, (sessionId, entryId) => this.#has(sessionId, entryId));
  }

  /** For the journal, inside its transaction. */
  applyNow(changes: readonly SessionChange[]): void {
    const { database } = this.#tables;
    /** When each that was added to was last, by key. */
    const updated = new Map<number, number>();
    for (let index = 0; index < changes.length; index++) {
      const change = changes[index];
      if (change === undefined) continue;
      if (change.type === "append") {
        const { sessionId, agentId } = change;
        const session = this.#find(sessionId) ?? this.#create(sessionId, agentId);
        const appends = appendsFrom(changes, index, change);
        index += appends.length - 1;
        const at = this.#append(session, appends);
        if (at !== undefined) updated.set(session, Math.max(updated.get(session) ?? 0, at));
        continue;
      }
      const session = this.#find(change.sessionId);
      if (session === undefined) continue;
      database.run(
        change.type === "reveal"
          ? `UPDATE entries SET visibility = ${visible}
             WHERE session = ?1 AND run_id = ?2 AND (?3 IS NULL OR task = ?3) AND visibility < 2`
          : "DELETE FROM entries WHERE session = ?1 AND run_id = ?2 AND (?3 IS NULL OR task = ?3)",
        session,
        change.runId,
        change.taskId === undefined ? null : ordinalOf(change.taskId),
      );
    }
    for (const [session, at] of updated)
      database.run("UPDATE sessions SET updated_at = ?2 WHERE id = ?1 AND updated_at < ?2", session, at);
  }

  /** What a run wrote that never became visible. For those who delete it, inside their transaction. */
  removeHiddenNow(sessionId: SessionId, runId: RunId): void {
    this.#tables.database.run(
      "DELETE FROM entries WHERE session = (SELECT id FROM sessions WHERE session_id = ?) AND run_id = ? AND visibility < 2",
      sessionId,
      runId,
    );
  }

  /** When the last of them was said, if any is new. A statement for many costs little more than one for each. */
  #append(session: number, appends: readonly Append[]): number | undefined {
    let at: number | undefined;
    for (let from = 0; from < appends.length;) {
      const left = appends.length - from;
      const count = left >= manyRows ? manyRows : 1;
      const some = appends.slice(from, from + count);
      from += count;
      const values = some.flatMap((append) => this.#rowOf(session, append));
      if (this.#tables.database.run(count === 1 ? oneEntry : manyEntries, ...values) === 0) continue;
      for (const { entry } of some) at = Math.max(at ?? 0, entry.at);
    }
    return at;
  }

  #rowOf(session: number, { entry, visibility, atLeaf }: Append): SQLInputValue[] {
    const { id, runId, taskId } = entry;
    // Set to nothing, a member is not in the text.
    const rest = { ...entry, id: undefined, runId: undefined, taskId: undefined };
    const body = JSON.stringify(atLeaf === true ? { ...rest, parentId: this.#leaf(session) } : rest);
    const task = taskId === null ? null : ordinalOf(taskId);
    return [session, id, runId, task, visibilities.indexOf(visibility), body];
  }

  #find(sessionId: SessionId): number | undefined {
    return this.#tables.database.get<{ readonly id: number }>(
      "SELECT id FROM sessions WHERE session_id = ?",
      sessionId,
    )?.id;
  }

  /** N2. */
  #leaf(session: number): string | null {
    const last = this.#tables.database.get<EntryRow>(
      `SELECT ${entryColumns} FROM entries WHERE session = ? AND visibility = ${visible} AND ifnull(task, 0) = 0
         AND body ->> 'type' NOT IN ('label', 'session_info')
       ORDER BY entries.id DESC LIMIT 1`,
      session,
    );
    if (last === undefined) return null;
    const entry = entryOf(last);
    return entry.type === "leaf" ? entry.targetId : entry.id;
  }

  #create(sessionId: SessionId, agentId: AgentId): number {
    return this.#tables.database.insert(
      "INSERT INTO sessions (session_id, agent_id, updated_at) VALUES (?, ?, 0)",
      sessionId,
      agentId,
    );
  }

  #has(sessionId: SessionId, entryId: string): boolean {
    return (
      this.#tables.database.get(
        "SELECT 1 FROM entries WHERE session = (SELECT id FROM sessions WHERE session_id = ?) AND entry_id = ?",
        sessionId,
        entryId,
      ) !== undefined
    );
  }
}

/** Those of one session from here on that can go together: what is to be under its leaf has to see what came before. */
function appendsFrom(changes: readonly SessionChange[], from: number, first: Append): readonly Append[] {
  const appends = [first];
  if (first.atLeaf === true) return appends;
  for (let index = from + 1; index < changes.length; index++) {
    const change = changes[index];
    if (change?.type !== "append" || change.sessionId !== first.sessionId || change.atLeaf === true) break;
    appends.push(change);
  }
  return appends;
}

function entryOf({ id, runId, task, body }: EntryRow): SessionEntry {
  const taskId = task === null ? null : formatTaskId(task);
  return { ...(JSON.parse(body) as object), id, runId, taskId } as SessionEntry;
}

function ordinalOf(taskId: TaskId): number {
  return Number(parseTaskId(taskId).slice(1));
}
