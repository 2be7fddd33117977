import type { ChatMessage, JsonObject, ModelRequest } from "../../../src/kernel/index.ts";
import type { ScriptedReply } from "../../../src/testing/index.ts";

/** A tool call with its arguments. */
export type Call = readonly [name: string, input: JsonObject];

/** Returns a reply with some text and these tool calls. */
export function turn(...calls: readonly Call[]): ScriptedReply {
  return { text: "Working.", toolCalls: calls.map(([name, input]) => ({ name, input })) };
}

export const write = (path: string, content: string): Call => ["write_file", { path, content }];
export const read = (path: string): Call => ["read_file", { path }];
export const todo = (content: string, status = "pending") => ({ content, status });

/** Returns the texts of the latest tool results in a request. */
export function resultsIn(request: ModelRequest | undefined): readonly string[] {
  const last: ChatMessage | undefined = request?.messages.findLast(({ role }) => role === "tool");
  return last?.role === "tool"
    ? last.content.map(({ output }) => (output.type === "text" ? output.text : JSON.stringify(output)))
    : [];
}
