import type { TextPart, ToolOutput } from "./content.ts";
import type { ToolResult } from "./tool-call.ts";

/** Adds a note of Reeve to the result of a tool call, for the model to read. */
export function withNote(result: ToolResult, note: string): ToolResult {
  return { ...result, output: added(result.output, note) };
}

function added(output: ToolOutput, note: string): ToolOutput {
  if (output.type === "text") return { type: "text", text: `${output.text}\n\n${note}` };
  const before: Extract<ToolOutput, { type: "content" }>["parts"] =
    output.type === "content" ? output.parts : [{ type: "text", text: JSON.stringify(output.value) }];
  const part: TextPart = { type: "text", text: `\n\n${note}` };
  return { type: "content", parts: [...before, part] };
}
