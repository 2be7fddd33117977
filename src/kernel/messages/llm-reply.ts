import type { StopReason } from "./stop-reason.ts";
import type { Usage } from "./usage.ts";
import type { AssistantMessage } from "./chat-message.ts";

export interface LlmReply {
  readonly message: AssistantMessage;
  readonly stopReason: StopReason;
  readonly usage: Usage;
  readonly model: { readonly provider: string; readonly modelId: string };
}
