import {
  checkEntry,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  type ChatMessage,
  type JsonObject,
  type JsonValue,
  type MediaSource,
  type SessionEntry,
  type ToolCallPart,
  type ToolResultPart,
  type UserPart,
} from "../../../kernel/index.ts";

/** An object from a file whose members were not checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** One line of a file: its number (starting at 1), its text, and its value if the line is a JSON object. */
export interface FileLine {
  readonly number: number;
  readonly text: string;
  readonly value: Fields | undefined;
}

/** What a reader of a format returns. */
export interface ReadConversation {
  /** Id of the entry after which the conversation continues. */
  readonly leafId: string | null;
  readonly leftOut: number;
}

/** The fields that all entries have, in addition to the fields of their type. */
export interface EntryPlace {
  readonly id: string;
  readonly parentId: string | null;
  readonly at: number;
}

/** An entry without the fields of `EntryPlace`. */
type EntryBody<Entry = SessionEntry> = Entry extends SessionEntry
  ? Omit<Entry, "id" | "parentId" | "at" | "runId" | "taskId">
  : never;

/** The entries of a conversation, collected while a file is read. */
export class ImportedEntries {
  readonly #entries: SessionEntry[] = [];
  readonly #ids = new Set<string>();
  /** Number of lines that no reader understood. They are stored as entries of type `custom`. */
  unread = 0;

  get all(): readonly SessionEntry[] {
    return this.#entries;
  }

  /** Id of the last entry. `null` if there are no entries. */
  get lastId(): string | null {
    return this.#entries.at(-1)?.id ?? null;
  }

  /** Adds an entry. Throws `invalid_argument` for an entry that a session cannot contain. */
  add(place: EntryPlace, body: EntryBody): SessionEntry {
    const entry = { ...body, ...place, runId: null, taskId: null } as SessionEntry;
    checkEntry(entry);
    if (this.#ids.has(entry.id)) throw new Error(`the id ${entry.id} is used twice`);
    this.#ids.add(entry.id);
    this.#entries.push(entry);
    return entry;
  }

  /** Stores a line that no reader understood as an entry after the entries read before. */
  keep({ number, text }: FileLine, format: string, reason: string): void {
    this.unread++;
    const { at = 0 } = this.#entries.at(-1) ?? {};
    this.add(
      { id: `unread-line-${number}`, parentId: this.lastId, at },
      {
        type: "custom",
        customType: "unread_line",
        data: { format, line: number, reason, text: wellFormed(text) },
      },
    );
  }

  /** Replaces an entry by a new one at the same place. */
  replace(entry: SessionEntry): void {
    checkEntry(entry);
    this.#entries[this.#entries.findLastIndex(({ id }) => id === entry.id)] = entry;
  }
}

const noResult = "[not executed: the imported conversation has no result of this call]";

/**
 * The place where the children of an entry continue: after the entry `id`, with `message` as the last message of
 * the path.
 */
interface PathEnd {
  readonly id: string | null;
  readonly message: ChatMessage | undefined;
}

/**
 * Adds a result for each tool call without one, on every path, and removes results without a call (rule S1). A
 * provider would refuse a request with either of them. Returns the entries, parents before children, and the
 * current entry.
 */
export function closedCalls(
  given: readonly SessionEntry[],
  leafId: string | null,
): { readonly entries: readonly SessionEntry[]; readonly leafId: string | null } {
  const entries: SessionEntry[] = [];
  const ends = new Map<string, PathEnd>();
  const parents = new Set(given.map(({ parentId }) => parentId));
  /** If the last message contains calls, adds results for them. */
  const close = ({ id: parentId, message }: PathEnd, id: string, at: number): PathEnd => {
    const calls = message?.role === "assistant" ? toolCallsOf(message) : [];
    if (calls.length === 0) return { id: parentId, message };
    const results = toolMessage(calls.map(notExecuted));
    entries.push({ type: "message", message: results, id, parentId, at, runId: null, taskId: null });
    return { id, message: results };
  };
  for (const entry of parentsFirst(given)) {
    const { id, at } = entry;
    let before = (entry.parentId === null ? undefined : ends.get(entry.parentId)) ?? start;
    let end: PathEnd;
    if (entry.type === "message" && entry.message.role === "tool") {
      const results = answersOf(before.message, entry.message.content);
      if (results.length === 0) end = before;
      else {
        const message = toolMessage(results);
        entries.push({ ...entry, message, parentId: before.id });
        end = { id, message };
      }
    } else {
      const speaks = entry.type === "message" || entry.type === "custom_message";
      if (speaks) before = close(before, `${id}-results`, at);
      entries.push({ ...entry, parentId: before.id });
      end = { id, message: speaks ? entry.message : before.message };
    }
    ends.set(id, parents.has(id) ? end : close(end, `${id}-end`, at));
  }
  return { entries, leafId: leafId === null ? null : (ends.get(leafId)?.id ?? null) };
}

const start: PathEnd = { id: null, message: undefined };

/**
 * Returns the results of a message that answer the calls before it, with an added result for each call without one.
 */
function answersOf(
  before: ChatMessage | undefined,
  results: readonly ToolResultPart[],
): readonly ToolResultPart[] {
  const calls = before?.role === "assistant" ? toolCallsOf(before) : [];
  return calls.map((call) => results.find(({ callId }) => callId === call.callId) ?? notExecuted(call));
}

function notExecuted(call: ToolCallPart): ToolResultPart {
  return toolResultPart(call, { output: { type: "text", text: noResult }, isError: true });
}

/**
 * Returns the entries in the given order, except that each entry stands after its parent. An entry whose parent is
 * missing becomes a root.
 */
function parentsFirst(entries: readonly SessionEntry[]): readonly SessionEntry[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const placed = new Set<string>();
  const ordered: SessionEntry[] = [];
  for (const entry of entries) {
    const open: SessionEntry[] = [];
    const isOpen = new Set<string>();
    for (
      let next: SessionEntry | undefined = entry;
      next !== undefined && !placed.has(next.id) && !isOpen.has(next.id);
      next = next.parentId === null ? undefined : byId.get(next.parentId)
    ) {
      open.push(next);
      isOpen.add(next.id);
    }
    for (const each of open.toReversed()) {
      // A parent that is missing, or that closes a circle, is not placed before its child.
      const isRoot = each.parentId !== null && !placed.has(each.parentId);
      ordered.push(isRoot ? { ...each, parentId: null } : each);
      placed.add(each.id);
    }
  }
  return ordered;
}

/** Converts a timestamp of a file to epoch milliseconds. */
export function timeOf(value: unknown, otherwise: number): number {
  const time = typeof value === "number" ? value : typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isFinite(time) ? Math.trunc(time) : otherwise;
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? wellFormed(value) : otherwise;
}

/** A store would change a lone surrogate. */
export function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** A value that `JSON.parse` returned. */
export function jsonOf(value: unknown): JsonValue {
  return (value ?? null) as JsonValue;
}

/** An object that `JSON.parse` returned. */
export function jsonObjectOf(value: unknown): JsonObject {
  return fieldsOf(value) as JsonObject;
}

export function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

/** Converts an image of a file in base64. `undefined` if its data are missing. */
export function imageOf(mediaType: unknown, data: unknown): UserPart | undefined {
  if (typeof mediaType !== "string" || typeof data !== "string") return undefined;
  const source: MediaSource = { kind: "base64", data };
  return { type: "image", mediaType, source };
}
