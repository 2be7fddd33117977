import { type ToolOutput, is, optionTable, type OptionKinds } from "../../../kernel/index.ts";
import type { Layer } from "./layer.ts";
import { headOf, tailOf } from "../../base/text-cut.ts";
import { editThrown } from "./tool-error.ts";

/** Options of `contentTruncator`. */
export interface ContentTruncatorOptions {
  /** Maximum number of UTF-16 units of one result that the model receives. Default: 50_000. */
  readonly maxChars?: number;
  /** `"head"` keeps the beginning, `"both"` keeps half from the beginning and half from the end. Default: `"head"`. */
  readonly keep?: "head" | "both";
  /** The text that replaces the omitted part. */
  readonly marker?: (leftOut: number) => string;
}

const knownOptions = optionTable({
  maxChars: is.number({ from: 1, default: 50_000 }),
  keep: is.choice(["head", "both"], { default: "head" }),
  marker: is.callback(),
} satisfies OptionKinds<ContentTruncatorOptions>);

/** Creates middleware that truncates long tool results and marks the omission. Images and files are not changed. */
export function contentTruncator(options: ContentTruncatorOptions = {}): Layer {
  const { maxChars, keep, marker = markerOf } = knownOptions.read("contentTruncator()", options);

  function cut(text: string, room: number): string {
    if (text.length <= room) return text;
    const head = headOf(text, keep === "both" ? Math.ceil(room / 2) : room);
    const tail = keep === "both" ? tailOf(text, Math.floor(room / 2)) : "";
    return `${head}${marker(text.length - head.length - tail.length)}${tail}`;
  }

  function shorten(output: ToolOutput): ToolOutput {
    if (output.type === "text") {
      return output.text.length <= maxChars ? output : { type: "text", text: cut(output.text, maxChars) };
    }
    if (output.type === "json") {
      const text = JSON.stringify(output.value);
      return text.length <= maxChars ? output : { type: "text", text: cut(text, maxChars) };
    }
    let room = maxChars;
    let changed = false;
    const parts = output.parts.map((part) => {
      if (part.type !== "text") return part;
      const text = cut(part.text, room);
      room = Math.max(0, room - part.text.length);
      changed ||= text !== part.text;
      return { ...part, text };
    });
    return changed ? { type: "content", parts } : output;
  }

  return {
    name: "content-truncator",
    function: async (context, next) => {
      await editThrown(next, (text) => cut(text, maxChars));
      const { result } = context;
      if (result === undefined) return;
      const output = shorten(result.output);
      if (output !== result.output) context.result = { ...result, output };
    },
  };
}

function markerOf(leftOut: number): string {
  return `\n[... ${leftOut} characters omitted ...]\n`;
}
