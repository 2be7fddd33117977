import { toolCallsOf, type ChatMessage } from "../messages/chat-message.ts";
import type { AssistantPart } from "../messages/content.ts";
import { canonicalJson } from "../base/json.ts";
import { saidId, baseStem, type Said } from "./message-batch.ts";
import type { SessionEntry } from "./session-entry.ts";
import { pathTo } from "./session-path.ts";
import type { SessionChange } from "./sessions.ts";

type Say = Extract<SessionChange, { readonly type: "say" }>;

/** Whether what is said goes on from this leaf: it is the entry before it, or something said at the same go. */
export function goesOnFrom({ parentId, stem }: Said, leafId: string | null): boolean {
  return leafId === parentId || (leafId !== null && leafId.startsWith(`${baseStem(stem)}/`));
}

/**
 * N3: what is said after a conversation has gone on without the speaker, such as the end of a run that was stopped and resumed. It comes
 * after the leaf, so that nothing between is left on another branch. Of what the speaker had said before, the question is repeated
 * and the calls whose results come now; all of it where the path to the leaf does not have it. `entries`: the visible ones.
 */
export function rebaseBatch(
  entries: readonly SessionEntry[],
  leafId: string | null,
  { said, ...change }: Say,
): readonly Say[] {
  const stands = new Map(entries.map((entry) => [entry.id, entry]));
  const knownIds = knownOf(said, entries);
  const known = knownIds.length;
  if (known === said.messages.length) return [];
  const before = [...openingOf(said, stands), ...said.messages.slice(0, known)];
  const coming = said.messages.slice(known);
  const path = pathTo(entries, leafId) ?? [];
  const last = knownIds.at(-1) ?? said.parentId;
  const isShown = path.some(({ id }) => id === last);
  const [repeated, added] = isShown ? goneOnWith(before, coming, callIdsIn(path)) : [before, coming];
  const from = said.from + known;
  const again = {
    ...said,
    parentId: leafId,
    stem: `${said.stem}/again-${from}`,
    from: 0,
    messages: repeated,
  };
  const parentId = repeated.length === 0 ? leafId : saidId(again, repeated.length - 1);
  const rest = { ...change, said: { ...said, parentId, from, messages: added } };
  return repeated.length === 0 ? [rest] : [{ ...change, said: again }, rest];
}

/** The entries that say the first of it already: said at the same go, or when the speaker was stopped. */
function knownOf(said: Said, entries: readonly SessionEntry[]): readonly string[] {
  const stem = baseStem(said.stem);
  const byNumber = new Map<number, SessionEntry[]>();
  for (const entry of entries) {
    const number = numberIn(stem, entry.id);
    if (number !== undefined) byNumber.set(number, [...(byNumber.get(number) ?? []), entry]);
  }
  const known: string[] = [];
  for (const [index, message] of said.messages.entries()) {
    const id = saidId(said, index);
    const same = byNumber
      .get(said.from + index)
      ?.findLast((entry) => entry.id === id || isSame(entry, message));
    if (same === undefined) break;
    known.push(same.id);
  }
  return known;
}

/** Of an entry that a speaker said, stopped or not. */
function numberIn(stem: string, id: string): number | undefined {
  if (!id.startsWith(`${stem}/`)) return undefined;
  const digits = /^(?:stopped-\d+\/)?(\d+)$/u.exec(id.slice(stem.length + 1))?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function isSame(entry: SessionEntry, message: ChatMessage): boolean {
  return entry.type === "message" && canonicalJson(entry.message) === canonicalJson(message);
}

/** What the run was asked, where that is an entry by itself: its id is the run's (S2). */
function openingOf({ parentId, runId }: Said, stands: ReadonlyMap<string, SessionEntry>): ChatMessage[] {
  const opening = parentId === runId ? stands.get(runId) : undefined;
  return opening?.type === "message" ? [opening.message] : [];
}

/** What has to be repeated of what is shown already, and what comes after it. No call and no result is without the other. */
function goneOnWith(
  before: readonly ChatMessage[],
  coming: readonly ChatMessage[],
  taken: Set<string>,
): readonly [repeated: readonly ChatMessage[], coming: readonly ChatMessage[]] {
  const question = before.slice(0, 1);
  const calls = before.at(-1);
  const [results, ...rest] = coming;
  if (before.length < 2 || calls?.role !== "assistant" || results?.role !== "tool") return [question, coming];
  const renamed = new Map<string, string>();
  for (const { callId } of toolCallsOf(calls))
    if (!renamed.has(callId)) renamed.set(callId, freeCallId(callId, taken));
  const name = (callId: string): string => renamed.get(callId) ?? callId;
  // Providers refuse a second call, or block of thoughts, of the same id: what carries their ids stays where it was said first.
  const content = calls.content.flatMap((part): AssistantPart[] => {
    if (part.type === "text") return [{ type: part.type, text: part.text }];
    if (part.type !== "tool_call") return [];
    const { type, toolName, input } = part;
    return [{ type, callId: name(part.callId), toolName, input }];
  });
  const answers = results.content.map((part) => ({ ...part, callId: name(part.callId) }));
  return [
    [...question, { role: "assistant", content }],
    [{ ...results, content: answers }, ...rest],
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

const signs = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** One like it, in length and signs, that is not taken; it is then. Some providers take ids of one form only. */
function freeCallId(callId: string, taken: Set<string>): string {
  let free = callId;
  do free = countedOn(free);
  while (taken.has(free));
  taken.add(free);
  return free;
}

/** The next of its form. */
function countedOn(callId: string): string {
  let next = callId;
  for (let place = callId.length - 1; place >= 0; place--) {
    const sign = signs.indexOf(callId.charAt(place));
    if (sign < 0) continue;
    const isFull = sign === signs.length - 1;
    next = `${next.slice(0, place)}${signs.charAt(isFull ? 0 : sign + 1)}${next.slice(place + 1)}`;
    if (!isFull) return next;
  }
  return `${next}0`;
}
