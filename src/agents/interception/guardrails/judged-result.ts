import type { TextPart, ToolOutput, ToolResult } from "../../../kernel/index.ts";
import type { Objection } from "./guardrail-panel.ts";

const mark = "[warning by the guardrail ";

/** Adds the warnings of guardrails to a result, for the model to read. */
export function withWarnings(result: ToolResult, warnings: readonly Objection[]): ToolResult {
  if (warnings.length === 0) return result;
  const lines = warnings.map(({ guardrail, reason }) => `${mark}${guardrail}: ${reason}]`);
  return { ...result, output: added(result.output, lines.join("\n")) };
}

/** The result that replaces a withheld one; it contains nothing of it. */
export function withheldResult({ guardrail, reason }: Objection): ToolResult {
  return {
    output: { type: "text", text: `[withheld by the guardrail ${guardrail}: ${reason}]` },
    isError: true,
  };
}

/** The tool's own answer without warnings, to compare results. */
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
