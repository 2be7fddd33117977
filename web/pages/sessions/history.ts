import {
  messageText,
  toolCallsOf,
  type AssistantMessage,
  type SessionEntry,
  type ToolMessage,
} from "../../../src/kernel/index.ts";
import { statusWords } from "../../../src/surfaces/view/status-words.ts";
import { outputText, type CallEdit, type ToolItem } from "../../model/thread.ts";

/** One entry of a conversation that is closed. */
export type HistoryItem =
  | {
      readonly kind: "person";
      readonly id: string;
      readonly at: number;
      readonly text: string;
      readonly runId: string | null;
    }
  | {
      readonly kind: "agent";
      readonly id: string;
      readonly at: number;
      readonly text: string;
      readonly calls: readonly ToolItem[];
      readonly costUsd: number | null;
      readonly runId: string | null;
      /** Why the answer is not complete: a status, or `guardrail: NAME`. `null` if it is complete. */
      readonly interrupted: string | null;
    }
  | {
      readonly kind: "note";
      readonly id: string;
      readonly at: number;
      readonly text: string;
      readonly runId: string | null;
    };

/** The runs of entries that called tools, and so may have questions about their arguments. */
export function callingRuns(entries: readonly SessionEntry[]): ReadonlySet<string> {
  const runs = new Set<string>();
  for (const entry of entries) {
    if (entry.type !== "message" || entry.message.role !== "assistant" || entry.runId === null) continue;
    if (toolCallsOf(entry.message).length > 0) runs.add(entry.runId);
  }
  return runs;
}

/** The entries of a path as a conversation. Results are shown with their calls, and so is what a person changed. */
export function historyOf(
  entries: readonly SessionEntry[],
  edits: readonly CallEdit[],
): readonly HistoryItem[] {
  const items: HistoryItem[] = [];
  for (const entry of entries) {
    const { id, at, runId } = entry;
    if (entry.type === "compaction" || entry.type === "branch_summary")
      items.push({ kind: "note", id, at, runId, text: `Summary of earlier entries: ${entry.summary}` });
    if (entry.type !== "message" && entry.type !== "custom_message") continue;
    const { message } = entry;
    if (message.role === "user")
      items.push({ kind: "person", id, at, runId, text: personText(message.content) });
    else if (message.role === "assistant") {
      const costUsd = entry.type === "message" ? (entry.usage?.costUsd ?? null) : null;
      items.push({
        kind: "agent",
        id,
        at,
        runId,
        ...answerOf(message),
        calls: callsOf(message, at).map((call) => ({ ...call, edit: editOf(call, runId, edits) })),
        costUsd,
      });
    } else if (message.role === "tool") addResults(items, message);
  }
  return items;
}

/** Why an answer is not complete, as a sentence. */
export function interruptedWords(reason: string): string {
  const guardrail = /^guardrail(?:: (?<name>.+))?$/u.exec(reason);
  if (guardrail !== null)
    return `The guardrail ${guardrail.groups?.["name"] ?? ""} stopped the answer.`.replace("  ", " ");
  const status = (statusWords as Readonly<Record<string, string>>)[reason];
  return `${status ?? reason.replaceAll("_", " ")}. The answer is not complete.`;
}

/** The text of an answer, without the marker with which the session tells the model that it is not complete. */
export function answerOf(message: AssistantMessage): {
  readonly text: string;
  readonly interrupted: string | null;
} {
  const text = messageText(message);
  const reason = message.providerMetadata?.["reeve"]?.["interrupted"];
  if (typeof reason !== "string") return { text, interrupted: null };
  const marker = `[interrupted: ${reason}]`;
  return {
    text: text.endsWith(marker) ? text.slice(0, -marker.length).trimEnd() : text,
    interrupted: reason,
  };
}

type UserParts = Extract<Extract<SessionEntry, { type: "message" }>["message"], { role: "user" }>["content"];

function personText(parts: UserParts): string {
  return parts
    .map((part) => {
      if (part.type === "text") return part.text;
      return `[${part.type === "file" ? (part.filename ?? part.mediaType) : part.mediaType}]`;
    })
    .join("\n");
}

function callsOf(message: AssistantMessage, at: number): readonly ToolItem[] {
  return toolCallsOf(message).map(({ callId, toolName, input }, index) => ({
    kind: "tool",
    seq: index,
    at,
    callId,
    name: toolName,
    input,
    edit: null,
    status: "cut",
    output: "",
    diff: null,
    durationMs: null,
    foreign: null,
  }));
}

/** What a person changed. Some providers use the id of a call again, so the arguments must be the same too. */
function editOf(
  { callId, input }: ToolItem,
  runId: string | null,
  edits: readonly CallEdit[],
): ToolItem["edit"] {
  const asked = JSON.stringify(input);
  const found = edits.find(
    (each) => each.runId === runId && each.callId === callId && JSON.stringify(each.asked) === asked,
  );
  return found?.edit ?? null;
}

/** Puts results to the calls of the message before them. */
function addResults(items: HistoryItem[], { content }: ToolMessage): void {
  const at = items.findLastIndex(({ kind }) => kind === "agent");
  const item = items[at];
  if (item?.kind !== "agent") return;
  const calls = item.calls.map((call): ToolItem => {
    const result = content.find(({ callId }) => callId === call.callId);
    if (result === undefined) return call;
    return { ...call, status: result.isError ? "error" : "ok", output: outputText(result.output) };
  });
  items[at] = { ...item, calls };
}
