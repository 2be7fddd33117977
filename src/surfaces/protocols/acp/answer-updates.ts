import type { SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk";
import type { AnswerPart } from "../../../agents/index.ts";
import type { JsonValue } from "../../../kernel/index.ts";
import { contentBlock, outputBlocks, textBlock } from "./content-blocks.ts";
import { planOf, toolCallView } from "./tool-call-view.ts";

/** A tool call that has been shown. */
interface ShownCall {
  readonly input: JsonValue;
  /** The file change that the call makes. It is shown in addition to the output. */
  readonly content: ToolCallContent[];
}

/** Converts the parts of one run's answer to updates of an editor's session. */
export class AnswerUpdates {
  readonly #root: string;
  readonly #calls = new Map<string, ShownCall>();
  /**
   * Number of attempts of the current message. The editor shows the text of a failed attempt as a separate message.
   */
  #attempts = 0;

  constructor(root: string) {
    this.#root = root;
  }

  read(part: AnswerPart): readonly SessionUpdate[] {
    switch (part.type) {
      case "message_start":
        this.#attempts = 0;
        return [];
      case "message_reset":
        this.#attempts++;
        return [];
      case "text":
        return [
          {
            sessionUpdate: "agent_message_chunk",
            content: textBlock(part.piece),
            messageId: this.#messageId(part.messageId),
          },
        ];
      case "reasoning":
        return [
          {
            sessionUpdate: "agent_thought_chunk",
            content: textBlock(part.text),
            messageId: this.#messageId(part.messageId),
          },
        ];
      case "file":
        return [
          {
            sessionUpdate: "agent_message_chunk",
            content: contentBlock(part.file),
            messageId: this.#messageId(part.messageId),
          },
        ];
      case "user_message":
        return part.message.content.map((each) => ({
          sessionUpdate: "user_message_chunk",
          content: contentBlock(each),
        }));
      case "tool_call":
        return this.#call(part);
      case "tool_result":
        return this.#result(part);
      case "question":
        return this.#status(part.callId, "pending");
      case "decision":
        return part.decision.decision === "approved" ? this.#status(part.callId, "in_progress") : [];
      default:
        return [];
    }
  }

  #messageId(messageId: string): string {
    return this.#attempts === 0 ? messageId : `${messageId}/${this.#attempts}`;
  }

  #call({ callId, toolName, input }: AnswerPart & { readonly type: "tool_call" }): readonly SessionUpdate[] {
    const view = toolCallView(toolName, input, this.#root);
    this.#calls.set(callId, { input, content: view.content });
    return [
      {
        sessionUpdate: "tool_call",
        toolCallId: callId,
        name: toolName,
        ...view,
        status: "in_progress",
        rawInput: input,
      },
    ];
  }

  #status(callId: string | null, status: "pending" | "in_progress"): readonly SessionUpdate[] {
    if (callId === null) return [];
    return [{ sessionUpdate: "tool_call_update", toolCallId: callId, status }];
  }

  #result({
    callId,
    toolName,
    result,
    status,
  }: AnswerPart & { readonly type: "tool_result" }): readonly SessionUpdate[] {
    const { input = null, content = [] } = this.#calls.get(callId) ?? {};
    this.#calls.delete(callId);
    const isOk = status === "ok";
    const output = outputBlocks(result.output).map((block): ToolCallContent => ({
      type: "content",
      content: block,
    }));
    const update: SessionUpdate = {
      sessionUpdate: "tool_call_update",
      toolCallId: callId,
      status: isOk ? "completed" : "failed",
      content: isOk ? [...content, ...output] : output,
      rawOutput: result.output,
    };
    const entries = isOk ? planOf(toolName, input) : undefined;
    return entries === undefined ? [update] : [update, { sessionUpdate: "plan", entries }];
  }
}
