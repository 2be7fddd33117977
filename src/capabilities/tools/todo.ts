import { type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { errorResult, textResult } from "./tool-result.ts";
import { tool } from "./tool.ts";

/** Options of `todoTool()`. */
export interface TodoToolOptions {
  /** Maximum number of items of the list. Default: 50. */
  readonly maxItems?: number;
}

const input = {
  type: "object",
  properties: {
    items: {
      type: "array",
      description: "The whole list, in order. It replaces the previous list",
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

const knownOptions = optionTable({
  maxItems: is.number({ from: 0, default: 50 }),
} satisfies OptionKinds<TodoToolOptions>);

/**
 * Creates the tool `todo`, with which the model keeps a plan. The plan is stored in the conversation and the event log,
 * so it survives a restart.
 */
export function todoTool(options: TodoToolOptions = {}): Tool {
  const { maxItems } = knownOptions.read("todoTool()", options);
  return tool({
    name: "todo",
    description:
      "Keep a plan: send the whole list whenever it changes. At most one item has the status doing; mark it done before you start the next.",
    inputSchema: input,
    execute: ({ items }) => {
      if (items.length > maxItems)
        return errorResult(`the list has ${items.length} items; at most ${maxItems} are allowed`);
      const count = (status: string): number => items.filter((item) => item.status === status).length;
      if (count("doing") > 1)
        return errorResult(
          `${count("doing")} items have the status doing: keep one and set the others to open`,
        );
      const lines = items.map(({ text, status }) => `${marks[status]} ${text.replaceAll(/\s+/g, " ")}`);
      const facts = {
        total: items.length,
        done: count("done"),
        dropped: count("dropped"),
        open: count("open"),
      };
      return textResult(lines.join("\n") || "[the list is empty]", facts);
    },
  });
}
