import type { StopReason } from "./stop-reason.ts";
import type { Usage } from "./usage.ts";
import type { AssistantMessage } from "./chat-message.ts";

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
