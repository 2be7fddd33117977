import type { TextPart, ToolOutput, ToolResult } from "../../kernel/index.ts";
import type { Objection } from "./guardrail-panel.ts";

const mark = "[warning by the guardrail ";

/** The result with what guardrails have to say about it, for the model to read. */
export function withWarnings(result: ToolResult, warnings: readonly Objection[]): ToolResult {
  if (warnings.length === 0) return result;
  const lines = warnings.map(({ guardrail, reason }) => `${mark}${guardrail}: ${reason}]`);
  return { ...result, output: added(result.output, lines.join("\n")) };
}

/** In place of a result that is not given out: nothing of it is left. */
export function withheldResult({ guardrail, reason }: Objection): ToolResult {
  return {
    output: { type: "text", text: `[withheld by the guardrail ${guardrail}: ${reason}]` },
    isError: true,
  };
}

/** What a tool itself said, to tell one answer from another: warnings left out. */
export function ownAnswer(output: ToolOutput): string {
  const text = output.type === "json" ? JSON.stringify(output.value) : asContent(output);
  const at = text.indexOf(`\n\n${mark}`);
  return at < 0 ? text : text.slice(0, at);
}

function added(output: ToolOutput, warning: string): ToolOutput {
  if (output.type === "text") return { type: "text", text: `${output.text}\n\n${warning}` };
  const before: Extract<ToolOutput, { type: "content" }>["parts"] =
    output.type === "content" ? output.parts : [{ type: "text", text: JSON.stringify(output.value) }];
  const part: TextPart = { type: "text", text: `\n\n${warning}` };
  return { type: "content", parts: [...before, part] };
}

function asContent(output: Exclude<ToolOutput, { type: "json" }>): string {
  if (output.type === "text") return output.text;
  return output.parts.map((part) => (part.type === "text" ? part.text : JSON.stringify(part))).join("");
}
