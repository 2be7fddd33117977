import { type ToolOutput, outputChars } from "../../../kernel/index.ts";
import { headOf, tailOf } from "../../base/text-cut.ts";

/** The smallest limit that leaves room for text in addition to the marker. */
export const shortestCut = 64;

/** Cuts a text to at most `limit` characters, including a marker that says how many are missing. */
export function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const head = headOf(text, limit - marker(text.length).length);
  return head + marker(text.length - head.length);
}

/** Removes the middle of a text, so that `limit` characters remain, with a marker that says how many are missing. */
export function withoutMiddle(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  const [head, tail] = [headOf(text, half), tailOf(text, half)];
  return `${head}${marker(text.length - head.length - tail.length)}\n${tail}`;
}

/** Replaces an output that is longer than `limit` characters by a cut text, which names images and files. */
export function cutOutput(output: ToolOutput, limit: number): ToolOutput {
  if (outputChars(output) <= limit) return output;
  return { type: "text", text: cutText(asText(output), limit) };
}

function asText(output: ToolOutput): string {
  if (output.type === "text") return output.text;
  if (output.type === "json") return JSON.stringify(output.value);
  return output.parts
    .map((part) => (part.type === "text" ? part.text : `[${part.type} left out: ${part.mediaType}]`))
    .join("\n");
}

function marker(chars: number): string {
  return `\n[... ${chars} characters omitted]`;
}
