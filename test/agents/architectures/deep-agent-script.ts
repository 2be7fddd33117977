import type { ChatMessage, JsonObject, ModelRequest } from "../../../src/kernel/index.ts";
import type { ScriptedReply } from "../../../src/testing/index.ts";

export type Call = readonly [name: string, input: JsonObject];

export function turn(...calls: readonly Call[]): ScriptedReply {
  return { text: "Working.", toolCalls: calls.map(([name, input]) => ({ name, input })) };
}

export const write = (path: string, content: string): Call => ["write_file", { path, content }];
export const read = (path: string): Call => ["read_file", { path }];
export const todo = (content: string, status = "pending") => ({ content, status });

/** What the tools of a request's last message said. */
export function resultsIn(request: ModelRequest | undefined): readonly string[] {
  const last: ChatMessage | undefined = request?.messages.findLast(({ role }) => role === "tool");
  return last?.role === "tool"
    ? last.content.map(({ output }) => (output.type === "text" ? output.text : JSON.stringify(output)))
    : [];
}
