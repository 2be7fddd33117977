import {
  canonicalJson,
  toolCallsOf,
  type AgentSession,
  type JsonObject,
  type JsonValue,
  type ToolCallPart,
  type ToolOutput,
} from "../../kernel/index.ts";

/** Every status of a todo. */
export const todoStatuses = ["pending", "in_progress", "completed"] as const;

/** One item of a deep agent's plan. */
export interface Todo {
  readonly content: string;
  readonly status: (typeof todoStatuses)[number];
}

/** The plan and the virtual files of a deep agent. The files exist only in the conversation, not on a disk. */
export interface DeepAgentState {
  readonly todos: readonly Todo[];
  /** Content of each file, by path. */
  readonly files: ReadonlyMap<string, string>;
}

const emptyState: DeepAgentState = { todos: [], files: new Map() };

/**
 * Key in a tool result for the arguments with which a call was executed, if they differ from those that the model
 * gave. Stored in conversations.
 */
const replacedArgumentsKey = "carriedOut";

/**
 * Derives the state of a deep agent from the tool calls and results of its session, so that the state is the same
 * after a restart and in the next invocation. It processes each call only once.
 */
export class DeepAgentStateReader {
  readonly #session: AgentSession;
  #folded = emptyState;
  #length = 0;

  constructor(session: AgentSession) {
    this.#session = session;
  }

  /** Returns the current state, including the calls of the current turn that already have a result. */
  current(): DeepAgentState {
    const { messages, settled } = this.#session;
    for (; this.#length < messages.length; this.#length++) {
      const calls = callsAt(this.#session, this.#length);
      if (calls.length === 0) continue;
      const results = messages.at(this.#length + 1);
      if (results?.role !== "tool") return foldCalls(this.#folded, calls, settled);
      this.#folded = foldCalls(this.#folded, calls, results.content);
    }
    return this.#folded;
  }

  /**
   * Returns the addition to a result if the call was executed with other arguments than the conversation shows, for
   * example because a person edited them in an approval. `undefined` means that the arguments are the same.
   */
  replacedArguments(callId: string, input: JsonObject): JsonObject | undefined {
    const calls = callsAt(this.#session, this.#session.messages.length - 1);
    const original = calls.find((call) => call.callId === callId)?.input;
    const isSame =
      isObject(original) &&
      Object.entries(input).every(
        ([key, value]) => canonicalJson(original[key] ?? "") === canonicalJson(value),
      );
    return original === undefined || isSame ? undefined : { [replacedArgumentsKey]: input };
  }
}

interface CallResult {
  readonly output: ToolOutput;
  readonly isError: boolean;
}

function callsAt({ messages }: AgentSession, index: number): readonly ToolCallPart[] {
  const message = messages.at(index);
  return message?.role === "assistant" ? toolCallsOf(message) : [];
}

function foldCalls(
  state: DeepAgentState,
  calls: readonly ToolCallPart[],
  results: readonly (CallResult | undefined)[],
): DeepAgentState {
  return calls.reduce((before, call, index) => foldCall(before, call, results[index]), state);
}

function foldCall(
  state: DeepAgentState,
  { toolName, input: original }: ToolCallPart,
  result: CallResult | undefined,
): DeepAgentState {
  if (result === undefined || result.isError) return state;
  const { output } = result;
  const replaced =
    output.type === "json" && isObject(output.value) ? output.value[replacedArgumentsKey] : undefined;
  const input = replaced ?? original;
  if (!isObject(input)) return state;
  const path = textMember(input, "path");
  switch (toolName) {
    case "write_todos":
      return { ...state, todos: validTodos(input) };
    case "write_file":
      return setFile(state, path, textMember(input, "content"));
    case "edit_file":
      return setFile(state, path, replaceOnce(state.files.get(path) ?? "", input));
    default:
      return state;
  }
}

/**
 * Replaces the first occurrence of a text literally. Patterns such as `$&` in the new text have no special meaning.
 */
function replaceOnce(text: string, input: JsonObject): string {
  return text.replace(textMember(input, "old_text"), () => textMember(input, "new_text"));
}

/** Returns the valid todos of the arguments of `write_todos`; invalid entries are left out. */
export function validTodos(input: JsonObject): readonly Todo[] {
  const { todos } = input;
  return Array.isArray(todos) ? todos.filter((each: JsonValue) => isTodo(each)) : [];
}

function isTodo(value: JsonValue | Todo): value is Todo & JsonObject {
  if (!isObject(value as JsonValue)) return false;
  const { content, status } = value as JsonObject;
  return typeof content === "string" && content !== "" && todoStatuses.some((each) => each === status);
}

function setFile(state: DeepAgentState, path: string, text: string): DeepAgentState {
  return { ...state, files: new Map([...state.files, [path, text]]) };
}

function textMember(input: JsonObject, key: string): string {
  const value = input[key];
  return typeof value === "string" ? value : "";
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
