import { isDeepStrictEqual } from "node:util";
import {
  assistantMessage,
  messageText,
  systemMessage,
  thinkingLevels,
  toolMessage,
  userMessage,
  type AssistantPart,
  type SessionEntry,
  type SessionSummary,
  type StopReason,
  type ThinkingLevel,
  type ToolOutput,
  type ToolResultPart,
  type Usage,
  type UserPart,
} from "../../../kernel/index.ts";
import {
  countOf,
  fieldsOf,
  imageOf,
  ImportedEntries,
  jsonObjectOf,
  jsonOf,
  listOf,
  textOr,
  timeOf,
  type EntryPlace,
  type Fields,
  type FileLine,
  type ReadConversation,
} from "./imported-entries.ts";

/**
 * Name of the member with the complete entry, in lines whose format cannot express all of it. pi ignores this
 * member.
 */
const losslessMember = "reeve";
/** Type of the line that names the entry after which the conversation continues. */
const leafType = "reeve.leaf";

/** The stop reasons of pi. */
const stopReasons: Readonly<Record<StopReason, string>> = {
  stop: "stop",
  length: "length",
  tool_calls: "toolUse",
  content_blocked: "error",
  pause: "deferred",
  malformed_call: "error",
  other: "aborted",
};

type Line = Readonly<Record<string, unknown>>;

/**
 * Returns the lines of a session in the format of pi, version 3: a header, the entries of all branches, and the
 * current entry (leaf).
 */
export function piLines(
  session: Pick<SessionSummary, "sessionId" | "leafId">,
  entries: readonly SessionEntry[],
  cwd: string,
): readonly string[] {
  const first = entries[0]?.at ?? 0;
  const header = { type: "session", version: 3, id: session.sessionId, timestamp: iso(first), cwd };
  const written = new PiWriter();
  const lines: Line[] = [header, ...entries.flatMap((entry) => written.linesOf(entry))];
  // In pi the conversation continues after the last line.
  if (written.lastId !== written.idOf(session.leafId))
    lines.push({
      type: "custom",
      id: "reeve-leaf",
      parentId: written.idOf(session.leafId),
      timestamp: iso(entries.at(-1)?.at ?? 0),
      customType: leafType,
      data: { leafId: session.leafId },
    });
  return lines.map((line) => JSON.stringify(line));
}

class PiWriter {
  /** The id of the last line of each entry that is written as several lines, by the id of the entry. */
  readonly #ends = new Map<string, string>();
  lastId: string | null = null;

  idOf(id: string | null): string | null {
    return id === null ? null : (this.#ends.get(id) ?? id);
  }

  linesOf(entry: SessionEntry): readonly Line[] {
    const { id, at } = entry;
    const place = { id, parentId: this.idOf(entry.parentId), timestamp: iso(at) };
    const [first, ...further] = this.#write(entry, place);
    if (first === undefined) return [];
    const last = String((further.at(-1) ?? first)["id"]);
    this.#ends.set(id, last);
    this.lastId = last;
    if (isReadAs(entry, [first, ...further])) return [first, ...further];
    return [
      { ...first, [losslessMember]: entry },
      ...further.map((line) => ({ ...line, [losslessMember]: { continues: id } })),
    ];
  }

  #write(entry: SessionEntry, place: Line): readonly Line[] {
    switch (entry.type) {
      case "message":
        return entry.message.role === "tool"
          ? resultLines(entry.message.content, place, entry.at)
          : [messageLine(entry, place)];
      case "compaction": {
        const { summary, firstKeptEntryId, tokensBefore } = entry;
        return [{ ...place, type: "compaction", summary, firstKeptEntryId, tokensBefore }];
      }
      case "branch_summary":
        return [{ ...place, type: "branch_summary", fromId: entry.fromId, summary: entry.summary }];
      // The place of the leaf is the last line of the file.
      case "leaf":
        return [];
      case "label": {
        const { targetId, label } = entry;
        return [{ ...place, type: "label", targetId, ...(label !== null && { label }) }];
      }
      case "model_change":
        return [{ ...place, type: "model_change", provider: entry.provider, modelId: entry.modelId }];
      case "thinking_level_change":
        return [{ ...place, type: "thinking_level_change", thinkingLevel: entry.level }];
      case "session_info":
        return [{ ...place, type: "session_info", name: entry.name }];
      case "custom":
        return [{ ...place, type: "custom", customType: entry.customType, data: entry.data }];
      case "custom_message": {
        const { customType, message } = entry;
        const content = message.role === "user" ? message.content.map(userBlock) : messageText(message);
        return [{ ...place, type: "custom_message", customType, content, display: true }];
      }
    }
  }
}

type MessageEntry = Extract<SessionEntry, { type: "message" }>;

/** Name of the model for a message whose model is unknown. */
const unknownModel = "unknown";

function messageLine(entry: MessageEntry, place: Line): Line {
  const { message, at: timestamp, model, stopReason = "stop", usage } = entry;
  if (message.role !== "assistant") {
    const content = message.role === "user" ? message.content.map(userBlock) : messageText(message);
    return { ...place, type: "message", message: { role: "user", content, timestamp } };
  }
  return {
    ...place,
    type: "message",
    message: {
      role: "assistant",
      content: message.content.flatMap(assistantBlock),
      api: apiOf(model?.provider),
      provider: model?.provider ?? unknownModel,
      model: model?.modelId ?? unknownModel,
      usage: piUsage(usage),
      stopReason: stopReasons[stopReason],
      timestamp,
    },
  };
}

/** Returns one line per result, because in pi each message contains only one result. */
function resultLines(results: readonly ToolResultPart[], place: Line, at: number): readonly Line[] {
  let parentId = place["parentId"];
  return results.map(({ callId, toolName, output, isError }, index) => {
    const id = index === 0 ? place["id"] : `${String(place["id"])}-${index + 1}`;
    const content = outputBlocks(output);
    const message = { role: "toolResult", toolCallId: callId, toolName, content, isError, timestamp: at };
    const line = { ...place, id, parentId, type: "message", message };
    parentId = id;
    return line;
  });
}

/** Whether an import of the lines would result in this entry, apart from its run ids, which an import does not set. */
function isReadAs(entry: SessionEntry, lines: readonly Line[]): boolean {
  const entries = new ImportedEntries();
  const given = lines.map((value, index) => ({ number: index + 1, text: "", value }));
  readPi(given, entries);
  const [read, ...more] = entries.all;
  const { parentId: _, ...expected } = { ...entry, runId: null, taskId: null };
  return (
    more.length === 0 &&
    read !== undefined &&
    isDeepStrictEqual({ ...read, parentId: undefined }, { ...expected, parentId: undefined })
  );
}

function assistantBlock(part: AssistantPart): readonly Line[] {
  switch (part.type) {
    case "text":
      return [{ type: "text", text: part.text }];
    case "reasoning": {
      const signature = part.providerMetadata?.["anthropic"]?.["signature"];
      return [
        {
          type: "thinking",
          thinking: part.text,
          ...(typeof signature === "string" && { thinkingSignature: signature }),
        },
      ];
    }
    case "tool_call":
      return [{ type: "toolCall", id: part.callId, name: part.toolName, arguments: argumentsOf(part.input) }];
    default:
      return [];
  }
}

function argumentsOf(input: unknown): unknown {
  return typeof input === "object" && input !== null && !Array.isArray(input) ? input : { value: input };
}

function userBlock(part: UserPart): Line {
  if (part.type === "text") return { type: "text", text: part.text };
  const { mediaType, source } = part;
  if (part.type === "image" && source.kind === "base64")
    return { type: "image", data: source.data, mimeType: mediaType };
  const name = part.type === "file" ? (part.filename ?? "file") : "image";
  return {
    type: "text",
    text: source.kind === "url" ? `[${name}: ${source.url}]` : `[${name}: ${mediaType}]`,
  };
}

function outputBlocks(output: ToolOutput): readonly Line[] {
  if (output.type === "text") return [{ type: "text", text: output.text }];
  if (output.type === "json") return [{ type: "text", text: JSON.stringify(output.value) }];
  return output.parts.map(userBlock);
}

function piUsage(usage: Usage | undefined): Line {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage ?? {};
  return {
    input: Math.max(0, inputTokens - cacheReadTokens - cacheWriteTokens),
    output: outputTokens,
    cacheRead: cacheReadTokens,
    cacheWrite: cacheWriteTokens,
    ...(usage !== undefined && { reasoning: usage.reasoningTokens }),
    totalTokens: inputTokens + outputTokens,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: usage?.costUsd ?? 0 },
  };
}

/**
 * Returns the name of the API (wire protocol) that pi stores with a provider. It only affects which signatures pi
 * sends back.
 */
function apiOf(provider = ""): string {
  if (provider.startsWith("anthropic")) return "anthropic-messages";
  if (provider.startsWith("google")) return "google-generative-ai";
  return provider.startsWith("openai") ? "openai-responses" : "openai-completions";
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

/** Reads the lines of a session file of pi, versions 1 to 3. */
export function readPi(lines: readonly FileLine[], entries: ImportedEntries): ReadConversation {
  const reader = new PiReader(entries);
  let leftOut = 0;
  for (const line of lines) {
    if (line.value?.["type"] === "session") {
      leftOut++;
      continue;
    }
    try {
      if (line.value === undefined) throw new Error("it is no JSON object");
      if (!reader.read(line.value, line.number)) leftOut++;
    } catch (error) {
      entries.keep(line, "pi", error instanceof Error ? error.message : String(error));
    }
  }
  return { leafId: reader.leafId, leftOut };
}

class PiReader {
  readonly #entries: ImportedEntries;
  /** Ids of the file whose entry has a different id here, such as for the results of one message. */
  readonly #renamed = new Map<string, string | null>();
  /** Id of the current entry (leaf). In pi, this is the last line, even if it is a label. */
  leafId: string | null = null;

  constructor(entries: ImportedEntries) {
    this.#entries = entries;
  }

  /** Reads a line. Returns `false` for a record that is not part of the conversation. */
  read(line: Fields, number: number): boolean {
    const { id: given, parentId: givenParent, timestamp } = line;
    // Files of version 1 have neither ids nor parents.
    const id = typeof given === "string" && given !== "" ? given : `line-${number}`;
    const parentId =
      typeof givenParent === "string" ? this.#idOf(givenParent) : given === undefined ? this.leafId : null;
    const at = timeOf(timestamp, this.#entries.all.at(-1)?.at ?? 0);
    const original = line[losslessMember];
    const isRead =
      original === undefined
        ? this.#readEntry(line, { id, parentId, at })
        : this.#restore(fieldsOf(original), { id, parentId, at });
    if (!isRead) this.#renamed.set(id, parentId);
    this.leafId = this.#idOf(id);
    return isRead;
  }

  /**
   * Restores an entry that Reeve exported, including the data that pi's format cannot express. If the entry was
   * written as several lines, the later lines refer to the first.
   */
  #restore(original: Fields, place: EntryPlace): boolean {
    const {
      continues,
      id: _id,
      parentId: _parentId,
      at: _at,
      runId: _run,
      taskId: _task,
      ...body
    } = original;
    if (continues === undefined) this.#entries.add(place, body as never);
    else this.#renamed.set(place.id, textOr(continues, ""));
    return true;
  }

  #readEntry(line: Fields, place: EntryPlace): boolean {
    const entries = this.#entries;
    switch (line["type"]) {
      case "message":
        return this.#readMessage(fieldsOf(line["message"]), place);
      case "model_change":
        entries.add(place, {
          type: "model_change",
          provider: textOr(line["provider"], ""),
          modelId: textOr(line["modelId"], ""),
        });
        return true;
      case "thinking_level_change":
        entries.add(place, { type: "thinking_level_change", level: levelOf(line["thinkingLevel"]) });
        return true;
      case "compaction":
        entries.add(place, {
          type: "compaction",
          summary: textOr(line["summary"], ""),
          firstKeptEntryId: this.#idOf(textOr(line["firstKeptEntryId"], place.id)) ?? place.id,
          tokensBefore: countOf(line["tokensBefore"]),
        });
        return true;
      case "branch_summary":
        entries.add(place, {
          type: "branch_summary",
          summary: textOr(line["summary"], ""),
          fromId: this.#idOf(textOr(line["fromId"], place.id)) ?? place.id,
        });
        return true;
      case "label": {
        const targetId = this.#idOf(textOr(line["targetId"], ""));
        if (targetId === null) throw new Error("it names no entry");
        const label = typeof line["label"] === "string" ? line["label"] : null;
        entries.add(place, { type: "label", targetId, label });
        this.#renamed.set(place.id, place.parentId);
        return true;
      }
      case "session_info":
        entries.add(place, { type: "session_info", name: textOr(line["name"], "").slice(0, 200) });
        this.#renamed.set(place.id, place.parentId);
        return true;
      case "custom":
        // The line says only after which entry the conversation continues.
        if (line["customType"] === leafType) return false;
        entries.add(place, {
          type: "custom",
          customType: textOr(line["customType"], "custom"),
          data: jsonOf(line["data"]),
        });
        return true;
      case "custom_message":
        entries.add(place, {
          type: "custom_message",
          customType: textOr(line["customType"], "custom"),
          message: userMessage(userParts(line["content"])),
        });
        return true;
      // What the model no longer sees is still part of the conversation, and money of other calls belongs to no entry.
      case "context_edit":
      case "usage":
        return false;
      default:
        throw new Error(`its type ${JSON.stringify(line["type"])} is unknown`);
    }
  }

  #readMessage(message: Fields, place: EntryPlace): boolean {
    const entries = this.#entries;
    const at = timeOf(message["timestamp"], place.at);
    switch (message["role"]) {
      case "user":
        entries.add(
          { ...place, at },
          { type: "message", message: userMessage(userParts(message["content"])) },
        );
        return true;
      case "assistant":
        entries.add(
          { ...place, at },
          {
            type: "message",
            message: assistantMessage(listOf(message["content"]).flatMap((part) => partOf(part, message))),
            ...sourceOf(message),
          },
        );
        return true;
      case "toolResult":
        return this.#readResult(message, { ...place, at });
      // Before version 3 the role had another name.
      case "custom":
      case "hookMessage":
        entries.add(place, {
          type: "custom_message",
          customType: textOr(message["customType"], "custom"),
          message: userMessage(userParts(message["content"])),
        });
        return true;
      case "bashExecution":
        entries.add(place, { type: "custom", customType: "pi.bash", data: jsonObjectOf(message) });
        return true;
      case "branchSummary":
      case "compactionSummary":
        entries.add(place, {
          type: "custom_message",
          customType: "pi.summary",
          message: userMessage(textOr(message["summary"], "")),
        });
        return true;
      // The prompt and the tools are those of the agent that continues the conversation.
      case "system":
        if (
          message["content"] === "" ||
          message["sections"] !== undefined ||
          message["toolsAdded"] !== undefined
        )
          return false;
        entries.add(place, {
          type: "custom_message",
          customType: "pi.system",
          message: systemMessage(textsOf(message["content"])),
        });
        return true;
      default:
        throw new Error(`the role ${JSON.stringify(message["role"])} of its message is unknown`);
    }
  }

  /**
   * Reads a tool result. In pi, the results of one message are separate lines; here they are combined to one entry.
   */
  #readResult(message: Fields, place: EntryPlace): boolean {
    const result: ToolResultPart = {
      type: "tool_result",
      callId: textOr(message["toolCallId"], ""),
      toolName: textOr(message["toolName"], ""),
      output: {
        type: "content",
        parts: userParts(message["content"]).filter((part) => part.type !== "file"),
      },
      isError: message["isError"] === true,
    };
    const parts = result.output.type === "content" ? result.output.parts : [];
    const [only] = parts;
    const plain: ToolResultPart =
      parts.length === 1 && only?.type === "text"
        ? { ...result, output: { type: "text", text: only.text } }
        : result;
    const before = this.#entries.all.find(({ id }) => id === place.parentId);
    if (before?.type === "message" && before.message.role === "tool" && before.id === this.leafId) {
      this.#entries.replace({ ...before, message: toolMessage([...before.message.content, plain]) });
      this.#renamed.set(place.id, before.id);
      return true;
    }
    this.#entries.add(place, { type: "message", message: toolMessage([plain]) });
    return true;
  }

  #idOf(id: string): string | null {
    const known = this.#renamed.get(id);
    return known === undefined ? id : known;
  }
}

function levelOf(level: unknown): ThinkingLevel {
  const known = thinkingLevels.find((each) => each === level);
  // pi has levels above the highest one here.
  return known ?? (level === "xhigh" || level === "max" ? "high" : "off");
}

function textsOf(content: unknown): string {
  if (typeof content === "string") return textOr(content, "");
  return listOf(content)
    .map((part) => textOr(fieldsOf(part)["text"], ""))
    .join("");
}

function userParts(content: unknown): readonly UserPart[] {
  if (typeof content === "string") return [{ type: "text", text: textOr(content, "") }];
  return listOf(content).flatMap((each) => {
    const part = fieldsOf(each);
    if (part["type"] === "text") return { type: "text", text: textOr(part["text"], "") } as const;
    return part["type"] === "image" ? (imageOf(part["mimeType"], part["data"]) ?? []) : [];
  });
}

function partOf(each: unknown, message: Fields): readonly AssistantPart[] {
  const part = fieldsOf(each);
  switch (part["type"]) {
    case "text":
      return [{ type: "text", text: textOr(part["text"], "") }];
    case "thinking": {
      const signature = part["thinkingSignature"];
      // Only the signatures of Anthropic are known to have the same form here.
      const isKnown = typeof signature === "string" && message["api"] === "anthropic-messages";
      return [
        {
          type: "reasoning",
          text: textOr(part["thinking"], ""),
          ...(isKnown && { providerMetadata: { anthropic: { signature } } }),
        },
      ];
    }
    case "toolCall":
      return [
        {
          type: "tool_call",
          callId: textOr(part["id"], ""),
          toolName: textOr(part["name"], ""),
          input: jsonOf(part["arguments"]),
        },
      ];
    default:
      return [];
  }
}

/** Returns the model of a message, its stop reason and its usage. Empty for a message without a model. */
function sourceOf({
  provider,
  model,
  stopReason,
  usage: given,
}: Fields): Partial<Pick<Extract<SessionEntry, { type: "message" }>, "model" | "stopReason" | "usage">> {
  if (typeof provider !== "string" || typeof model !== "string" || model === unknownModel) return {};
  const usage = fieldsOf(given);
  const [cacheReadTokens, cacheWriteTokens] = [countOf(usage["cacheRead"]), countOf(usage["cacheWrite"])];
  const total = fieldsOf(usage["cost"])["total"];
  const found = (Object.keys(stopReasons) as StopReason[]).find(
    (reason) => stopReasons[reason] === stopReason,
  );
  return {
    model: { provider, modelId: model },
    stopReason: found ?? "other",
    usage: {
      inputTokens: countOf(usage["input"]) + cacheReadTokens + cacheWriteTokens,
      outputTokens: countOf(usage["output"]),
      cacheReadTokens,
      cacheWriteTokens,
      reasoningTokens: countOf(usage["reasoning"]),
      costUsd: typeof total === "number" && total >= 0 ? total : null,
    },
  };
}
