import {
  modelErrorKind,
  totalTokens,
  type Failure,
  type FilePart,
  type JsonObject,
  type JsonValue,
  type MediaSource,
  type ToolOutput,
} from "../../../kernel/index.ts";
import type { AnswerEnd, AnswerPart } from "./answer-part.ts";

/** One message of the AI SDK's UI message stream, version 1. */
export type UiMessageChunk = { readonly type: string } & { readonly [field: string]: JsonValue };

export interface UiMessageOptions {
  /** Id of the assistant's message. */
  readonly messageId: string;
  /** Metadata that the message has from its start on. */
  readonly metadata: JsonObject;
  /** Ids of tool calls that the client's message already contains. Default: no ids. */
  readonly knownCalls?: Iterable<string>;
}

/** The headers of a UI message stream. */
export const uiMessageHeaders: Readonly<Record<string, string>> = Object.freeze({
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-vercel-ai-ui-message-stream": "v1",
  "x-accel-buffering": "no",
});

/**
 * Encodes an answer as a UI message stream: one assistant message, with one step per message of the model. Results
 * of calls that were not announced are left out, because a client refuses a result for a call that its message does
 * not contain.
 */
export class UiMessageEncoder {
  readonly #options: UiMessageOptions;
  readonly #calls: Set<string>;
  /** Questions that are shown as separate tool calls. */
  readonly #shownQuestions = new Set<string>();
  #openPart: { readonly kind: "text" | "reasoning"; readonly id: string } | undefined;
  #isInStep = false;
  /** Whether the current step contains only questions. */
  #isQuestionStep = false;
  #count = 0;

  constructor(options: UiMessageOptions) {
    this.#options = options;
    this.#calls = new Set(options.knownCalls);
  }

  opening(): readonly UiMessageChunk[] {
    const { messageId, metadata } = this.#options;
    return [{ type: "start", messageId, messageMetadata: metadata }];
  }

  encode(part: AnswerPart): readonly UiMessageChunk[] {
    switch (part.type) {
      case "message_start":
        return [...this.#endStep(), ...this.#startStep()];
      case "text":
      case "reasoning":
        return this.#delta(part.type, part.text);
      case "message_reset":
        this.#openPart = undefined;
        return [{ type: "reset-step" }];
      case "file":
        return [
          ...this.#closePart(),
          { type: "file", url: fileUrl(part.file), mediaType: part.file.mediaType },
        ];
      case "message_end":
        return this.#closePart();
      case "tool_call":
        this.#calls.add(part.callId);
        return [
          ...this.#startStep(),
          {
            type: "tool-input-available",
            toolCallId: part.callId,
            toolName: part.toolName,
            input: part.input,
          },
        ];
      case "tool_update":
        return this.#ifKnown(part.callId, {
          type: "tool-output-available",
          toolCallId: part.callId,
          output: part.update,
          preliminary: true,
        });
      case "tool_result":
        return this.#ifKnown(part.callId, resultChunk(part));
      case "question":
        return this.#ask(part);
      case "decision":
        return this.#decide(part);
      case "waiting":
        return [
          ...this.#endStep(),
          { type: "finish", finishReason: "tool-calls", messageMetadata: { status: "waiting" } },
        ];
      case "end":
        return [...this.#endStep(), ...endChunks(part)];
      case "user_message":
      case "agent_start":
      case "agent_end":
        return [];
    }
  }

  /** Ends a message that cannot be read completely. */
  failure(text: string): readonly UiMessageChunk[] {
    return [...this.#endStep(), { type: "error", errorText: text }];
  }

  #startStep(): readonly UiMessageChunk[] {
    if (this.#isInStep) return [];
    this.#isInStep = true;
    return [{ type: "start-step" }];
  }

  /**
   * Starts a separate step for questions. Clients send answers by themselves only if all other calls of the last
   * step have ended, and the call of a sub-agent that asks a question has not ended.
   */
  #startQuestionStep(): readonly UiMessageChunk[] {
    if (this.#isQuestionStep) return [];
    const chunks = [...this.#endStep(), ...this.#startStep()];
    this.#isQuestionStep = true;
    return chunks;
  }

  #endStep(): readonly UiMessageChunk[] {
    const closed = this.#closePart();
    if (!this.#isInStep) return closed;
    this.#isInStep = false;
    this.#isQuestionStep = false;
    return [...closed, { type: "finish-step" }];
  }

  #delta(kind: "text" | "reasoning", delta: string): readonly UiMessageChunk[] {
    if (this.#openPart?.kind === kind) return [{ type: `${kind}-delta`, id: this.#openPart.id, delta }];
    const closed = this.#closePart();
    const id = `${kind}-${this.#count++}`;
    this.#openPart = { kind, id };
    return [...closed, { type: `${kind}-start`, id }, { type: `${kind}-delta`, id, delta }];
  }

  #closePart(): readonly UiMessageChunk[] {
    const part = this.#openPart;
    if (part === undefined) return [];
    this.#openPart = undefined;
    return [{ type: `${part.kind}-end`, id: part.id }];
  }

  #ifKnown(callId: string, chunk: UiMessageChunk): readonly UiMessageChunk[] {
    return this.#calls.has(callId) ? [chunk] : [];
  }

  /** Shows a question. If it belongs to no call of the message, it is shown as a separate call. */
  #ask({
    callId,
    questionId,
    request,
  }: AnswerPart & { readonly type: "question" }): readonly UiMessageChunk[] {
    const { toolName, input, reason } = request;
    const toolCallId = callId ?? questionId;
    const chunks: UiMessageChunk[] = [];
    if (callId === null) {
      chunks.push(...this.#startQuestionStep());
      chunks.push({ type: "tool-input-available", toolCallId, toolName, input, dynamic: true });
      this.#calls.add(toolCallId);
      this.#shownQuestions.add(questionId);
    }
    if (request.kind !== "client_tool" && this.#calls.has(toolCallId))
      chunks.push({ type: "tool-approval-request", approvalId: questionId, toolCallId, reason });
    return chunks;
  }

  #decide({
    callId,
    questionId,
    request,
    decision,
  }: AnswerPart & { readonly type: "decision" }): readonly UiMessageChunk[] {
    const { kind } = request;
    const toolCallId = callId ?? questionId;
    if (!this.#calls.has(toolCallId)) return [];
    const approved = decision.decision === "approved";
    const reason =
      decision.decision === "denied" && decision.reason !== undefined ? { reason: decision.reason } : {};
    const chunks: UiMessageChunk[] =
      kind === "client_tool"
        ? []
        : [{ type: "tool-approval-response", approvalId: questionId, approved, ...reason }];
    if (!this.#shownQuestions.has(questionId)) return chunks;
    // No result follows for a call that only shows a question.
    const output = decision.decision === "approved" ? (decision.input ?? "approved") : null;
    if (approved) chunks.push({ type: "tool-output-available", toolCallId, output });
    else if (kind !== "client_tool") chunks.push({ type: "tool-output-denied", toolCallId });
    else
      chunks.push({ type: "tool-output-error", toolCallId, errorText: reason.reason ?? decision.decision });
    return chunks;
  }
}

function resultChunk({
  callId: toolCallId,
  result,
  status,
  isRefused,
}: AnswerPart & { readonly type: "tool_result" }): UiMessageChunk {
  if (status === "denied" && isRefused) return { type: "tool-output-denied", toolCallId };
  const output = outputValue(result.output);
  if (!result.isError && status === "ok") return { type: "tool-output-available", toolCallId, output };
  const errorText = typeof output === "string" ? output : JSON.stringify(output);
  return { type: "tool-output-error", toolCallId, errorText };
}

/** The output of a tool as a JSON value. */
export function outputValue(output: ToolOutput): JsonValue {
  if (output.type === "text") return output.text;
  return output.type === "json" ? output.value : (output.parts as unknown as JsonValue);
}

function fileUrl({ source, mediaType }: FilePart): string {
  return mediaUrl(source, mediaType);
}

/** Returns the URL of a medium. Inline data becomes a `data:` URL. */
export function mediaUrl(source: MediaSource, mediaType: string): string {
  return source.kind === "url" ? source.url : `data:${mediaType};base64,${source.data}`;
}

function endChunks(end: AnswerEnd): readonly UiMessageChunk[] {
  const { status, usage, costUsd, turns } = end;
  const { inputTokens, outputTokens, reasoningTokens, cacheReadTokens } = usage;
  const messageMetadata = {
    status,
    usage: {
      inputTokens,
      outputTokens,
      totalTokens: totalTokens(usage),
      reasoningTokens,
      cachedInputTokens: cacheReadTokens,
    },
    costUsd,
    turns,
  };
  if (status === "cancelled")
    return [
      { type: "message-metadata", messageMetadata },
      { type: "abort", ...(end.reason !== null && { reason: end.reason }) },
    ];
  const finish = { type: "finish", finishReason: uiFinishReason(end), messageMetadata };
  const errorText = endText(end);
  return errorText === null
    ? [finish]
    : [
        { type: "message-metadata", messageMetadata },
        { type: "error", errorText },
      ];
}

/** Returns the text that a client shows for a run without an answer. `null` if there is an answer. */
export function endText({ status, failure, reason }: AnswerEnd): string | null {
  switch (status) {
    case "completed":
    case "max_output":
    case "cancelled":
    case "paused":
      return null;
    case "guardrail_tripped":
    case "max_turns":
    case "budget_exhausted":
    case "deadline_exceeded":
      return reason === null ? status : `${status}: ${reason}`;
    case "failed":
      return failure === null ? (reason ?? status) : failureText(failure);
  }
}

/**
 * Returns the text of a failure that a person at a client may see. For unexpected errors and errors of providers it
 * contains only the code, because their texts may contain anything.
 */
export function failureText({ code, message }: Pick<Failure, "code" | "message">): string {
  const isOurs = code !== "internal" && modelErrorKind(code) === undefined;
  return isOurs ? `${code}: ${message}` : `${code}: the result of the run has the details`;
}

function uiFinishReason({ status, finishReason }: AnswerEnd): string {
  if (status === "max_output" || finishReason === "length") return "length";
  if (finishReason === "content_blocked") return "content-filter";
  return status === "completed" && finishReason !== "other" ? "stop" : "other";
}

/** Formats chunks as server-sent events. This is safe because JSON contains no line breaks. */
export function uiMessageFrames(chunks: readonly UiMessageChunk[]): string {
  return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
}

/** What ends a UI message stream. */
export const uiMessageDone = "data: [DONE]\n\n";
