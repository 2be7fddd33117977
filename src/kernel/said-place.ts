import { toolCallsOf, type ChatMessage } from "./chat-message.ts";
import type { AssistantPart } from "./content.ts";
import { saidId, type Said } from "./said.ts";
import type { SessionEntry } from "./session-entry.ts";
import { pathTo } from "./session-path.ts";
import type { SessionChange } from "./sessions.ts";

type Say = Extract<SessionChange, { readonly type: "say" }>;

/** Whether what is said goes on from this leaf: it is the entry before it, or something said at the same go. */
export function goesOnFrom({ parentId, stem }: Said, leafId: string | null): boolean {
  return leafId === parentId || (leafId !== null && leafId.startsWith(stem) && leafId[stem.length] === "/");
}

/**
 * N3: what is said after a conversation has gone on without the speaker, such as the end of a run that was stopped and resumed. It comes
 * after the leaf, so that nothing between is left on another branch. Of what the speaker had said before, the question is repeated
 * and the calls whose results come now; all of it where the path to the leaf does not have it. `entries`: the visible ones.
 */
export function saidAfter(
  entries: readonly SessionEntry[],
  leafId: string | null,
  { said, ...change }: Say,
): readonly Say[] {
  const stands = new Map(entries.map((entry) => [entry.id, entry]));
  let known = 0;
  while (known < said.messages.length && stands.has(saidId(said, known))) known++;
  if (known === said.messages.length) return [];
  const before = [...openingOf(said, stands), ...said.messages.slice(0, known)];
  const coming = said.messages.slice(known);
  const path = pathTo(entries, leafId) ?? [];
  const last = known > 0 ? saidId(said, known - 1) : said.parentId;
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
