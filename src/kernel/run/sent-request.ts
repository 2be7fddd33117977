import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { LlmReply } from "../messages/llm-reply.ts";
import type { ToolSpec } from "../messages/model.ts";
import type { StepAddress } from "./step.ts";

/** A part of a request to a model. */
export type RequestPart = "instructions" | "tools" | "messages" | "settings";

/** A range of messages of another transcript, from `from` up to but not including `to`; or a single message. */
export type TranscriptPiece = readonly [from: number, to: number] | ChatMessage;

/** The parts of a request, apart from its messages, that are usually the same for all calls of a role. */
export interface SentFrame {
  /**
   * Hash of the system prompt. If absent, the call had the prompt of its turn. A call outside a turn then had no
   * prompt.
   */
  readonly instructions?: string;
  /** Hash of the tool list. If absent, the call had the tools of its turn. A call outside a turn then had no tools. */
  readonly tools?: string;
  /** Number of ephemeral messages. Their text is never stored. Default: 0. */
  readonly ephemeral?: number;
  /** The parts of the request that middleware changed. Only the names of the parts are stored. Default: none. */
  readonly middleware?: readonly RequestPart[];
  /** Settings of the call: sampling, output limit, thinking level and others. Default: none. */
  readonly settings?: JsonObject;
  /** Context window of the model, in tokens. Absent if it is unknown. */
  readonly contextWindow?: number;
}

/**
 * J11: the parts of a model request that do not follow from other records. Most calls need no such record. A call
 * without one had the frame of the previous call of its role, or that of the turn. Its messages were those of the
 * previous call, the answer, and the results of the answer's calls.
 */
export interface SentRequest {
  /** Id of the task. */
  readonly taskId: TaskId;
  /** Address of the model call in the task's journal. */
  readonly address: StepAddress;
  /** Role of the call. Default: `main`. */
  readonly role?: string;
  /**
   * The frame of this call and of later calls of its role in the task. Absent if it is the frame of the previous
   * call.
   */
  readonly frame?: SentFrame;
  /**
   * The messages of this call. Ranges refer to the messages, the answer and the results of the call at `base`, or, if that is
   * `null`, to the history of the turn. Absent if the messages follow from other records.
   */
  readonly messages?: { readonly base: StepAddress | null; readonly pieces: readonly TranscriptPiece[] };
  /** Contents that no earlier record of the run contains, by hash. */
  readonly contents?: Readonly<Record<string, JsonValue>>;
}

/** A part of a request, or the reason why it cannot be shown. */
export type Recorded<Value> =
  | { readonly state: "recorded"; readonly value: Value }
  /** `retention`: the texts of the task were erased. `session`: the session that contained them was deleted. */
  | { readonly state: "erased"; readonly reason: "retention" | "session" }
  /** An earlier version of Reeve made the call and did not store this part. */
  | { readonly state: "unrecorded" };

/** The request of one model call, as the journal of its run contains it. `RunHandle.modelRequest` returns it. */
export interface RecordedRequest {
  /** Sequence number (`seq`) of the call's event `message_start`. */
  readonly seq: number;
  /** Id of the task that made the call. */
  readonly taskId: TaskId;
  /** Id of the agent that made the call. */
  readonly agentId: AgentId;
  /** Address of the call in the task's journal. */
  readonly address: string;
  /** Role whose model was called. */
  readonly role: string;
  /**
   * The model, as `provider/id`: the model that answered, or otherwise the model that was requested. `null` if it
   * is unknown.
   */
  readonly model: string | null;
  /** Time of the call, in epoch milliseconds. */
  readonly at: number;
  /** The system prompt. An empty text means that the call had no system prompt. */
  readonly instructions: Recorded<string>;
  /** Hash of the system prompt. `null` if it is unknown. */
  readonly instructionsHash: string | null;
  /** The tools that the request offered to the model, in their order. */
  readonly tools: Recorded<readonly ToolSpec[]>;
  /** Hash of the tool list. `null` if it is unknown. */
  readonly toolsHash: string | null;
  /** The conversation, without the system prompt and without ephemeral messages. */
  readonly messages: Recorded<readonly ChatMessage[]>;
  /**
   * J4: whether the digest that was recorded with the answer proves that the request had these messages. `false`
   * while the call is in progress, and if the messages are not recorded.
   */
  readonly isProven: boolean;
  /** Number of ephemeral messages at the end, whose text is never stored. `null` if the number is not recorded. */
  readonly ephemeralMessages: number | null;
  /** The parts that middleware changed after this record. `null` if that is not recorded. */
  readonly changedByMiddleware: readonly RequestPart[] | null;
  /** Settings of the call. */
  readonly settings: JsonObject;
  /** Context window of the model, in tokens. `null` if it is unknown. */
  readonly contextWindow: number | null;
  /** The answer with its usage. `null` if the call is in progress or failed. */
  readonly reply: LlmReply | null;
}
