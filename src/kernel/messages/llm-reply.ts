import type { AssistantMessage } from "./chat-message.ts";
import type { Usage } from "./usage.ts";

/**
 * Why a model stopped. A call that failed or was interrupted has no stop reason; it is an error.
 *
 * - `length`: the answer reached the output limit. Its last tool call may be incomplete.
 * - `content_blocked`: the provider withheld the answer, or the model refused to give one.
 * - `pause`: the provider paused a long turn. The same request with the message appended continues it.
 * - `malformed_call`: the model wrote a tool call that the provider could not read. The message does not contain
 *   the call.
 */
export type StopReason =
  | "stop"
  | "length"
  | "tool_calls"
  | "content_blocked"
  | "pause"
  | "malformed_call"
  | "other";

/** Why the model stopped in the call that gave the final answer of a run. */
export type FinishReason = Extract<
  StopReason,
  "stop" | "length" | "content_blocked" | "tool_calls" | "other"
>;

/** Returns the finish reason for a stop reason. Reasons after which a run does not end normally become `other`. */
export function finishReasonOf(reason: StopReason): FinishReason {
  return reason === "pause" || reason === "malformed_call" ? "other" : reason;
}

/** The result of `ctx.llm`. */
export interface LlmReply {
  /** The model's message. */
  readonly message: AssistantMessage;
  /** Why the model stopped. */
  readonly stopReason: StopReason;
  /** Usage and cost of the call. */
  readonly usage: Usage;
  /** The model that answered. */
  readonly model: { readonly provider: string; readonly modelId: string };
}

/**
 * Finish reasons of the replies of a session, by the text of the reply. An architecture may choose an earlier reply
 * as its answer; the answer then has the finish reason of that reply.
 */
export class ReplyReasons {
  /** Finish reasons of the replies that ended for another reason than `stop`, by text. */
  readonly #others = new Map<string, FinishReason>();
  #isEmpty = true;

  /** Records why a reply ended. A later reply with the same text replaces an earlier one. */
  add(text: string, reason: StopReason): void {
    this.#isEmpty = false;
    if (reason !== "stop") this.#others.set(text, finishReasonOf(reason));
    else if (this.#others.size > 0) this.#others.delete(text);
  }

  /** Notes the replies of another session. */
  addAll(replies: ReplyReasons): void {
    this.#isEmpty &&= replies.#isEmpty;
    for (const [text, reason] of replies.#others) this.#others.set(text, reason);
  }

  /**
   * Returns why the reply with this text ended. `null` if the session has no replies. Also `null` for an empty
   * text, unless a reply with empty text was cut.
   */
  reasonOf(text: string): FinishReason | null {
    const otherwise = this.#isEmpty || text === "" ? null : "stop";
    return this.#others.get(text) ?? otherwise;
  }
}
