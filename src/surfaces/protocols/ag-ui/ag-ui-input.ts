import {
  Fault,
  type ApprovalDecision,
  type JsonObject,
  type JsonValue,
  type MediaSource,
  type UserPart,
} from "../../../kernel/index.ts";
import {
  anyJson,
  choice,
  list,
  object,
  optional,
  schemaOf,
  text,
  type Schema,
  type ValueOf,
} from "../../http/schema/schema.ts";
import { sessionId } from "../../http/schema/run-schemas.ts";
import type { AskedQuestion, ClientAnswer } from "../client-answers.ts";
import { checkedContent, sourceOf } from "../user-content.ts";

/** A message as AG-UI clients send it. The type names only the fields that the server uses. */
export interface AgUiMessage extends JsonObject {
  readonly id: string;
  readonly role: string;
}

const roles = ["developer", "system", "assistant", "user", "tool", "activity", "reasoning"] as const;
const id = { type: "string", minLength: 1, maxLength: 200 };

const message: Schema<AgUiMessage> = schemaOf({
  type: "object",
  description: "A message of AG-UI. Fields that are not named here are ignored.",
  properties: {
    id,
    role: { type: "string", enum: roles },
    toolCallId: { type: "string", maxLength: 2_048 },
    error: { type: "string" },
  },
  required: ["id", "role"],
});

const resumeEntry = object({
  interruptId: text({ minLength: 1, maxLength: 2_048 }),
  status: choice(["resolved", "cancelled"]),
  payload: optional(anyJson({ description: "{ approved, reason, input }, or whether the person approves." })),
  metadata: optional(anyJson()),
});

const tool = object({
  name: text({ minLength: 1, maxLength: 256 }),
  description: optional(text()),
  parameters: optional(anyJson()),
  metadata: optional(anyJson()),
});

/** The input of a run of AG-UI. */
export const runInput = object({
  threadId: sessionId,
  runId: text({ minLength: 1, maxLength: 200 }),
  messages: list(message, { maxItems: 10_000 }),
  resume: optional(list(resumeEntry, { maxItems: 1_000 })),
  tools: optional(list(tool, { maxItems: 1_000 })),
  protocolVersion: optional(text({ maxLength: 20 })),
  parentRunId: optional(text({ maxLength: 200 })),
  state: optional(anyJson({ description: "Ignored." })),
  context: optional(anyJson({ description: "Ignored." })),
  forwardedProps: optional(anyJson({ description: "Ignored." })),
});

export type RunInput = ValueOf<typeof runInput>;

/** Returns the content of a user's message. Parts of unknown types are left out. */
export function contentOf({ id: messageId, content }: AgUiMessage): readonly UserPart[] {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return checkedContent(messageId, Array.isArray(parts) ? parts.flatMap((part) => partOf(part)) : []);
}

function partOf(part: JsonValue): readonly UserPart[] {
  if (!isObject(part)) return [];
  const { type, text: said, source } = part;
  if (type === "text" && typeof said === "string") return [{ type: "text", text: said }];
  if (typeof type !== "string" || !isObject(source)) return [];
  const media = mediaOf(source);
  const { mimeType } = source;
  if (type === "image") return [{ type, mediaType: mediaTypeOf(mimeType, "image/*"), source: media }];
  return [{ type: "file", mediaType: mediaTypeOf(mimeType, "application/octet-stream"), source: media }];
}

function mediaOf({ type, value }: JsonObject): MediaSource {
  if (type === "data" && typeof value === "string") return { kind: "base64", data: value };
  if (type === "url" && typeof value === "string") return sourceOf(value);
  throw new Fault(
    "invalid_argument",
    'invalid source of a part: expected { type: "data", value } or { type: "url", value }',
  );
}

function mediaTypeOf(mimeType: JsonValue | undefined, absent: string): string {
  return typeof mimeType === "string" ? mimeType : absent;
}

/** The answers of a client: results of its tools, and answers to interrupts. */
export class AgUiAnswers {
  readonly #results = new Map<string, ClientAnswer>();
  readonly #decisions = new Map<string, NonNullable<RunInput["resume"]>[number]>();
  readonly #known = new Set<string>();

  constructor({ messages, resume = [] }: RunInput) {
    for (const each of messages) this.#read(each);
    for (const entry of resume) {
      this.#known.add(entry.interruptId);
      this.#decisions.set(entry.interruptId, entry);
    }
  }

  /** Ids of the calls for which the client has a result. */
  get answeredCalls(): ReadonlySet<string> {
    return new Set(this.#results.keys());
  }

  knows({ questionId, callId }: AskedQuestion): boolean {
    return this.#known.has(callId) || this.#known.has(questionId);
  }

  answerOf({ questionId, callId, request: { kind } }: AskedQuestion): ClientAnswer | undefined {
    if (kind === "client_tool") return this.#results.get(callId);
    const entry = this.#decisions.get(questionId);
    return entry === undefined ? undefined : { type: "decision", decision: decisionOf(entry) };
  }

  #read({ role, toolCallId, toolCalls, content = null, error }: AgUiMessage): void {
    if (role === "tool" && typeof toolCallId === "string") {
      this.#known.add(toolCallId);
      const isError = typeof error === "string";
      this.#results.set(toolCallId, { type: "result", value: isError ? error : content, isError });
    }
    if (role !== "assistant" || !Array.isArray(toolCalls)) return;
    for (const call of toolCalls)
      if (isObject(call) && typeof call["id"] === "string") this.#known.add(call["id"]);
  }
}

/** Returns the decision in a client's answer. An answer of an unknown form is never an approval. */
function decisionOf({
  interruptId,
  status,
  payload,
}: NonNullable<RunInput["resume"]>[number]): ApprovalDecision {
  if (status === "cancelled") return { decision: "skipped" };
  const { approved, reason, input }: Partial<JsonObject> = isObject(payload)
    ? payload
    : { approved: payload ?? null };
  if (typeof approved !== "boolean")
    throw new Fault(
      "invalid_argument",
      `invalid payload of interrupt ${JSON.stringify(interruptId)}: expected { approved: true } or { approved: false }`,
    );
  if (approved) return { decision: "approved", ...(input !== undefined && { input }) };
  return { decision: "denied", ...(typeof reason === "string" && { reason }) };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
