import { batchEntry, batchSource, type SessionChange, type SessionEntry } from "../../../kernel/index.ts";

type Append = Extract<SessionChange, { readonly type: "append" }>;
export type Say = Extract<SessionChange, { readonly type: "say" }>;

/**
 * The id of an entry in two parts: its prefix, named stem, and its number. Most ids have this form, so that
 * consecutive entries can share a row.
 */
export interface EntryName {
  readonly stem: string;
  /** Number after the stem, or `unnumbered` if the id has none. */
  readonly number: number;
}

const unnumbered = -1;
const numbered = /^(.*\/)(0|[1-9][0-9]{0,8})$/s;

/** The members of an entry that do not follow from its id or from the first entry of its batch. */
export interface EntryRest {
  /** Time in epoch milliseconds. Absent if it equals the time of the previous entry. */
  readonly at?: number;
  readonly [member: string]: unknown;
}

/**
 * Consecutive entries that are stored in one row. Each entry is the child of the previous one, has the next number,
 * and has the same run, task, type, session and visibility.
 */
export interface EntryBatch extends EntryName {
  readonly first: Append;
  readonly rests: readonly EntryRest[];
  /** N3: the change that begins with this batch, if it continues from the current entry. */
  readonly say?: Say;
}

/** A change to a session in which consecutive appends are combined into batches. */
export type BatchedChange = EntryBatch | Exclude<SessionChange, Append | Say>;

/** Maximum number of entries in one row, because a row is read and searched as a whole. */
const mostEntries = 256;

/** Combines consecutive appends into batches and keeps the order. */
export function batchChanges(changes: readonly SessionChange[]): readonly BatchedChange[] {
  const batches: BatchedChange[] = [];
  for (let index = 0; index < changes.length;) {
    const change = changes[index++];
    if (change?.type === "say") addSaid(change, batches);
    else if (change?.type === "append") {
      const entries = [change.entry];
      const name = nameOf(change.entry.id);
      while (entries.length < mostEntries && goesOn(changes[index], change, name, entries)) index++;
      batches.push({
        ...name,
        first: change,
        rests: entries.map((entry, place) => restOf(entry, entries[place - 1])),
      });
    } else if (change !== undefined) batches.push(change);
  }
  return batches;
}

function addSaid(say: Say, batches: BatchedChange[]): void {
  const { sessionId, agentId, visibility, batch: said } = say;
  const { messages, at } = said;
  for (let from = 0; from < messages.length; from += mostEntries) {
    const entry = batchEntry(said, from);
    const rests = messages.slice(from, from + mostEntries).map((message, index) => ({
      ...(index === 0 && { at }),
      message,
      ...batchSource(said, from + index),
    }));
    batches.push({
      ...nameOf(entry.id),
      first: { type: "append", sessionId, agentId, entry, visibility },
      rests,
      ...(from === 0 && visibility === "visible" && { say }),
    });
  }
}

function restOf(entry: SessionEntry, before: SessionEntry | undefined): EntryRest {
  const { id: _id, runId: _runId, taskId: _taskId, type: _type, parentId: _parentId, at, ...rest } = entry;
  return at === before?.at ? rest : { at, ...rest };
}

/** Returns one entry of a batch as a separate batch. */
export function batchAt(batch: EntryBatch, index: number): EntryBatch {
  const { first, rests } = batch;
  const { at } = rests.slice(0, index + 1).findLast((rest) => rest.at !== undefined) ?? {};
  const rest = { at, ...rests[index] } as EntryRest;
  const { type, runId, taskId, parentId: above } = first.entry;
  const parentId = index === 0 ? above : idAfter(batch, index - 1);
  const entry = { ...rest, type, id: idAfter(batch, index), parentId, runId, taskId } as SessionEntry;
  return { ...nameOf(entry.id), first: { ...first, entry }, rests: [rest] };
}

/** Returns the time of the latest entry. */
export function latestOf({ rests }: EntryBatch): number {
  let latest = 0;
  for (const { at } of rests) if (at !== undefined && at > latest) latest = at;
  return latest;
}

export function isBatch(change: BatchedChange): change is EntryBatch {
  return "rests" in change;
}

export function nameOf(id: string): EntryName {
  const [, stem, number] = numbered.exec(id) ?? [];
  return stem === undefined ? { stem: id, number: unnumbered } : { stem, number: Number(number) };
}
/** Returns the id of the entry that comes `count` entries later. */
export function idAfter({ stem, number }: EntryName, count: number): string {
  return number === unnumbered ? stem : `${stem}${number + count}`;
}

/** Adds the entry to `entries` if it continues the batch. Returns whether it does. */
function goesOn(
  next: SessionChange | undefined,
  first: Append,
  name: EntryName,
  entries: SessionEntry[],
): boolean {
  if (name.number === unnumbered || next?.type !== "append" || next.atLeaf === true || first.atLeaf === true)
    return false;
  const { entry } = next;
  const isLike =
    entry.type === first.entry.type &&
    next.visibility === first.visibility &&
    next.sessionId === first.sessionId &&
    next.agentId === first.agentId &&
    entry.runId === first.entry.runId &&
    entry.taskId === first.entry.taskId &&
    entry.parentId === entries.at(-1)?.id &&
    entry.id === idAfter(name, entries.length);
  if (isLike) entries.push(entry);
  return isLike;
}
