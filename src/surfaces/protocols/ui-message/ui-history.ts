import { outputValue, mediaUrl } from "../../../agents/index.ts";
import {
  allRuns,
  type AssistantMessage,
  type JsonObject,
  type JsonValue,
  type RunSummary,
  type Runtime,
  type SessionEntry,
  type ToolResultPart,
  type UserPart,
} from "../../../kernel/index.ts";
import { inputOf } from "../session-turn.ts";
import type { UiMessage } from "./ui-message.ts";

interface OpenAnswer {
  readonly id: string;
  readonly runId: string | null;
  readonly parts: JsonObject[];
  /** For each call without a result, the index of its part, by the id of the call. */
  readonly calls: Map<string, number>;
}

/**
 * Returns a conversation as messages of the AI SDK, oldest first. A user message has the id that the client gave
 * it, and an answer has the id of its run, as in the stream of `POST /api/chat`. Therefore a client that shows
 * these messages can resume an active answer, regenerate an answer, and edit a message. If a run is unfinished, its
 * user message is the last one; the stream of the run contains the answer.
 */
export async function uiHistory(
  runtime: Runtime,
  sessionId: string,
  { limit }: { readonly limit?: number | undefined },
): Promise<readonly UiMessage[]> {
  const runs = await runsById(runtime, sessionId);
  // A session whose history is not retained, or whose first run has no entry yet, has only runs.
  const isEmpty = runs.size > 0 && (await runtime.sessions.get(sessionId)) === undefined;
  const path = isEmpty ? [] : await runtime.sessions.path(sessionId, limit === undefined ? {} : { limit });
  const writer = new HistoryWriter(runs);
  for (const entry of path) writer.add(entry);
  const open = [...runs.values()].find(({ endedAt, kind }) => endedAt === null && kind === "invocation");
  if (open !== undefined && !path.some(({ runId }) => runId === open.runId))
    writer.addUser(open.runId, open.runId, contentOf(await inputOf(runtime, open)));
  return writer.messages();
}

async function runsById(runtime: Runtime, sessionId: string): Promise<ReadonlyMap<string, RunSummary>> {
  const runs = new Map<string, RunSummary>();
  for await (const run of allRuns(runtime, { sessionId })) runs.set(run.runId, run);
  return runs;
}

function contentOf(input: JsonValue): readonly UserPart[] {
  if (typeof input === "string") return [{ type: "text", text: input }];
  return Array.isArray(input) ? input : [];
}

class HistoryWriter {
  readonly #runs: ReadonlyMap<string, RunSummary>;
  readonly #messages: UiMessage[] = [];
  /** Runs whose first user message was already added. */
  readonly #begun = new Set<string>();
  readonly #ids = new Set<string>();
  #answer: OpenAnswer | undefined;

  constructor(runs: ReadonlyMap<string, RunSummary>) {
    this.#runs = runs;
  }

  messages(): readonly UiMessage[] {
    this.#close();
    return this.#messages;
  }

  add(entry: SessionEntry): void {
    if (entry.type !== "message" && entry.type !== "custom_message") return;
    const { message, runId, id } = entry;
    if (message.role === "user") this.addUser(id, runId, message.content);
    else if (message.role === "assistant") this.#addAnswer(id, runId, message);
    else if (message.role === "tool") for (const result of message.content) this.#addResult(result);
  }

  /**
   * Adds a user message. The first message of a run has the id of the client; a steering message has the id of its
   * entry.
   */
  addUser(entryId: string, runId: string | null, content: readonly UserPart[]): void {
    this.#close();
    const isFirst = runId !== null && !this.#begun.has(runId);
    if (runId !== null) this.#begun.add(runId);
    const given = isFirst ? this.#runs.get(runId)?.metadata["clientMessageId"] : undefined;
    const id = this.#uniqueId(typeof given === "string" ? given : entryId, entryId);
    this.#messages.push({ id, role: "user", parts: content.map(userPart) });
  }

  #addAnswer(entryId: string, runId: string | null, { content }: AssistantMessage): void {
    if (this.#answer?.runId !== runId) this.#close();
    this.#answer ??= {
      id: this.#uniqueId(runId ?? entryId, `${runId}:${entryId}`),
      runId,
      parts: [],
      calls: new Map(),
    };
    const { parts, calls } = this.#answer;
    parts.push({ type: "step-start" });
    for (const part of content) {
      if (part.type === "text" || part.type === "reasoning")
        parts.push({ type: part.type, text: part.text, state: "done" });
      else if (part.type === "file")
        parts.push({ type: "file", mediaType: part.mediaType, url: mediaUrl(part.source, part.mediaType) });
      else if (part.type === "tool_call") {
        calls.set(part.callId, parts.length);
        parts.push({
          type: `tool-${part.toolName}`,
          // Servers repeat ids, and a client finds the parts of a message by them.
          toolCallId: parts.some(({ toolCallId }) => toolCallId === part.callId)
            ? `${part.callId}#${parts.length}`
            : part.callId,
          state: "input-available",
          input: part.input,
        });
      }
    }
  }

  #addResult({ callId, output, isError }: ToolResultPart): void {
    const { parts, calls } = this.#answer ?? {};
    const at = calls?.get(callId);
    // The call of a result may be older than the first entry of a limited reading.
    if (parts === undefined || at === undefined) return;
    calls?.delete(callId);
    const value = outputValue(output);
    parts[at] = {
      ...parts[at],
      ...(isError
        ? { state: "output-error", errorText: typeof value === "string" ? value : JSON.stringify(value) }
        : { state: "output-available", output: value }),
    };
  }

  #close(): void {
    const answer = this.#answer;
    if (answer === undefined) return;
    this.#answer = undefined;
    const { id, parts, runId } = answer;
    this.#messages.push({
      id,
      role: "assistant",
      ...(runId !== null && { metadata: { runId } }),
      parts: parts as unknown as UiMessage["parts"],
    });
  }

  #uniqueId(wanted: string, otherwise: string): string {
    const id = this.#ids.has(wanted) ? otherwise : wanted;
    this.#ids.add(id);
    return id;
  }
}

function userPart(part: UserPart): UiMessage["parts"][number] {
  if (part.type === "text") return { type: "text", text: part.text };
  const { mediaType, source } = part;
  const filename = part.type === "file" && part.filename !== undefined ? { filename: part.filename } : {};
  return { type: "file", mediaType, url: mediaUrl(source, mediaType), ...filename };
}
