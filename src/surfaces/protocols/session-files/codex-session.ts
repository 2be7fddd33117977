import {
  assistantMessage,
  toolMessage,
  userMessage,
  type AssistantPart,
  type JsonValue,
  type SessionEntry,
  type ToolResultPart,
  type Usage,
  type UserPart,
} from "../../../kernel/index.ts";
import {
  countOf,
  fieldsOf,
  jsonObjectOf,
  jsonOf,
  listOf,
  textOr,
  timeOf,
  wellFormed,
  type Fields,
  type FileLine,
  type ImportedEntries,
  type ReadConversation,
} from "./imported-entries.ts";

/** Records of Codex that are not part of the conversation. */
const records: ReadonlySet<unknown> = new Set([
  "session_meta",
  "turn_context",
  "world_state",
  "ghost_snapshot",
]);

/** Reads the lines of a session file ("rollout") of Codex in the format of version 0.166. */
export function readCodex(lines: readonly FileLine[], entries: ImportedEntries): ReadConversation {
  const reader = new CodexReader(entries);
  let leftOut = 0;
  for (const line of lines)
    try {
      if (line.value === undefined) throw new Error("it is no JSON object");
      if (!reader.read(line.value, line.number)) leftOut++;
    } catch (error) {
      entries.keep(line, "codex", error instanceof Error ? error.message : String(error));
    }
  return { leafId: reader.leafId, leftOut };
}

type MessageEntry = Extract<SessionEntry, { type: "message" }>;

class CodexReader {
  readonly #entries: ImportedEntries;
  #model = "unknown";
  #provider = "openai";
  /** The model message to which the next items belong. */
  #open: MessageEntry | undefined;
  leafId: string | null = null;

  constructor(entries: ImportedEntries) {
    this.#entries = entries;
  }

  /** Reads a line. Returns `false` for a record that is not part of the conversation. */
  read(line: Fields, number: number): boolean {
    const payload = fieldsOf(line["payload"]);
    const at = timeOf(line["timestamp"], this.#entries.all.at(-1)?.at ?? 0);
    const place = { id: `line-${number}`, parentId: this.leafId, at };
    switch (line["type"]) {
      case "response_item":
        return this.#readItem(payload, place);
      case "token_usage_record":
        return this.#readUsage(payload);
      case "compacted":
        this.#open = undefined;
        this.#entries.add(place, {
          type: "compaction",
          summary: textOr(payload["message"], ""),
          firstKeptEntryId: place.id,
          tokensBefore: 0,
        });
        this.leafId = place.id;
        return true;
      case "event_msg":
        return payload["type"] === "thread_rolled_back" && this.#rollBack(countOf(payload["num_turns"]));
      default:
        if (!records.has(line["type"]))
          throw new Error(`its type ${JSON.stringify(line["type"])} is unknown`);
        this.#model = textOr(payload["model"], this.#model);
        this.#provider = textOr(payload["model_provider"], this.#provider);
        return false;
    }
  }

  #readItem(item: Fields, place: Place): boolean {
    switch (item["type"]) {
      case "message":
        if (item["role"] === "assistant")
          return this.#say(
            place,
            listOf(item["content"]).map((part) => ({
              type: "text",
              text: textOr(fieldsOf(part)["text"] ?? fieldsOf(part)["refusal"], ""),
            })),
          );
        return this.#hear(item, place);
      case "reasoning":
        return this.#say(place, [reasoningOf(item)]);
      case "function_call":
      case "custom_tool_call":
      case "local_shell_call":
      case "tool_search_call":
        return this.#say(place, [
          {
            type: "tool_call",
            callId: textOr(item["call_id"], textOr(item["id"], place.id)),
            toolName: textOr(item["name"], textOr(item["type"], "tool")),
            input: argumentsOf(item["arguments"] ?? item["input"] ?? item["action"]),
          },
        ]);
      case "function_call_output":
      case "custom_tool_call_output":
      case "local_shell_call_output":
      case "tool_search_output":
        return this.#answer(item, place);
      // Calls that the provider has executed have no result of their own.
      case "web_search_call":
      case "image_generation_call":
        return this.#say(place, [{ type: "opaque", provider: "openai", value: jsonObjectOf(item) }]);
      default:
        throw new Error(`the item ${JSON.stringify(item["type"])} is unknown`);
    }
  }

  /**
   * Reads a message. Codex sends its own instructions and the state of the folder as messages, too; these are left
   * out.
   */
  #hear(item: Fields, place: Place): boolean {
    if (item["role"] !== "user" || isOfHarness(item)) return false;
    const parts = listOf(item["content"]).flatMap(userPart);
    if (parts.length === 0) return false;
    this.#open = undefined;
    this.#entries.add(place, { type: "message", message: userMessage(parts) });
    this.leafId = place.id;
    return true;
  }

  #say(place: Place, parts: readonly AssistantPart[]): boolean {
    const open = this.#open;
    if (open?.message.role === "assistant" && open.id === this.leafId) {
      this.#open = { ...open, message: assistantMessage([...open.message.content, ...parts]) };
      this.#entries.replace(this.#open);
      return true;
    }
    const source = {
      model: { provider: this.#provider, modelId: this.#model },
      stopReason: "stop",
      usage: unknownUsage,
    } as const;
    this.#open = this.#entries.add(place, {
      type: "message",
      message: assistantMessage(parts),
      ...source,
    }) as MessageEntry;
    this.leafId = place.id;
    return true;
  }

  /** The usage of the message before it. */
  #readUsage({ usage: given }: Fields): boolean {
    const open = this.#open;
    if (open?.message.role !== "assistant") return false;
    const usage = fieldsOf(given);
    const called = open.message.content.some(({ type }) => type === "tool_call");
    this.#open = {
      ...open,
      stopReason: called ? "tool_calls" : "stop",
      usage: {
        inputTokens: countOf(usage["input_tokens"]),
        outputTokens: countOf(usage["output_tokens"]),
        cacheReadTokens: countOf(usage["cached_input_tokens"]),
        cacheWriteTokens: countOf(usage["cache_write_input_tokens"]),
        reasoningTokens: countOf(usage["reasoning_output_tokens"]),
        // The file has no price of a message.
        costUsd: null,
      },
    };
    this.#entries.replace(this.#open);
    return true;
  }

  #answer(item: Fields, place: Place): boolean {
    const callId = textOr(item["call_id"], "");
    const last = this.#entries.all.at(-1);
    const call = this.#open?.message.role === "assistant" ? this.#open.message.content : [];
    const named = call.find((part) => part.type === "tool_call" && part.callId === callId);
    const result: ToolResultPart = {
      type: "tool_result",
      callId,
      toolName: named?.type === "tool_call" ? named.toolName : "unknown",
      output: outputOf(item["output"] ?? item["tools"]),
      isError: fieldsOf(item["output"])["success"] === false,
    };
    if (last?.type === "message" && last.message.role === "tool" && last.id === this.leafId) {
      this.#entries.replace({ ...last, message: toolMessage([...last.message.content, result]) });
      return true;
    }
    this.#entries.add(place, { type: "message", message: toolMessage([result]) });
    this.leafId = place.id;
    return true;
  }

  /**
   * Moves the current entry before the last `turns` messages of the user, where the conversation continues. The
   * left branch is kept.
   */
  #rollBack(turns: number): boolean {
    const all = new Map(this.#entries.all.map((entry) => [entry.id, entry]));
    let left = turns;
    let id = this.leafId;
    while (id !== null && left > 0) {
      const entry = all.get(id);
      if (entry?.type === "message" && entry.message.role === "user") left--;
      id = entry?.parentId ?? null;
    }
    this.leafId = id;
    this.#open = undefined;
    return true;
  }
}

interface Place {
  readonly id: string;
  readonly parentId: string | null;
  readonly at: number;
}

const unknownUsage: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: null,
};

/** Beginnings of messages that older versions wrote in the role of the user. */
const harnessTags = [
  "<environment_context>",
  "<user_instructions>",
  "<turn_aborted>",
  "# AGENTS.md instructions",
];

function isOfHarness(item: Fields): boolean {
  const { content_item_metadata: metadata } = fieldsOf(item["internal_chat_message_metadata_passthrough"]);
  const sources = listOf(metadata).map((each) => fieldsOf(fieldsOf(each)["provenance"])["type"]);
  if (sources.length > 0) return sources.every((source) => source === "harness");
  const text = textOr(fieldsOf(listOf(item["content"])[0])["text"], "");
  return harnessTags.some((tag) => text.startsWith(tag));
}

function userPart(each: unknown): readonly UserPart[] {
  const part = fieldsOf(each);
  if (typeof part["text"] === "string") return [{ type: "text", text: wellFormed(part["text"]) }];
  const url = part["image_url"];
  if (typeof url !== "string") return [];
  const [, mediaType, data] = /^data:([^;,]+);base64,(.*)$/su.exec(url) ?? [];
  if (mediaType === undefined || data === undefined)
    return [{ type: "image", mediaType: "image/*", source: { kind: "url", url } }];
  return [{ type: "image", mediaType, source: { kind: "base64", data } }];
}

function reasoningOf(item: Fields): AssistantPart {
  const texts = [...listOf(item["summary"]), ...listOf(item["content"])];
  const { id, encrypted_content: encrypted } = item;
  return {
    type: "reasoning",
    text: texts.map((each) => textOr(fieldsOf(each)["text"], "")).join("\n\n"),
    ...(typeof id === "string" &&
      typeof encrypted === "string" && {
        providerMetadata: { openai: { itemId: id, reasoningEncryptedContent: encrypted } },
      }),
  };
}

/** Returns the arguments of a call: JSON in a text, or the plain text for a tool that takes a text. */
function argumentsOf(given: unknown): JsonValue {
  if (typeof given !== "string") return jsonOf(given);
  try {
    return jsonOf(JSON.parse(given));
  } catch {
    return { input: wellFormed(given) };
  }
}

function outputOf(given: unknown): ToolResultPart["output"] {
  if (typeof given === "string") return { type: "text", text: wellFormed(given) };
  const { content } = fieldsOf(given);
  if (typeof content === "string") return { type: "text", text: wellFormed(content) };
  const parts = listOf(given).flatMap(userPart);
  return parts.length > 0 ? { type: "content", parts } : { type: "json", value: jsonOf(given) };
}
