import { saidEntries, type SessionChange, type SessionEntry } from "../../../kernel/index.ts";

type Append = Extract<SessionChange, { readonly type: "append" }>;
type Say = Extract<SessionChange, { readonly type: "say" }>;

/** An entry's id in two parts: most are a stem and a number, so that those which follow each other can be named together. */
export interface EntryName {
  readonly stem: string;
  /** `unnumbered` where the stem is all there is. */
  readonly number: number;
}

const unnumbered = -1;
const numbered = /^(.*\/)(0|[1-9][0-9]{0,8})$/s;

/** Said at one go: each entry is under the one before, has the id after its, and is like it in all that a row says of its entries. */
export interface EntryStrand extends EntryName {
  readonly first: Append;
  readonly entries: readonly SessionEntry[];
}

/** A change to sessions with appends that belong together put together. */
export type StrandedChange = EntryStrand | Exclude<SessionChange, Append | Say>;

/** A longer one is cut: it is read, and found, as a whole. */
const mostEntries = 256;

/** The same changes, in the same order. */
export function strandsOf(whole: readonly SessionChange[]): readonly StrandedChange[] {
  const changes = whole.some(({ type }) => type === "say") ? whole.flatMap(spelledOut) : whole;
  const strands: StrandedChange[] = [];
  for (let index = 0; index < changes.length;) {
    const change = changes[index++];
    if (change === undefined) continue;
    if (change.type !== "append") {
      if (change.type !== "say") strands.push(change);
      continue;
    }
    const name = nameOf(change.entry.id);
    const entries = [change.entry];
    while (entries.length < mostEntries && goesOn(changes[index], change, name, entries)) index++;
    strands.push({ ...name, first: change, entries });
  }
  return strands;
}

function spelledOut(change: SessionChange): SessionChange | readonly SessionChange[] {
  if (change.type !== "say") return change;
  const { sessionId, agentId, visibility, said } = change;
  return saidEntries(said).map((entry) => ({ type: "append", sessionId, agentId, entry, visibility }));
}

export function isStrand(change: StrandedChange): change is EntryStrand {
  return "entries" in change;
}

export function nameOf(id: string): EntryName {
  const [, stem, number] = numbered.exec(id) ?? [];
  return stem === undefined ? { stem: id, number: unnumbered } : { stem, number: Number(number) };
}

/** Of the entry that comes so many after it. */
export function idAfter({ stem, number }: EntryName, count: number): string {
  return number === unnumbered ? stem : `${stem}${number + count}`;
}

/** Adds it to the entries if it is one of them. */
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
