import {
  assistantMessage,
  toolMessage,
  userMessage,
  type AssistantPart,
  type SessionEntry,
  type StopReason,
  type ToolResultPart,
  type UserPart,
} from "../../../kernel/index.ts";
import {
  countOf,
  fieldsOf,
  imageOf,
  jsonOf,
  listOf,
  textOr,
  timeOf,
  type Fields,
  type FileLine,
  type ImportedEntries,
  type ReadConversation,
} from "./imported-entries.ts";

/**
 * Records of Claude Code that are not part of the conversation: prompts, requests, costs and states of its
 * terminal.
 */
const records: ReadonlySet<unknown> = new Set([
  "agent-name",
  "ai-title",
  "api-request",
  "api-request-blob",
  "api-request-shape",
  "atis-latch",
  "attachment",
  "cost-state",
  "file-history-snapshot",
  "last-prompt",
  "mode",
  "permission-mode",
  "progress",
  "queue-operation",
  "tools-used",
]);

/** Reads the lines of a session file of Claude Code in the format of version 2.1. */
export function readClaudeCode(lines: readonly FileLine[], entries: ImportedEntries): ReadConversation {
  const reader = new ClaudeCodeReader(entries);
  let leftOut = 0;
  for (const line of lines)
    try {
      if (line.value === undefined) throw new Error("it is no JSON object");
      if (!reader.read(line.value)) leftOut++;
    } catch (error) {
      entries.keep(line, "claude-code", error instanceof Error ? error.message : String(error));
    }
  return { leafId: reader.leafId, leftOut };
}

type MessageEntry = Extract<SessionEntry, { type: "message" }>;

class ClaudeCodeReader {
  readonly #entries: ImportedEntries;
  /**
   * The entry of each line of the file, by the id of the line. For a line without an entry, the entry of its
   * parent.
   */
  readonly #entryOf = new Map<string, string | null>();
  /**
   * The entry of each model message, by the id of the message. In the file, each part of a message is a separate
   * line.
   */
  readonly #messages = new Map<string, MessageEntry>();
  /** The entry with the tool results for each model message, by the id of the message's entry. */
  readonly #results = new Map<string, MessageEntry>();
  /** The boundary that stands on the line before the line with the summary. */
  #boundary: { readonly id: string; readonly parentId: string | null; readonly data: Fields } | undefined;
  leafId: string | null = null;

  constructor(entries: ImportedEntries) {
    this.#entries = entries;
  }

  /** Reads a line. Returns `false` for a record that is not part of the conversation. */
  read(line: Fields): boolean {
    const { type, uuid } = line;
    if (type === "summary" || type === "custom-title") return this.#readName(line);
    if (records.has(type)) {
      // Lines of the conversation follow attachments.
      if (typeof uuid === "string") this.#entryOf.set(uuid, this.#parentOf(line));
      return false;
    }
    if (typeof uuid !== "string") throw new Error(`its type ${JSON.stringify(type)} is unknown`);
    // The conversations of sub-agents, and what Claude Code notes for itself.
    if (line["isSidechain"] === true || line["isMeta"] === true) return this.#leaveOut(line, uuid);
    switch (type) {
      case "user":
        return this.#readUser(line, uuid);
      case "assistant":
        return this.#readAssistant(line, uuid);
      case "system":
        if (line["subtype"] !== "compact_boundary") return this.#leaveOut(line, uuid);
        this.#boundary = {
          id: uuid,
          parentId: this.#idOf(line["logicalParentUuid"]),
          data: fieldsOf(line["compactMetadata"]),
        };
        return true;
      default:
        this.#entryOf.set(uuid, this.#parentOf(line));
        throw new Error(`its type ${JSON.stringify(type)} is unknown`);
    }
  }

  #leaveOut(line: Fields, uuid: string): boolean {
    this.#entryOf.set(uuid, this.#parentOf(line));
    return false;
  }

  #readName(line: Fields): boolean {
    const name = textOr(line["customTitle"] ?? line["summary"] ?? line["title"], "").slice(0, 200);
    const at = this.#entries.all.at(-1)?.at ?? 0;
    if (name === "") return false;
    const id = `name-${this.#entries.all.length}`;
    this.#entries.add({ id, parentId: this.#entries.lastId, at }, { type: "session_info", name });
    return true;
  }

  #readUser(line: Fields, uuid: string): boolean {
    const { content } = fieldsOf(line["message"]);
    const at = timeOf(line["timestamp"], this.#entries.all.at(-1)?.at ?? 0);
    if (line["isCompactSummary"] === true) return this.#readSummary(content, uuid, at);
    const results = listOf(content)
      .map(fieldsOf)
      .filter(({ type }) => type === "tool_result");
    if (results.length > 0) return this.#readResults(line, results, uuid, at);
    const parts = userParts(content);
    if (parts.length === 0 || isOfTerminal(parts)) return this.#leaveOut(line, uuid);
    const parentId = this.#parentOf(line);
    this.#entries.add({ id: uuid, parentId, at }, { type: "message", message: userMessage(parts) });
    this.#place(uuid, uuid);
    return true;
  }

  #readSummary(content: unknown, uuid: string, at: number): boolean {
    const boundary = this.#boundary;
    if (boundary === undefined) throw new Error("it has a summary without a boundary before it");
    this.#boundary = undefined;
    const kept = fieldsOf(boundary.data["preservedSegment"])["headUuid"];
    this.#entries.add(
      { id: uuid, parentId: boundary.parentId, at },
      {
        type: "compaction",
        summary: userParts(content)
          .map((part) => (part.type === "text" ? part.text : ""))
          .join("\n"),
        firstKeptEntryId: (typeof kept === "string" ? this.#idOf(kept) : undefined) ?? uuid,
        tokensBefore: countOf(boundary.data["preTokens"]),
      },
    );
    this.#entryOf.set(boundary.id, uuid);
    this.#place(uuid, uuid);
    return true;
  }

  #readAssistant(line: Fields, uuid: string): boolean {
    const message = fieldsOf(line["message"]);
    if (line["isApiErrorMessage"] === true || message["model"] === "<synthetic>")
      return this.#leaveOut(line, uuid);
    const parts = listOf(message["content"]).flatMap(assistantPart);
    const messageId = textOr(message["id"], uuid);
    const before = this.#messages.get(messageId);
    if (before !== undefined) {
      const joined = {
        ...before,
        message: assistantMessage([...partsOf(before), ...parts]),
        ...sourceOf(message),
      };
      this.#entries.replace(joined);
      this.#messages.set(messageId, joined);
      this.#place(uuid, before.id);
      return true;
    }
    const entry = this.#entries.add(
      { id: uuid, parentId: this.#parentOf(line), at: timeOf(line["timestamp"], 0) },
      { type: "message", message: assistantMessage(parts), ...sourceOf(message) },
    ) as MessageEntry;
    this.#messages.set(messageId, entry);
    this.#place(uuid, uuid);
    return true;
  }

  /**
   * Reads tool results. In the file, the results of one message are separate lines, each below the part with its
   * call. Here they are combined to one entry.
   */
  #readResults(line: Fields, results: readonly Fields[], uuid: string, at: number): boolean {
    const assistant = this.#idOf(line["sourceToolAssistantUUID"]) ?? this.#parentOf(line);
    const calls = [...this.#messages.values()].flatMap(partsOf);
    const read = results.map((result): ToolResultPart => {
      const callId = textOr(result["tool_use_id"], "");
      const call = calls.find((part) => part.type === "tool_call" && part.callId === callId);
      return {
        type: "tool_result",
        callId,
        toolName: call?.type === "tool_call" ? call.toolName : "unknown",
        output: outputOf(result["content"]),
        isError: result["is_error"] === true,
      };
    });
    const before = assistant === null ? undefined : this.#results.get(assistant);
    if (before?.message.role === "tool") {
      const joined = { ...before, message: toolMessage([...before.message.content, ...read]) };
      this.#entries.replace(joined);
      this.#results.set(assistant as string, joined);
      this.#place(uuid, before.id);
      return true;
    }
    const entry = this.#entries.add(
      { id: uuid, parentId: assistant, at },
      { type: "message", message: toolMessage(read) },
    ) as MessageEntry;
    if (assistant !== null) this.#results.set(assistant, entry);
    this.#place(uuid, uuid);
    return true;
  }

  #place(uuid: string, entryId: string): void {
    this.#entryOf.set(uuid, entryId);
    this.leafId = entryId;
  }

  #idOf(uuid: unknown): string | null {
    return typeof uuid === "string" ? (this.#entryOf.get(uuid) ?? null) : null;
  }

  /** The entry after which a line comes. */
  #parentOf(line: Fields): string | null {
    return this.#idOf(line["parentUuid"]);
  }
}

/** Whether a user message is a command of the terminal or its output. */
function isOfTerminal([first]: readonly UserPart[]): boolean {
  return first?.type === "text" && /^<(?:command-name|command-message|local-command-)/u.test(first.text);
}

function partsOf({ message }: MessageEntry): readonly AssistantPart[] {
  return message.role === "assistant" ? message.content : [];
}

function userParts(content: unknown): readonly UserPart[] {
  if (typeof content === "string") return [{ type: "text", text: textOr(content, "") }];
  return listOf(content).flatMap((each) => contentPart(fieldsOf(each)) ?? []);
}

/** Converts a text, an image or a document of Anthropic's message format. */
function contentPart(part: Fields): UserPart | undefined {
  if (part["type"] === "text") return { type: "text", text: textOr(part["text"], "") };
  const source = fieldsOf(part["source"]);
  if (part["type"] === "image") return imageOf(source["media_type"], source["data"]);
  const { media_type: mediaType, data } = source;
  if (part["type"] !== "document" || typeof mediaType !== "string" || typeof data !== "string")
    return undefined;
  return { type: "file", mediaType, source: { kind: "base64", data } };
}

function outputOf(content: unknown): ToolResultPart["output"] {
  const parts = userParts(content);
  const [only] = parts;
  if (parts.length === 0) return { type: "text", text: "" };
  return parts.length === 1 && only?.type === "text"
    ? { type: "text", text: only.text }
    : { type: "content", parts };
}

function assistantPart(each: unknown): readonly AssistantPart[] {
  const part = fieldsOf(each);
  switch (part["type"]) {
    case "text":
      return [{ type: "text", text: textOr(part["text"], "") }];
    case "thinking": {
      const { signature } = part;
      return [
        {
          type: "reasoning",
          text: textOr(part["thinking"], ""),
          ...(typeof signature === "string" && { providerMetadata: { anthropic: { signature } } }),
        },
      ];
    }
    case "tool_use":
      return [
        {
          type: "tool_call",
          callId: textOr(part["id"], ""),
          toolName: textOr(part["name"], ""),
          input: jsonOf(part["input"]),
        },
      ];
    default:
      return [{ type: "opaque", provider: "anthropic", value: part as never }];
  }
}

const stopReasons: Readonly<Record<string, StopReason>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  tool_use: "tool_calls",
  refusal: "content_blocked",
  pause_turn: "pause",
};

function sourceOf(message: Fields): Partial<Pick<MessageEntry, "model" | "stopReason" | "usage">> {
  const modelId = message["model"];
  if (typeof modelId !== "string" || modelId === "") return {};
  const usage = fieldsOf(message["usage"]);
  const cacheReadTokens = countOf(usage["cache_read_input_tokens"]);
  const cacheWriteTokens = countOf(usage["cache_creation_input_tokens"]);
  return {
    model: { provider: "anthropic", modelId },
    stopReason: stopReasons[String(message["stop_reason"])] ?? "other",
    usage: {
      inputTokens: countOf(usage["input_tokens"]) + cacheReadTokens + cacheWriteTokens,
      outputTokens: countOf(usage["output_tokens"]),
      cacheReadTokens,
      cacheWriteTokens,
      reasoningTokens: countOf(fieldsOf(usage["output_tokens_details"])["thinking_tokens"]),
      // The file has no price of a message.
      costUsd: null,
    },
  };
}
