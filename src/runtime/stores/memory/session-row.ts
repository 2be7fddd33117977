import {
  batchEntries,
  batchEntry,
  batchEntryId,
  continuesFrom,
  deepFreeze,
  formatTaskId,
  indexInBatch,
  PathCollector,
  rebaseBatch,
  sessionTitle,
  type AgentId,
  type EntryVisibility,
  type MessageBatch,
  type PathQuery,
  type RunId,
  type SessionChange,
  type SessionEntry,
  type SessionOwner,
  type SessionPath,
  type StoredEntry,
  type TaskId,
} from "../../../kernel/index.ts";
import { EntryIndex, type PlacedSaid } from "./entry-index.ts";

type Append = Extract<SessionChange, { readonly type: "append" }>;
type Say = Extract<SessionChange, { readonly type: "say" }>;
type Placed = StoredEntry | PlacedSaid;

/** A run, or one of its tasks. */
type Writer = { readonly runId: RunId; readonly taskId?: TaskId };

/** What a session is created with. */
export interface NewSession {
  readonly agentId: AgentId;
  readonly owner: SessionOwner;
  /** Number of the session in the order of creation. */
  readonly place: number;
  /** Time at which the session is created. */
  readonly at: number;
}

/** One session. */
export class SessionRow {
  readonly agentId: AgentId;
  readonly owner: SessionOwner;
  readonly place: number;
  updatedAt: number;
  size = 0;
  name: string | null = null;
  title: string | null = null;
  /** N2: the current entry. */
  leafId: string | null = null;
  /** N3: the current entry for a child task, which is the last visible entry of any task. */
  lastId: string | null = null;
  /** Entries and batches in the order in which they were appended. */
  #placed: Placed[] = [];
  /** The entries and batches that are not visible, in the order in which they were appended. */
  #unseen: Placed[] = [];
  /** The entries that are not in a batch. */
  readonly #entries = new Map<string, StoredEntry>();
  readonly #said = new EntryIndex();

  constructor({ agentId, owner, place, at }: NewSession) {
    this.agentId = agentId;
    this.owner = owner;
    this.place = place;
    this.updatedAt = at;
  }

  has(id: string): boolean {
    return this.#find(id) !== undefined;
  }

  isVisible(id: string): boolean {
    return this.#find(id)?.visibility === "visible";
  }

  /** Whether this run wrote all entries. */
  isOnlyOf(runId: RunId): boolean {
    return this.#placed.every((placed) => writtenIn(placed).runId === runId);
  }

  /**
   * Appends an entry. Where possible, it stores the change itself as the entry, because a session has many entries
   * and this saves an object for each.
   */
  append(change: Append): void {
    const { entry, atLeaf } = change;
    if (this.has(entry.id)) return;
    const placed = atLeaf === true ? this.#atLeaf(change) : change;
    this.#entries.set(entry.id, placed);
    if (entry.type === "session_info") this.name = entry.name;
    this.#place(placed, 1, entry.at);
  }

  say(say: Say): void {
    if (say.visibility === "visible") {
      // N3: a visible batch continues from the current entry.
      const leafId = say.batch.taskId === root ? this.leafId : this.lastId;
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
      const placed = { said, visibility };
      this.#said.add(placed);
      this.#place(placed, messages.length, said.at);
    }
    // A run that resumes appends all its messages again. Only those that are not stored yet are added.
    else
      for (const entry of batchEntries(said).slice(known))
        this.append({ ...change, type: "append", entry, visibility });
  }

  /** Returns the entries. They are frozen, so that a reader cannot change them for other readers. */
  entries(includeHidden: boolean): readonly StoredEntry[] {
    const shown = this.#placed.filter(({ visibility }) => includeHidden || visibility === "visible");
    return shown.flatMap(expanded);
  }

  /** Returns the entries that are not visible, frozen. */
  unseen(): readonly StoredEntry[] {
    return this.#unseen.flatMap(expanded);
  }

  /** Returns the visible labels in the order in which they were appended. */
  labels(): readonly SessionEntry[] {
    return this.#placed.flatMap((placed) =>
      "entry" in placed && placed.entry.type === "label" && placed.visibility === "visible"
        ? [placed.entry]
        : [],
    );
  }

  /** N5: returns a path of frozen entries. `undefined` if the given entry is not visible. */
  path({ leafId, ofChild = false, from = "root", limit }: PathQuery): SessionPath | undefined {
    const last = leafId ?? (ofChild ? this.lastId : this.leafId);
    const path = new PathCollector(from, limit);
    for (let id = last; id !== null;) {
      const placed = this.#find(id);
      if (placed?.visibility !== "visible") break;
      const isOver =
        "entry" in placed ? !path.add(deepFreeze(placed.entry)) : !addBatch(path, placed.said, id);
      if (isOver) break;
      id = "entry" in placed ? placed.entry.parentId : placed.said.parentId;
    }
    return path.isEmpty && leafId !== undefined ? undefined : { leafId: last, entries: path.take() };
  }

  reveal(writer: Writer): void {
    const revealed = this.#unseen.filter((placed) => isOf(placed, writer));
    if (revealed.length === 0) return;
    this.#unseen = this.#unseen.filter((placed) => !isOf(placed, writer));
    const since: StoredEntry[] = [];
    for (const placed of revealed) {
      const index = this.#placed.lastIndexOf(placed);
      const isPending = placed.visibility === "pending" && "entry" in placed && isOfRoot(placed.entry);
      if (isPending && this.#hasGoneOn(index)) {
        since.push(placed);
        this.#placed.splice(index, 1);
      } else this.#placed[index] = this.#revealed(placed);
    }
    this.#findLeaves();
    // N3: entries that were pending move behind the current entry.
    for (const { entry } of since) {
      const placed = { entry: { ...entry, parentId: this.leafId }, visibility: "visible" } as const;
      this.#entries.set(entry.id, placed);
      this.#placed.push(placed);
      this.#moveLeaf(placed);
    }
  }

  remove(writer: Writer, isGoing: (visibility: EntryVisibility) => boolean = () => true): void {
    const gone = new Set<Placed>();
    const goneBatches = new Set<PlacedSaid>();
    for (const placed of this.#placed) {
      if (!isOf(placed, writer) || !isGoing(placed.visibility)) continue;
      gone.add(placed);
      this.size -= "said" in placed ? placed.said.messages.length : 1;
      if ("entry" in placed) this.#entries.delete(placed.entry.id);
      else goneBatches.add(placed);
    }
    if (gone.size === 0) return;
    this.#said.remove(goneBatches);
    this.#placed = this.#placed.filter((placed) => !gone.has(placed));
    this.#unseen = this.#unseen.filter((placed) => !gone.has(placed));
    this.#findLeaves();
    this.#findNames();
  }

  #find(id: string): Placed | undefined {
    return this.#entries.get(id) ?? this.#said.find(id);
  }

  #place(placed: Placed, count: number, at: number): void {
    this.#placed.push(placed);
    this.size += count;
    this.updatedAt = Math.max(this.updatedAt, at);
    this.title ??= titleOf(placed);
    if (placed.visibility === "visible") this.#moveLeaf(placed);
    else this.#unseen.push(placed);
  }

  #revealed(placed: Placed): Placed {
    if ("said" in placed) {
      const revealed = { said: placed.said, visibility: "visible" } as const;
      this.#said.replace(placed, revealed);
      return revealed;
    }
    const revealed = { entry: placed.entry, visibility: "visible" } as const;
    this.#entries.set(placed.entry.id, revealed);
    return revealed;
  }

  /** N2: returns the entry with the current entry as its parent. */
  #atLeaf({ entry, visibility }: Append): StoredEntry {
    const parentId = this.leafId;
    return { entry: parentId === entry.parentId ? entry : { ...entry, parentId }, visibility };
  }

  /** N2, N3: updates the current entries after a visible entry or batch was added at the end. */
  #moveLeaf(placed: Placed): void {
    if (!movesLeaf(placed)) return;
    this.lastId = leafAfter(placed);
    if (isOfRoot(writtenIn(placed))) this.leafId = this.lastId;
  }

  /** Finds the current entries again. It searches from the end, because most often the last entries decide. */
  #findLeaves(): void {
    const last = this.#placed.findLast(isLeaf);
    const ofRoot =
      last !== undefined && isOfRoot(writtenIn(last))
        ? last
        : this.#placed.findLast((placed) => isLeaf(placed) && isOfRoot(writtenIn(placed)));
    this.lastId = last === undefined ? null : leafAfter(last);
    this.leafId = ofRoot === undefined ? null : leafAfter(ofRoot);
  }

  #findNames(): void {
    const named = this.#placed.findLast(isNamed);
    this.name = named?.entry.name ?? null;
    this.title = null;
    for (const placed of this.#placed) if ((this.title ??= titleOf(placed)) !== null) return;
  }

  /** Whether a visible entry of the conversation comes after this index. */
  #hasGoneOn(index: number): boolean {
    for (let later = index + 1; later < this.#placed.length; later++) {
      const placed = this.#placed[later] as Placed;
      if (isLeaf(placed) && isOfRoot(writtenIn(placed))) return true;
    }
    return false;
  }

  #visible(): readonly SessionEntry[] {
    return this.entries(false).map(({ entry }) => entry);
  }
}

const root = formatTaskId(0);

function expanded(placed: Placed): StoredEntry[] {
  const { visibility } = placed;
  const entries = "entry" in placed ? [placed.entry] : batchEntries(placed.said);
  return entries.map((entry) => ({ entry: deepFreeze(entry), visibility }));
}

/** Adds the entries of a batch up to `lastId` to a path. Returns whether the path continues with earlier entries. */
function addBatch(path: PathCollector, said: MessageBatch, lastId: string): boolean {
  for (let index = indexInBatch(said, lastId); index >= 0; index--)
    if (!path.add(deepFreeze(batchEntry(said, index)))) return false;
  return true;
}

function isLeaf(placed: Placed): boolean {
  return placed.visibility === "visible" && movesLeaf(placed);
}

/**
 * Whether the conversation continues after the entry or batch. Entries for labels and session names do not change
 * the current entry.
 */
function movesLeaf(placed: Placed): boolean {
  if ("said" in placed) return placed.said.messages.length > 0;
  return placed.entry.type !== "label" && placed.entry.type !== "session_info";
}

function leafAfter(placed: Placed): string | null {
  if ("said" in placed) return batchEntryId(placed.said, placed.said.messages.length - 1);
  return placed.entry.type === "leaf" ? placed.entry.targetId : placed.entry.id;
}

function titleOf(placed: Placed): string | null {
  if ("entry" in placed) return placed.entry.type === "message" ? sessionTitle(placed.entry.message) : null;
  for (const message of placed.said.messages) {
    const title = sessionTitle(message);
    if (title !== null) return title;
  }
  return null;
}

type Named = { readonly entry: Extract<SessionEntry, { readonly type: "session_info" }> };

function isNamed(placed: Placed): placed is Named & StoredEntry {
  return "entry" in placed && placed.entry.type === "session_info";
}

function isOfRoot({ taskId }: Pick<SessionEntry, "taskId">): boolean {
  return (taskId ?? root) === root;
}

function writtenIn(placed: Placed): MessageBatch | SessionEntry {
  return "said" in placed ? placed.said : placed.entry;
}

function isOf(placed: Placed, { runId, taskId }: Writer): boolean {
  const written = writtenIn(placed);
  return written.runId === runId && (taskId === undefined || written.taskId === taskId);
}
