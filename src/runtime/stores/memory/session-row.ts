import {
  deepFreeze,
  formatTaskId,
  continuesFrom,
  rebaseBatch,
  batchEntries,
  batchEntryId,
  type AgentId,
  type EntryVisibility,
  type StoredEntry,
  type RunId,
  type MessageBatch,
  type SessionChange,
  type SessionEntry,
  type TaskId,
} from "../../../kernel/index.ts";
import { EntryIndex } from "./entry-index.ts";

type Append = Extract<SessionChange, { readonly type: "append" }>;
type Say = Extract<SessionChange, { readonly type: "say" }>;

/** Entries that were added together. They are expanded when they are read. */
interface PlacedSaid {
  readonly said: MessageBatch;
  readonly visibility: EntryVisibility;
}

type Placed = StoredEntry | PlacedSaid;

/** A run, or one of its tasks. */
type Writer = { readonly runId: RunId; readonly taskId?: TaskId };

/** One session. */
export class SessionRow {
  readonly agentId: AgentId;
  updatedAt: number;
  size = 0;
  /** Entries and batches in the order of appending. */
  #placed: Placed[] = [];
  /** Ids of the entries that are not in a batch. */
  readonly #ids = new Set<string>();
  readonly #said = new EntryIndex();

  /** `at` is the time at which the session was created. */
  constructor(agentId: AgentId, at: number) {
    this.agentId = agentId;
    this.updatedAt = at;
  }

  has(id: string): boolean {
    return this.#ids.has(id) || this.#said.has(id);
  }

  /** Whether this run wrote all entries. */
  isOnlyOf(runId: RunId): boolean {
    return this.#placed.every((placed) => writtenIn(placed).runId === runId);
  }

  /**
   * Stores the change itself as the entry where possible: a session has many entries, and this saves an object for
   * each.
   */
  append(change: Append): void {
    const { entry, atLeaf } = change;
    if (this.has(entry.id)) return;
    this.#ids.add(entry.id);
    this.#place(atLeaf === true ? this.#atLeaf(change) : change, 1, entry.at);
  }

  say(say: Say): void {
    if (say.visibility === "visible") {
      // N3: a visible batch continues from the leaf.
      const leafId = this.#leaf(say.batch.taskId);
      if (!continuesFrom(say.batch, leafId)) {
        for (const each of rebaseBatch(this.#visible(), leafId, say)) this.#say(each);
        return;
      }
    }
    this.#say(say);
  }

  #say({ batch: said, visibility, ...change }: Say): void {
    const { messages } = said;
    let known = this.#said.knows(said.stem) ? messages.length : 0;
    while (known > 0 && !this.has(batchEntryId(said, known - 1))) known--;
    if (known === 0) {
      this.#said.add(said);
      this.#place({ said, visibility }, messages.length, said.at);
    }
    // A run that resumes appends all its messages again. Only those that are not stored yet are added.
    else
      for (const entry of batchEntries(said).slice(known))
        this.append({ ...change, type: "append", entry, visibility });
  }

  /** Returns frozen entries, so that no reader changes them for others. */
  entries(includeHidden: boolean): readonly StoredEntry[] {
    const shown: StoredEntry[] = [];
    for (const placed of this.#placed) {
      const { visibility } = placed;
      if (visibility !== "visible" && !includeHidden) continue;
      if ("entry" in placed) shown.push({ entry: deepFreeze(placed.entry), visibility });
      else
        for (const entry of batchEntries(placed.said)) shown.push({ entry: deepFreeze(entry), visibility });
    }
    return shown;
  }

  reveal(writer: Writer): void {
    const since: StoredEntry[] = [];
    this.#placed = this.#placed.flatMap((placed, index) => {
      if (placed.visibility === "visible" || !isOf(placed, writer)) return [placed];
      const isPending = placed.visibility === "pending" && "entry" in placed && isOfRoot(placed.entry);
      if (isPending && this.#hasGoneOn(index)) {
        since.push(placed);
        return [];
      }
      return [{ ...bare(placed), visibility: "visible" as const }];
    });
    // N3: entries that were pending move behind the leaf.
    for (const { entry } of since)
      this.#placed.push({ entry: { ...entry, parentId: this.#leaf(root) }, visibility: "visible" });
  }

  remove(writer: Writer, isGoing: (visibility: EntryVisibility) => boolean = () => true): void {
    const gone = new Set<MessageBatch>();
    this.#placed = this.#placed.filter((placed) => {
      if (!isOf(placed, writer) || !isGoing(placed.visibility)) return true;
      this.size -= "said" in placed ? placed.said.messages.length : 1;
      if ("entry" in placed) this.#ids.delete(placed.entry.id);
      else gone.add(placed.said);
      return false;
    });
    this.#said.remove(gone);
  }

  #place(placed: Placed, count: number, at: number): void {
    this.#placed.push(placed);
    this.size += count;
    this.updatedAt = Math.max(this.updatedAt, at);
  }

  /** N2: returns the entry with the leaf as its parent. */
  #atLeaf({ entry, visibility }: Append): StoredEntry {
    const parentId = this.#leaf(root);
    return { entry: parentId === entry.parentId ? entry : { ...entry, parentId }, visibility };
  }

  /**
   * N2: returns the leaf for this task. The root continues from the last entry of a root task, a child from the last
   * entry.
   */
  #leaf(taskId: TaskId): string | null {
    for (let index = this.#placed.length - 1; index >= 0; index--) {
      const placed = this.#placed[index] as Placed;
      if (!isSaidTo(taskId, placed)) continue;
      if ("said" in placed) return batchEntryId(placed.said, placed.said.messages.length - 1);
      return placed.entry.type === "leaf" ? placed.entry.targetId : placed.entry.id;
    }
    return null;
  }

  /** Whether an entry of the conversation comes after this index. */
  #hasGoneOn(index: number): boolean {
    for (let later = index + 1; later < this.#placed.length; later++)
      if (isSaidTo(root, this.#placed[later] as Placed)) return true;
    return false;
  }

  #visible(): readonly SessionEntry[] {
    return this.entries(false).map(({ entry }) => entry);
  }
}

const root = formatTaskId(0);

/** Whether the entry or batch is part of the conversation that this task continues. */
function isSaidTo(taskId: TaskId, placed: Placed): boolean {
  if (placed.visibility !== "visible") return false;
  if (taskId === root && !isOfRoot("said" in placed ? placed.said : placed.entry)) return false;
  if ("said" in placed) return placed.said.messages.length > 0;
  return placed.entry.type !== "label" && placed.entry.type !== "session_info";
}

function isOfRoot({ taskId }: Pick<SessionEntry, "taskId">): boolean {
  return (taskId ?? root) === root;
}

function bare(placed: Placed): { readonly entry: SessionEntry } | { readonly said: MessageBatch } {
  return "said" in placed ? { said: placed.said } : { entry: placed.entry };
}

function writtenIn(placed: Placed): MessageBatch | SessionEntry {
  return "said" in placed ? placed.said : placed.entry;
}

function isOf(placed: Placed, { runId, taskId }: Writer): boolean {
  const written = writtenIn(placed);
  return written.runId === runId && (taskId === undefined || written.taskId === taskId);
}
