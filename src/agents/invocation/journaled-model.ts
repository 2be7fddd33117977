import {
  messageText,
  modelFor,
  toolCallsOf,
  Transcript,
  type CallSettings,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
} from "../../kernel/index.ts";
import { callShorter } from "./call-shorter.ts";
import { samplingOf } from "../base/call-settings.ts";
import type { InvocationParts, InvocationScope } from "./invocation-scope.ts";

/**
 * A model whose calls are journaled. Its messages form a separate conversation. Finish reasons are recorded only
 * for replies in the invocation's own session.
 */
export class JournaledModel implements Model {
  readonly provider: string;
  readonly modelId: string;
  readonly supportsStructuredOutput: boolean;
  readonly #settings: CallSettings;
  readonly #parts: InvocationParts;
  readonly #scope: InvocationScope;

  constructor(parts: InvocationParts, scope: InvocationScope) {
    this.#parts = parts;
    const {
      provider = "",
      modelId = "",
      supportsStructuredOutput = false,
    } = modelFor(parts.plan.agent, scope.role) ?? {};
    this.supportsStructuredOutput = supportsStructuredOutput;
    this.provider = provider;
    this.modelId = modelId;
    this.#settings = samplingOf(parts.ctx.settings);
    this.#scope = scope;
  }

  async generate({ messages, ...rest }: ModelRequest): Promise<ModelResponse> {
    const { ctx, role } = this.#scope;
    const [first, ...others] = messages;
    const instructions = first?.role === "system" ? { instructions: first.content } : {};
    const transcript = Transcript.of(first?.role === "system" ? others : messages);
    const call: LlmRequest = { ...this.#settings, ...rest, ...instructions, transcript, role };
    let reply: LlmReply;
    try {
      reply = await ctx.llm(call);
    } catch (error) {
      reply = await callShorter(this.#parts, this.#scope, error, call, undefined);
    }
    this.#parts.replies.add(messageText(reply.message), reply.stopReason);
    const { costUsd, ...usage } = reply.usage;
    return {
      message: reply.message,
      stopReason: reply.stopReason,
      usage: { ...usage, ...(costUsd !== null && { costUsd }) },
      modelId: reply.model.modelId,
    };
  }

  /** Returns the whole answer as one part, because readers of the run have already received the deltas. */
  async *stream(request: ModelRequest): AsyncIterable<ModelStreamPart> {
    const response = await this.generate(request);
    const text = messageText(response.message);
    if (text !== "") yield { type: "text_delta", text };
    for (const { callId, toolName, input } of toolCallsOf(response.message))
      yield { type: "tool_input_delta", callId, toolName, text: JSON.stringify(input) };
    yield { type: "finish", ...response };
  }
}
