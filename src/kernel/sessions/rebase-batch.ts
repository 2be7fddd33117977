import { toolCallsOf, type ChatMessage } from "../messages/chat-message.ts";
import type { AssistantPart } from "../messages/content.ts";
import { canonicalJson } from "../base/json.ts";
import { batchEntryId, baseStem, type MessageBatch } from "./message-batch.ts";
import type { SessionEntry } from "./session-entry.ts";
import { pathTo } from "./session-context.ts";
import type { SessionChange } from "./sessions.ts";

type Say = Extract<SessionChange, { readonly type: "say" }>;

/**
 * Whether the batch directly continues this entry: the current entry is the batch's parent, or an entry that the same task wrote
 * before.
 */
export function continuesFrom({ parentId, stem }: MessageBatch, leafId: string | null): boolean {
  return leafId === parentId || (leafId !== null && leafId.startsWith(`${baseStem(stem)}/`));
}

/**
 * N3: moves a batch after the current entry when the conversation has continued without the task that writes the
 * batch, for example because its run was stopped and later resumed. No entry between the batch's old parent and the
 * current entry ends up on another branch.
 *
 * If the path to the current entry contains earlier messages of the task, the result repeats only the user's
 * question and the tool calls whose results are in the new messages. Otherwise it repeats everything that the task
 * wrote. `entries` are the visible entries of the session.
 *
 * @advanced
 */
export function rebaseBatch(
  entries: readonly SessionEntry[],
  leafId: string | null,
  { batch, ...change }: Say,
): readonly Say[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const storedIds = storedIdsOf(batch, entries);
  const stored = storedIds.length;
  if (stored === batch.messages.length) return [];
  const before = [...openingMessages(batch, byId), ...batch.messages.slice(0, stored)];
  const remaining = batch.messages.slice(stored);
  const path = pathTo(entries, leafId) ?? [];
  const lastId = storedIds.at(-1) ?? batch.parentId;
  const isOnPath = path.some(({ id }) => id === lastId);
  const [repeated, added] = isOnPath
    ? repeatOpenCalls(before, remaining, callIdsIn(path))
    : [before, remaining];
  const from = batch.from + stored;
  const repeatedBatch = {
    ...batch,
    parentId: leafId,
    stem: `${batch.stem}/again-${from}`,
    from: 0,
    messages: repeated,
    sources: [],
  };
  const parentId = repeated.length === 0 ? leafId : batchEntryId(repeatedBatch, repeated.length - 1);
  const sources = batch.sources?.slice(stored);
  const addedChange = {
    ...change,
    batch: { ...batch, parentId, from, messages: added, ...(sources && { sources }) },
  };
  return repeated.length === 0 ? [addedChange] : [{ ...change, batch: repeatedBatch }, addedChange];
}

/**
 * Returns the ids of the entries in which the task, whether it was stopped or not, has already stored the first
 * messages of the batch.
 */
function storedIdsOf(batch: MessageBatch, entries: readonly SessionEntry[]): readonly string[] {
  const stem = baseStem(batch.stem);
  const byNumber = new Map<number, SessionEntry[]>();
  for (const entry of entries) {
    const number = numberIn(stem, entry.id);
    if (number !== undefined) byNumber.set(number, [...(byNumber.get(number) ?? []), entry]);
  }
  const storedIds: string[] = [];
  for (const [index, message] of batch.messages.entries()) {
    const id = batchEntryId(batch, index);
    const match = byNumber
      .get(batch.from + index)
      ?.findLast((entry) => entry.id === id || hasMessage(entry, message));
    if (match === undefined) break;
    storedIds.push(match.id);
  }
  return storedIds;
}

/**
 * Returns the number at the end of an entry id, which is `STEM/NUMBER`, or `STEM/stopped-N/NUMBER` if the task was stopped when
 * it wrote the entry. `undefined` for any other id.
 */
function numberIn(stem: string, id: string): number | undefined {
  if (!id.startsWith(`${stem}/`)) return undefined;
  const digits = /^(?:stopped-\d+\/)?(\d+)$/u.exec(id.slice(stem.length + 1))?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function hasMessage(entry: SessionEntry, message: ChatMessage): boolean {
  return entry.type === "message" && canonicalJson(entry.message) === canonicalJson(message);
}

/** Returns the user's message that started the run, if it is a separate entry. S2: that entry has the run's id. */
function openingMessages(
  { parentId, runId }: MessageBatch,
  byId: ReadonlyMap<string, SessionEntry>,
): ChatMessage[] {
  const opening = parentId === runId ? byId.get(runId) : undefined;
  return opening?.type === "message" ? [opening.message] : [];
}

/**
 * Splits the messages of a task whose earlier messages are already on the path into messages to repeat and messages
 * to add after them. It repeats the question. It also repeats the last assistant message if the added messages
 * start with the results of its tool calls. Repeated calls get new ids, so that every call has its result and every
 * result its call.
 */
function repeatOpenCalls(
  before: readonly ChatMessage[],
  remaining: readonly ChatMessage[],
  takenIds: Set<string>,
): readonly [repeated: readonly ChatMessage[], added: readonly ChatMessage[]] {
  const question = before.slice(0, 1);
  const calls = before.at(-1);
  const [results, ...rest] = remaining;
  if (before.length < 2 || calls?.role !== "assistant" || results?.role !== "tool")
    return [question, remaining];
  const renamed = new Map<string, string>();
  for (const { callId } of toolCallsOf(calls))
    if (!renamed.has(callId)) renamed.set(callId, freeCallId(callId, takenIds));
  const name = (callId: string): string => renamed.get(callId) ?? callId;
  // Providers refuse a second tool call or reasoning block with the same id. Parts that carry provider ids are therefore not repeated.
  const content = calls.content.flatMap((part): AssistantPart[] => {
    if (part.type === "text") return [{ type: part.type, text: part.text }];
    if (part.type !== "tool_call") return [];
    const { type, toolName, input } = part;
    return [{ type, callId: name(part.callId), toolName, input }];
  });
  const renamedResults = results.content.map((part) => ({ ...part, callId: name(part.callId) }));
  return [
    [...question, { role: "assistant", content }],
    [{ ...results, content: renamedResults }, ...rest],
  ];
}

function callIdsIn(path: readonly SessionEntry[]): Set<string> {
  const ids = new Set<string>();
  for (const entry of path) {
    if (entry.type !== "message" || entry.message.role !== "assistant") continue;
    for (const { callId } of toolCallsOf(entry.message)) ids.add(callId);
  }
  return ids;
}

const callIdCharacters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * Returns an unused call id with the same length and the same kinds of characters, and adds it to `takenIds`. Some
 * providers accept only ids of one form.
 */
function freeCallId(callId: string, takenIds: Set<string>): string {
  let free = callId;
  do free = nextCallId(free);
  while (takenIds.has(free));
  takenIds.add(free);
  return free;
}

/**
 * Returns the next call id after this one, which is read as a number with letters and digits as its digits. Other
 * characters do not change.
 */
function nextCallId(callId: string): string {
  let next = callId;
  for (let place = callId.length - 1; place >= 0; place--) {
    const digit = callIdCharacters.indexOf(callId.charAt(place));
    if (digit < 0) continue;
    const isLast = digit === callIdCharacters.length - 1;
    next = `${next.slice(0, place)}${callIdCharacters.charAt(isLast ? 0 : digit + 1)}${next.slice(place + 1)}`;
    if (!isLast) return next;
  }
  return `${next}0`;
}
