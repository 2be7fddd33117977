import type { Tool } from "../../kernel/index.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

export interface TodoToolOptions {
  readonly maxItems?: number;
}

const input = {
  type: "object",
  properties: {
    items: {
      type: "array",
      description: "The whole list, in order: it takes the place of the one before",
      items: {
        type: "object",
        properties: {
          text: { type: "string", minLength: 1, maxLength: 500 },
          status: { type: "string", enum: ["open", "doing", "done", "dropped"] },
        },
        required: ["text", "status"],
        additionalProperties: false,
      },
    },
  },
  required: ["items"],
  additionalProperties: false,
} as const;

const marks = { open: "[ ]", doing: "[>]", done: "[x]", dropped: "[-]" } as const;

/** A plan that the model keeps. It lives in the conversation and the log, so it is where they are, also after a restart. */
export function todoTool({ maxItems = 50 }: TodoToolOptions = {}): Tool {
  return tool({
    name: "todo",
    description:
      "Keeps the plan: write the whole list whenever it changes. One item at most is doing; mark it done before the next.",
    inputSchema: input,
    execute: ({ items }) => {
      if (items.length > maxItems)
        return errorResult(`${items.length} items are too many: ${maxItems} at most`);
      const count = (status: string): number => items.filter((item) => item.status === status).length;
      if (count("doing") > 1)
        return errorResult(`${count("doing")} items are doing: keep one, the others open`);
      const lines = items.map(({ text, status }) => `${marks[status]} ${text.replaceAll(/\s+/g, " ")}`);
      const facts = {
        total: items.length,
        done: count("done"),
        dropped: count("dropped"),
        open: count("open"),
      };
      return textResult(lines.join("\n") || "[nothing to do]", facts);
    },
  });
}
