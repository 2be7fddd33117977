import { Fault, type JsonObject, type JsonValue, type Tool, type ToolResult } from "../../kernel/index.ts";
import { ownTool, refusal, said } from "../base/own-tool.ts";
import { validTodos, todoStatuses, type DeepAgentStateReader } from "./deep-agent-state.ts";

/**
 * Limits of a deep agent's plan and files. Both are part of the conversation and must therefore stay small. A call
 * that exceeds a limit gets an error result with the reason, which the model sees.
 */
export interface DeepAgentLimits {
  /** Maximum number of todos. Default: 50. */
  readonly maxTodos: number;
  /** Maximum number of files. Default: 100. */
  readonly maxFiles: number;
  /** Maximum length of one file in characters. Default: 100_000. */
  readonly maxFileCharacters: number;
}

const path = { description: "Path of the file, such as notes/plan.md" };

/** Creates the tools that list and read the virtual files. */
export function readTools(reader: DeepAgentStateReader): readonly Tool[] {
  return [
    ownTool({
      name: "ls",
      description: "Lists your files. They are your own notes and drafts; no other agent can see them.",
      input: {},
      execute: () => {
        const lines = [...reader.current().files].map(
          ([name, text]) => `${name} (${text.length} characters)`,
        );
        return said(lines.toSorted().join("\n") || "[no files]");
      },
    }),
    ownTool({
      name: "read_file",
      description: "Returns the content of one of your files.",
      input: { path },
      execute: (input) => {
        const text = reader.current().files.get(input.path);
        return text === undefined ? fileNotFound(reader, input.path) : said(text || "[empty]");
      },
    }),
  ] as readonly Tool[];
}

/**
 * Creates the tools that change the plan and the virtual files. The calls of a turn run in order, so that a later
 * call sees the file that an earlier call wrote.
 */
export function writeTools(reader: DeepAgentStateReader, limits: DeepAgentLimits): readonly Tool[] {
  const { maxFiles, maxFileCharacters } = limits;
  const confirm = (callId: string, input: JsonObject, summary: string): ToolResult => {
    const replaced = reader.replacedArguments(callId, input);
    if (replaced === undefined) return said(summary);
    return { output: { type: "json", value: { done: summary, ...replaced } }, isError: false };
  };
  return [
    todosTool(limits, confirm),
    ownTool({
      name: "write_file",
      description: "Writes one of your files. Creates the file, or replaces its whole content.",
      input: { path, content: { description: "The whole content of the file", optional: true } },
      concurrency: "sequential",
      execute: (input, { callId }) => {
        const { files } = reader.current();
        const { length } = input.content;
        if (length > maxFileCharacters) return fileTooLong(length, maxFileCharacters);
        if (!files.has(input.path) && files.size >= maxFiles)
          return refusal(`there are already ${files.size} files, which is the maximum: write to one of them`);
        return confirm(callId, { ...input }, `wrote ${input.path}: ${length} characters`);
      },
    }),
    ownTool({
      name: "edit_file",
      description: "Replaces a text in one of your files. The old text must occur exactly once.",
      input: {
        path,
        old_text: { description: "The exact text to replace, with enough context to occur only once" },
        new_text: {
          description: "The new text; leave it out to delete the old text",
          optional: true,
        },
      },
      concurrency: "sequential",
      execute: (input, { callId }) => {
        const text = reader.current().files.get(input.path);
        if (text === undefined) return fileNotFound(reader, input.path);
        const times = text.split(input.old_text).length - 1;
        if (times !== 1)
          return refusal(
            times === 0
              ? `the old text does not occur in ${input.path}: read the file and give the exact text`
              : `the old text occurs ${times} times in ${input.path}: include more of the surrounding text`,
          );
        const length = text.length - input.old_text.length + input.new_text.length;
        if (length > maxFileCharacters) return fileTooLong(length, maxFileCharacters);
        return confirm(callId, { ...input }, `edited ${input.path}: ${length} characters`);
      },
    }),
  ] as readonly Tool[];
}

function todosTool(
  { maxTodos }: DeepAgentLimits,
  confirm: (callId: string, input: JsonObject, summary: string) => ToolResult,
): Tool {
  const frame = ownTool({
    name: "write_todos",
    description:
      "Stores your plan. Write the whole list whenever it changes. Work on one item at a time and mark it as completed before you start the next.",
    input: {},
    concurrency: "sequential",
    execute: () => said(""),
  });
  return {
    ...frame,
    inputSchema: todosSchema,
    parse: (input: JsonValue) => {
      const list = typeof input === "object" && input !== null ? Reflect.get(input, "todos") : undefined;
      const todos = validTodos({ todos: (list ?? null) as JsonValue });
      if (Array.isArray(list) && todos.length === list.length) return { todos };
      throw new Fault(
        "invalid_argument",
        `todos must be a list of { content, status }, each with a non-empty content and one of the statuses ${todoStatuses.join(", ")}`,
      );
    },
    execute: async (input, { callId }) => {
      const { todos } = input as { readonly todos: ReturnType<typeof validTodos> };
      if (todos.length > maxTodos)
        return refusal(`${todos.length} todos are too many: the maximum is ${maxTodos}`);
      const open = todos.filter(({ status }) => status !== "completed").length;
      return confirm(
        callId,
        { todos: todos.map((each) => ({ ...each })) },
        `stored ${todos.length} todos, ${open} of them not completed`,
      );
    },
  };
}

const todosSchema: JsonObject = {
  type: "object",
  properties: {
    todos: {
      type: "array",
      description: "The whole list, in order",
      items: {
        type: "object",
        properties: { content: { type: "string" }, status: { type: "string", enum: [...todoStatuses] } },
        required: ["content", "status"],
        additionalProperties: false,
      },
    },
  },
  required: ["todos"],
  additionalProperties: false,
};

function fileNotFound(reader: DeepAgentStateReader, name: string): ToolResult {
  const names = [...reader.current().files.keys()].toSorted().join(", ");
  return refusal(`there is no file ${name}; existing files: ${names || "none"}`);
}

function fileTooLong(length: number, limit: number): ToolResult {
  return refusal(`the file would have ${length} characters, and the maximum is ${limit}: use several files`);
}
