import { Fault, type JsonObject, type JsonValue, type Tool, type ToolResult } from "../../kernel/index.ts";
import { ownTool, refusal, said } from "../own-tool.ts";
import { todosIn, todoStatuses, type VirtualDesk } from "./virtual-desk.ts";

/** How much there may be on a desk: it is part of a conversation. */
export interface DeskBounds {
  readonly maxTodos: number;
  readonly maxFiles: number;
  /** Of one file. */
  readonly maxFileCharacters: number;
}

const path = { description: "Where the file is, such as notes/plan.md" };

/** To look at the files, and change nothing. */
export function readingTools(desk: VirtualDesk): readonly Tool[] {
  return [
    ownTool({
      name: "ls",
      description: "Lists your files. They are your own notes and drafts: nobody else has them.",
      input: {},
      execute: () => {
        const lines = [...desk.now().files].map(([name, text]) => `${name} (${text.length} characters)`);
        return said(lines.toSorted().join("\n") || "[no files]");
      },
    }),
    ownTool({
      name: "read_file",
      description: "Gives the text of one of your files.",
      input: { path },
      execute: (input) => {
        const text = desk.now().files.get(input.path);
        return text === undefined ? notThere(desk, input.path) : said(text || "[empty]");
      },
    }),
  ] as readonly Tool[];
}

/** To keep a plan and files. Each waits for those before it: a file that is written is there for the next call of the turn. */
export function writingTools(desk: VirtualDesk, bounds: DeskBounds): readonly Tool[] {
  const { maxFiles, maxFileCharacters } = bounds;
  const done = (callId: string, input: JsonObject, words: string): ToolResult => {
    const other = desk.difference(callId, input);
    if (other === undefined) return said(words);
    return { output: { type: "json", value: { done: words, ...other } }, isError: false };
  };
  return [
    todosTool(bounds, done),
    ownTool({
      name: "write_file",
      description: "Writes one of your files: a new one, or the whole of one in place of what it was.",
      input: { path, content: { description: "The whole text", optional: true } },
      concurrency: "sequential",
      execute: (input, { callId }) => {
        const { files } = desk.now();
        const { length } = input.content;
        if (length > maxFileCharacters) return tooLong(length, maxFileCharacters);
        if (!files.has(input.path) && files.size >= maxFiles)
          return refusal(`there are ${files.size} files, and there may be no more: write to one of them`);
        return done(callId, { ...input }, `wrote ${input.path}: ${length} characters`);
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
        const text = desk.now().files.get(input.path);
        if (text === undefined) return notThere(desk, input.path);
        const times = text.split(input.old_text).length - 1;
        if (times !== 1)
          return refusal(
            times === 0
              ? `the old text is not in ${input.path}: read it, and give the text to the letter`
              : `the old text is in ${input.path} ${times} times: give more of what is around it`,
          );
        const length = text.length - input.old_text.length + input.new_text.length;
        if (length > maxFileCharacters) return tooLong(length, maxFileCharacters);
        return done(callId, { ...input }, `edited ${input.path}: ${length} characters`);
      },
    }),
  ] as readonly Tool[];
}

function todosTool(
  { maxTodos }: DeskBounds,
  done: (callId: string, input: JsonObject, words: string) => ToolResult,
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
      const todos = todosIn({ todos: (list ?? null) as JsonValue });
      if (Array.isArray(list) && todos.length === list.length) return { todos };
      throw new Fault(
        "invalid_argument",
        `todos must be a list of { content, status }, with a content and one of the statuses ${todoStatuses.join(", ")}`,
      );
    },
    execute: async (input, { callId }) => {
      const { todos } = input as { readonly todos: ReturnType<typeof todosIn> };
      if (todos.length > maxTodos)
        return refusal(`${todos.length} things to do are too many: ${maxTodos} at most`);
      const open = todos.filter(({ status }) => status !== "completed").length;
      return done(
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

function notThere(desk: VirtualDesk, name: string): ToolResult {
  const names = [...desk.now().files.keys()].toSorted().join(", ");
  return refusal(`there is no file ${name}; there are: ${names || "none"}`);
}

function tooLong(length: number, limit: number): ToolResult {
  return refusal(`that would be ${length} characters, and a file has ${limit} at most: use several files`);
}
