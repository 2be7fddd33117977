import {
  messageText,
  toolCallsOf,
  type AssistantMessage,
  type SessionEntry,
  type ToolMessage,
} from "../../../src/kernel/index.ts";
import { outputText, type ToolItem } from "../../model/thread.ts";

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
    }
  | {
      readonly kind: "note";
      readonly id: string;
      readonly at: number;
      readonly text: string;
      readonly runId: string | null;
    };

/** The entries of a path as a conversation. Results are shown with their calls. */
export function historyOf(entries: readonly SessionEntry[]): readonly HistoryItem[] {
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
        text: messageText(message),
        calls: callsOf(message, at),
        costUsd,
      });
    } else if (message.role === "tool") addResults(items, message);
  }
  return items;
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
    status: "cut",
    output: "",
    diff: null,
    durationMs: null,
  }));
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
