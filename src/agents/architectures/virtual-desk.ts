import {
  canonicalJson,
  toolCallsOf,
  type AgentSession,
  type JsonObject,
  type JsonValue,
  type ToolCallPart,
  type ToolOutput,
} from "../../kernel/index.ts";

export const todoStatuses = ["pending", "in_progress", "completed"] as const;

export interface Todo {
  readonly content: string;
  readonly status: (typeof todoStatuses)[number];
}

/** What an agent has in front of it: a list of things to do, and files that are nowhere but in its conversation. */
export interface Desk {
  readonly todos: readonly Todo[];
  readonly files: ReadonlyMap<string, string>;
}

const empty: Desk = { todos: [], files: new Map() };

/** Under which a result says that a call was carried out with other arguments than the model gave. */
const instead = "carriedOut";

/**
 * The desk of a session: a fold over its calls and their results, so that it is the same after a restart, and in the next invocation of the
 * same conversation. Costs what is new: what was folded is kept.
 */
export class VirtualDesk {
  readonly #session: AgentSession;
  #folded = empty;
  #length = 0;

  constructor(session: AgentSession) {
    this.#session = session;
  }

  /** With what is done of the calls under way. */
  now(): Desk {
    const { messages, settled } = this.#session;
    for (; this.#length < messages.length; this.#length++) {
      const calls = callsAt(this.#session, this.#length);
      if (calls.length === 0) continue;
      const results = messages.at(this.#length + 1);
      if (results?.role !== "tool") return foldAll(this.#folded, calls, settled);
      this.#folded = foldAll(this.#folded, calls, results.content);
    }
    return this.#folded;
  }

  /**
   * What a call says beside its words when somebody, at the gate say, gave it other arguments than those the conversation shows.
   * `undefined`: nobody did.
   */
  difference(callId: string, input: JsonObject): JsonObject | undefined {
    const calls = callsAt(this.#session, this.#session.messages.length - 1);
    const given = calls.find((call) => call.callId === callId)?.input;
    const isSame =
      isObject(given) &&
      Object.entries(input).every(([key, value]) => canonicalJson(given[key] ?? "") === canonicalJson(value));
    return given === undefined || isSame ? undefined : { [instead]: input };
  }
}

interface Done {
  readonly output: ToolOutput;
  readonly isError: boolean;
}

function callsAt({ messages }: AgentSession, index: number): readonly ToolCallPart[] {
  const message = messages.at(index);
  return message?.role === "assistant" ? toolCallsOf(message) : [];
}

function foldAll(desk: Desk, calls: readonly ToolCallPart[], results: readonly (Done | undefined)[]): Desk {
  return calls.reduce((before, call, index) => fold(before, call, results[index]), desk);
}

function fold(desk: Desk, { toolName, input: given }: ToolCallPart, result: Done | undefined): Desk {
  if (result === undefined || result.isError) return desk;
  const { output } = result;
  const other = output.type === "json" && isObject(output.value) ? output.value[instead] : undefined;
  const input = other ?? given;
  if (!isObject(input)) return desk;
  const path = textAt(input, "path");
  switch (toolName) {
    case "write_todos":
      return { ...desk, todos: todosIn(input) };
    case "write_file":
      return withFile(desk, path, textAt(input, "content"));
    case "edit_file":
      return withFile(desk, path, replaced(desk.files.get(path) ?? "", input));
    default:
      return desk;
  }
}

/** Literally: `$&` in the new text is no reference. */
function replaced(text: string, input: JsonObject): string {
  return text.replace(textAt(input, "old_text"), () => textAt(input, "new_text"));
}

export function todosIn(input: JsonObject): readonly Todo[] {
  const { todos } = input;
  return Array.isArray(todos) ? todos.filter((each: JsonValue) => isTodo(each)) : [];
}

function isTodo(value: JsonValue | Todo): value is Todo & JsonObject {
  if (!isObject(value as JsonValue)) return false;
  const { content, status } = value as JsonObject;
  return typeof content === "string" && content !== "" && todoStatuses.some((each) => each === status);
}

function withFile(desk: Desk, path: string, text: string): Desk {
  return { ...desk, files: new Map([...desk.files, [path, text]]) };
}

function textAt(input: JsonObject, key: string): string {
  const value = input[key];
  return typeof value === "string" ? value : "";
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
