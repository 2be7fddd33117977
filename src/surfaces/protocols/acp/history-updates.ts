import type { SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk";
import type { ChatMessage, SessionEntry, ToolOutput } from "../../../kernel/index.ts";
import { contentBlock, outputBlocks, textBlock } from "./content-blocks.ts";
import { planOf, toolCallView } from "./tool-call-view.ts";

/** A call without its result. */
interface OpenCall {
  readonly toolCallId: string;
  readonly content: ToolCallContent[];
}

/**
 * Converts the path of a session to the updates that an editor has received, or would have received. Only the last
 * plan of the path is included.
 */
export function historyUpdates(path: readonly SessionEntry[], root: string): readonly SessionUpdate[] {
  const updates: SessionUpdate[] = [];
  const open = new Map<string, OpenCall>();
  let plan: SessionUpdate | undefined;
  for (const entry of path) {
    if (entry.type !== "message") continue;
    const { message, id } = entry;
    updates.push(...said(message, id));
    if (message.role === "assistant") {
      for (const part of message.content) {
        if (part.type !== "tool_call") continue;
        const { callId, toolName, input } = part;
        const view = toolCallView(toolName, input, root);
        // Providers repeat the ids of calls, so the entry makes the id unique in the session.
        const toolCallId = `${id}/${callId}`;
        open.set(callId, { toolCallId, content: view.content });
        updates.push({
          sessionUpdate: "tool_call",
          toolCallId,
          name: toolName,
          ...view,
          status: "pending",
          rawInput: input,
        });
        const entries = planOf(toolName, input);
        if (entries !== undefined) plan = { sessionUpdate: "plan", entries };
      }
    }
    if (message.role === "tool")
      for (const { callId, output, isError } of message.content) {
        const call = open.get(callId);
        if (call !== undefined) updates.push(resultOf(call, output, isError));
        open.delete(callId);
      }
  }
  return plan === undefined ? updates : [...updates, plan];
}

function resultOf({ toolCallId, content }: OpenCall, output: ToolOutput, isError: boolean): SessionUpdate {
  const shown = outputBlocks(output).map((block): ToolCallContent => ({ type: "content", content: block }));
  return {
    sessionUpdate: "tool_call_update",
    toolCallId,
    status: isError ? "failed" : "completed",
    content: isError ? shown : [...content, ...shown],
    rawOutput: output,
  };
}

/** Returns updates for the texts, thoughts and files of a message. */
function said(message: ChatMessage, messageId: string): readonly SessionUpdate[] {
  if (message.role === "user")
    return message.content.map((part) => ({
      sessionUpdate: "user_message_chunk",
      content: contentBlock(part),
      messageId,
    }));
  if (message.role !== "assistant") return [];
  return message.content.flatMap((part): readonly SessionUpdate[] => {
    if (part.type === "reasoning")
      return [{ sessionUpdate: "agent_thought_chunk", content: textBlock(part.text), messageId }];
    if (part.type !== "text" && part.type !== "file") return [];
    return [{ sessionUpdate: "agent_message_chunk", content: contentBlock(part), messageId }];
  });
}
