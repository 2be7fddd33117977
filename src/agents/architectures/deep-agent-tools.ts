import { Fault, type JsonObject, type JsonValue, type Tool, type ToolResult } from "../../kernel/index.ts";
import { ownTool, refusal, said } from "../own-tool.ts";
import { validTodos, todoStatuses, type DeepAgentStateReader } from "./deep-agent-state.ts";

/** How much there may be on a desk: it is part of a conversation. */
export interface DeepAgentLimits {
  readonly maxTodos: number;
  readonly maxFiles: number;
  /** Of one file. */
  readonly maxFileCharacters: number;
}

const path = { description: "Where the file is, such as notes/plan.md" };

/** To look at the files, and change nothing. */
export function readTools(reader: DeepAgentStateReader): readonly Tool[] {
  return [
    ownTool({
      name: "ls",
      description: "Lists your files. They are your own notes and drafts: nobody else has them.",
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
      description: "Gives the text of one of your files.",
      input: { path },
      execute: (input) => {
        const text = reader.current().files.get(input.path);
        return text === undefined ? fileNotFound(reader, input.path) : said(text || "[empty]");
      },
    }),
  ] as readonly Tool[];
}

/** To keep a plan and files. Each waits for those before it: a file that is written is there for the next call of the turn. */
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
      description: "Writes one of your files: a new one, or the whole of one in place of what it was.",
      input: { path, content: { description: "The whole text", optional: true } },
      concurrency: "sequential",
      execute: (input, { callId }) => {
        const { files } = reader.current();
        const { length } = input.content;
        if (length > maxFileCharacters) return fileTooLong(length, maxFileCharacters);
        if (!files.has(input.path) && files.size >= maxFiles)
          return refusal(`there are ${files.size} files, and there may be no more: write to one of them`);
        return confirm(callId, { ...input }, `wrote ${input.path}: ${length} characters`);
      },
    }),
    ownTool({
      name: "edit_file",
      description: "Puts a text in place of another in one of your files. The old text must be there once.",
      input: {
        path,
        old_text: { description: "What is there, to the letter, with enough around it to be found once" },
        new_text: {
          description: "What is to be there; leave it out to take the old text away",
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
              ? `the old text is not in ${input.path}: read it, and give the text to the letter`
              : `the old text is in ${input.path} ${times} times: give more of what is around it`,
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
      "Keeps your plan: write the whole list whenever it changes. Work on one thing at a time, and mark it completed before the next.",
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
        `todos must be a list of { content, status }, with a content and one of the statuses ${todoStatuses.join(", ")}`,
      );
    },
    execute: async (input, { callId }) => {
      const { todos } = input as { readonly todos: ReturnType<typeof validTodos> };
      if (todos.length > maxTodos)
        return refusal(`${todos.length} things to do are too many: ${maxTodos} at most`);
      const open = todos.filter(({ status }) => status !== "completed").length;
      return confirm(
        callId,
        { todos: todos.map((each) => ({ ...each })) },
        `${todos.length} things to do, ${open} of them open`,
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
  return refusal(`there is no file ${name}; there are: ${names || "none"}`);
}

function fileTooLong(length: number, limit: number): ToolResult {
  return refusal(`that would be ${length} characters, and a file has ${limit} at most: use several files`);
}
