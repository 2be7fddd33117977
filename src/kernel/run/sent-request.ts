import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import type { LlmReply } from "../messages/llm-reply.ts";
import type { ToolSpec } from "../messages/model.ts";
import type { StepAddress } from "./step.ts";

/** A part of a request to a model. */
export type RequestPart = "instructions" | "tools" | "messages" | "settings";

/** A range of messages of another transcript, from `from` up to but not including `to`, or a message. */
export type TranscriptPiece = readonly [from: number, to: number] | ChatMessage;

/** What the calls of a role are sent, apart from their messages. */
export interface SentFrame {
  /**
   * Hash of the system prompt. If absent, the call had the prompt of its turn, or no prompt if it belongs to no turn.
   */
  readonly instructions?: string;
  /** Hash of the tool list. If absent, the call had the tools of its turn, or no tools if it belongs to no turn. */
  readonly tools?: string;
  /** Number of ephemeral messages. Their text is never stored. Default: 0. */
  readonly ephemeral?: number;
  /** What middleware changed on the way to the model. Only this fact is stored. Default: nothing. */
  readonly middleware?: readonly RequestPart[];
  /** Settings of the call: sampling, output limit, thinking level and others. Default: none. */
  readonly settings?: JsonObject;
  /** Context window of the model, in tokens. Absent if it is unknown. */
  readonly contextWindow?: number;
}

/**
 * J11: what a model call was sent, where that does not follow from other records. Most calls need no such record: a call
 * without one was sent the frame of the call of its role before it, or that of the turn, and its messages are those of the
 * call before it, the answer and the results of the answer's calls.
 */
export interface SentRequest {
  /** Id of the task. */
  readonly taskId: TaskId;
  /** Address of the model call in the task's journal. */
  readonly address: StepAddress;
  /** Role of the call. Default: `main`. */
  readonly role?: string;
  /** The frame of this call and of later calls of its role in the task. Absent if it has not changed. */
  readonly frame?: SentFrame;
  /**
   * The messages of this call. Ranges refer to the messages, the answer and the results of the call at `base`, or, if that is
   * `null`, to the history of the turn. Absent if the messages follow from other records.
   */
  readonly messages?: { readonly base: StepAddress | null; readonly pieces: readonly TranscriptPiece[] };
  /** Contents that no earlier record of the run holds, by hash. */
  readonly contents?: Readonly<Record<string, JsonValue>>;
}

/** Something that a model was sent, or why it cannot be shown. */
export type Recorded<Value> =
  | { readonly state: "recorded"; readonly value: Value }
  /** `retention`: the texts of the task were erased. `session`: the session that held them was deleted. */
  | { readonly state: "erased"; readonly reason: "retention" | "session" }
  /** An earlier version of reeve made the call, and what it stored does not contain it. */
  | { readonly state: "unrecorded" };

/** What one model call was sent, as the journal of its run holds it. `RunHandle.modelRequest` returns it. */
export interface RecordedRequest {
  /** Seq of the `message_start` event of the call. */
  readonly seq: number;
  /** Id of the task that made the call. */
  readonly taskId: TaskId;
  /** Id of the agent that made the call. */
  readonly agentId: AgentId;
  /** Address of the call in the task's journal. */
  readonly address: string;
  /** Role whose model was called. */
  readonly role: string;
  /** The model, as `provider/id`: the one that answered, otherwise the one that was asked. `null` if it is unknown. */
  readonly model: string | null;
  /** Time of the call, in epoch milliseconds. */
  readonly at: number;
  /** The system prompt. An empty text means that the call had none. */
  readonly instructions: Recorded<string>;
  /** Hash of the system prompt. `null` if it is unknown. */
  readonly instructionsHash: string | null;
  /** The tools that the model was offered, in their order. */
  readonly tools: Recorded<readonly ToolSpec[]>;
  /** Hash of the tool list. `null` if it is unknown. */
  readonly toolsHash: string | null;
  /** The conversation, without the system prompt and without ephemeral messages. */
  readonly messages: Recorded<readonly ChatMessage[]>;
  /**
   * J4: whether the digest that was recorded with the answer proves that the model was sent these messages. `false` while
   * the call is in progress, and if the messages are not recorded.
   */
  readonly isProven: boolean;
  /** Number of further messages at the end whose text is never stored. `null` if it is not recorded. */
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
