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
export interface DeepAgentState {
  readonly todos: readonly Todo[];
  readonly files: ReadonlyMap<string, string>;
}

const emptyState: DeepAgentState = { todos: [], files: new Map() };

/** Under which a result says that a call was carried out with other arguments than the model gave. */
const replacedArgumentsKey = "carriedOut";

/**
 * The desk of a session: a fold over its calls and their results, so that it is the same after a restart, and in the next invocation of the
 * same conversation. Costs what is new: what was folded is kept.
 */
export class DeepAgentStateReader {
  readonly #session: AgentSession;
  #folded = emptyState;
  #length = 0;

  constructor(session: AgentSession) {
    this.#session = session;
  }

  /** With what is done of the calls under way. */
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
   * What a call says beside its words when somebody, at the gate say, gave it other arguments than those the conversation shows.
   * `undefined`: nobody did.
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

/** Literally: `$&` in the new text is no reference. */
function replaceOnce(text: string, input: JsonObject): string {
  return text.replace(textMember(input, "old_text"), () => textMember(input, "new_text"));
}

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
