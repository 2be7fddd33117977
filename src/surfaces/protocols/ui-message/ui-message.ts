import { Fault, type JsonObject, type JsonValue, type UserPart } from "../../../kernel/index.ts";
import { schemaOf, type Schema } from "../../http/schema/schema.ts";
import type { AskedQuestion, ClientAnswer } from "../client-answers.ts";
import { checkedContent, sourceOf } from "../user-content.ts";

/** A message as the clients of the AI SDK send it. The type names only the fields that the server uses. */
export interface UiMessage {
  readonly id: string;
  readonly role: "system" | "user" | "assistant";
  readonly metadata?: JsonObject;
  readonly parts: readonly UiMessagePart[];
}

interface UiMessagePart {
  readonly type: string;
  readonly [field: string]: JsonValue;
}

const id = { type: "string", minLength: 1, maxLength: 200 };

export const uiMessage: Schema<UiMessage> = schemaOf({
  type: "object",
  description: "A UIMessage of the AI SDK. Fields that are not named here are ignored.",
  properties: {
    id,
    role: { type: "string", enum: ["system", "user", "assistant"] },
    parts: {
      type: "array",
      maxItems: 10_000,
      items: { type: "object", properties: { type: { type: "string", maxLength: 300 } }, required: ["type"] },
    },
  },
  required: ["id", "role", "parts"],
});

/** Returns the content of a user message. Parts that are neither text nor file are left out. */
export function contentOf({ id: messageId, parts }: UiMessage): readonly UserPart[] {
  const content = parts.flatMap((part): readonly UserPart[] => {
    if (part.type === "text") return [{ type: "text", text: textField(part, "text") }];
    return part.type === "file" ? [fileOf(part)] : [];
  });
  return checkedContent(messageId, content);
}

function fileOf(part: UiMessagePart): UserPart {
  const mediaType = textField(part, "mediaType");
  const source = sourceOf(textField(part, "url"));
  if (mediaType.startsWith("image/")) return { type: "image", mediaType, source };
  const { filename } = part;
  return { type: "file", mediaType, source, ...(typeof filename === "string" && { filename }) };
}

function textField(part: UiMessagePart, field: string): string {
  const value = part[field];
  if (typeof value === "string") return value;
  throw new Fault("invalid_argument", `invalid ${field} of a ${part.type} part: expected a text`);
}

/** The client's answers in the tool parts of assistant messages. */
export class UiAnswers {
  readonly #results = new Map<string, ClientAnswer>();
  readonly #decisions = new Map<
    string,
    { readonly isApproved: boolean; readonly reason: string | undefined }
  >();
  /** Ids of all tool calls and questions in the messages. */
  readonly #known = new Set<string>();

  constructor(messages: readonly UiMessage[]) {
    for (const { role, parts } of messages)
      if (role === "assistant") for (const part of parts) this.#read(part);
  }

  /** Ids of all tool calls in the messages. */
  get callIds(): Iterable<string> {
    return this.#known;
  }

  knows({ questionId, callId }: AskedQuestion): boolean {
    return this.#known.has(callId) || this.#known.has(questionId);
  }

  answerOf({ questionId, callId, request: { kind } }: AskedQuestion): ClientAnswer | undefined {
    if (kind === "client_tool") return this.#results.get(callId);
    const decision = this.#decisions.get(questionId);
    if (decision === undefined) return undefined;
    const { isApproved, reason } = decision;
    const given = reason === undefined ? {} : { reason };
    if (!isApproved) return { type: "decision", decision: { decision: "denied", ...given } };
    // The person's text is the answer to a question that asks for one.
    const isText = kind === "select" || kind === "input";
    const input = isText && reason !== undefined ? { input: reason } : {};
    return { type: "decision", decision: { decision: "approved", ...input } };
  }

  #read({ type, toolCallId, state, approval, output, errorText }: UiMessagePart): void {
    if ((type !== "dynamic-tool" && !type.startsWith("tool-")) || typeof toolCallId !== "string") return;
    this.#known.add(toolCallId);
    if (state === "output-available") this.#addResult(toolCallId, output ?? null, false);
    if (state === "output-error") this.#addResult(toolCallId, errorText ?? "error", true);
    if (state !== "approval-responded" || !isObject(approval)) return;
    const { id: questionId, approved, reason } = approval;
    if (typeof questionId !== "string" || typeof approved !== "boolean") return;
    this.#known.add(questionId);
    this.#decisions.set(questionId, {
      isApproved: approved,
      reason: typeof reason === "string" && reason !== "" ? reason : undefined,
    });
  }

  #addResult(callId: string, value: JsonValue, isError: boolean): void {
    this.#results.set(callId, { type: "result", value, isError });
  }
}

function isObject(value: JsonValue | undefined): value is { readonly [key: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
