import {
  copyJson,
  deepFreeze,
  describeValue,
  Fault,
  findUnpaired,
  isChatMessage,
  isJson,
  isToolOutput,
  readProperty,
  type AnswerableEventType,
  type ChatMessage,
  type ExtensionEvents,
  type JsonValue,
  type OptionTable,
  type ToolResult,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { isEmptyInput, readInput } from "../../base/agent-input.ts";

/** The event of an answerable type. */
export type AnswerableEvent<Type extends AnswerableEventType> = ExtensionEvents[Type]["event"];
/** The value that a handler of an event type may return as an answer. */
export type Answer<Type extends AnswerableEventType> = ExtensionEvents[Type]["result"];

/** How the answers of the handlers of one event type are read and combined. */
export interface AnswerRule<Type extends AnswerableEventType> {
  /** Returns the answer, `null` for a value that changes nothing, or `undefined` for an invalid one. */
  readonly read: (value: object) => Answer<Type> | null | undefined;
  /** How a valid answer looks, for the error of an invalid one. */
  readonly expected: string;
  /** The names of the fields of an answer. */
  readonly table: OptionTable;
  /** Returns the event for the next handler. If absent, every handler receives the same event. */
  readonly next?: (event: AnswerableEvent<Type>, answer: Answer<Type>) => AnswerableEvent<Type>;
  /** Whether no further handler is called. */
  readonly isFinal: (answer: Answer<Type>) => boolean;
  /** The answer of a handler that failed. If absent, a failure changes nothing. */
  readonly onFailure?: (fault: Fault) => Answer<Type>;
}

const always = (): boolean => true;
const never = (): boolean => false;

const refusal = {
  read: (value: object) => {
    const { cancel, reason } = value as { readonly cancel?: unknown; readonly reason?: unknown };
    if (cancel !== true || (reason !== undefined && typeof reason !== "string")) return undefined;
    return reason === undefined ? { cancel } : { cancel, reason };
  },
  expected: "{ cancel: true, reason }",
  table: optionTable({ cancel: is.any, reason: is.any } satisfies OptionKinds<{
    cancel: true;
    reason: string;
  }>),
  isFinal: always,
} satisfies AnswerRule<"session_before_fork">;

/** The rules of all answerable events. */
export const answerRules: { readonly [Type in AnswerableEventType]: AnswerRule<Type> } = {
  input: {
    read: readInputAnswer,
    expected:
      '{ action: "continue" }, { action: "transform", input } with a text or parts that are not empty, or { action: "handled", reply }',
    table: optionTable({ action: is.any, input: is.any, reply: is.any } satisfies OptionKinds<
      Answer<"input">
    >),
    next: (event, answer) =>
      answer.action === "transform"
        ? { ...event, input: answer.input, text: readInput(answer.input)?.prompt ?? "" }
        : event,
    isFinal: ({ action }) => action === "handled",
  },
  before_agent_start: {
    read: (value) => {
      const systemPrompt = readProperty(value, "systemPrompt");
      return typeof systemPrompt === "string" ? { systemPrompt } : undefined;
    },
    expected: "{ systemPrompt }",
    table: optionTable({ systemPrompt: is.any } satisfies OptionKinds<Answer<"before_agent_start">>),
    next: (event, { systemPrompt }) => ({ ...event, systemPrompt }),
    isFinal: never,
  },
  context: {
    read: (value) => {
      const messages = readProperty(value, "messages");
      return isHistory(messages) ? { messages: sealed(messages) } : undefined;
    },
    expected: "{ messages } with a list of messages in which every call is followed by its result",
    table: optionTable({ messages: is.any } satisfies OptionKinds<Answer<"context">>),
    next: (_event, { messages }) => ({ messages }),
    isFinal: never,
  },
  tool_call: {
    read: (value) => {
      const [block, reason] = [readProperty(value, "block"), readProperty(value, "reason")];
      if (block === false) return null;
      return block === true && typeof reason === "string" ? { block, reason } : undefined;
    },
    expected: "{ block: true, reason }, or undefined to let the call pass",
    table: optionTable({ block: is.any, reason: is.any } satisfies OptionKinds<Answer<"tool_call">>),
    isFinal: always,
    // S4: the call is denied, because the handler may have meant to block it.
    onFailure: ({ message }) => ({ block: true, reason: `the extension failed: ${message}` }),
  },
  tool_result: {
    read: readPatch,
    expected:
      '{ output, isError, terminate }, each of them optional, with a text or a tool output such as { type: "json", value } as the output',
    table: optionTable({ output: is.any, isError: is.any, terminate: is.any } satisfies OptionKinds<
      Answer<"tool_result">
    >),
    next: ({ call, result }, patch) => ({ call, result: { ...result, ...patch } as ToolResult }),
    isFinal: never,
    // S4: the result is withheld, because the handler may have meant to replace it. The error may quote the result.
    onFailure: () => ({ output: withheld, isError: true }),
  },
  session_before_compact: {
    read: (value) => {
      if (readProperty(value, "cancel") === true) return { cancel: true };
      const [summary, kept] = [readProperty(value, "summary"), readProperty(value, "firstKeptEntryId")];
      if (typeof summary !== "string" || summary.trim() === "" || typeof kept !== "string") return undefined;
      return { summary, firstKeptEntryId: kept };
    },
    expected: "{ cancel: true }, or { summary, firstKeptEntryId }",
    table: optionTable({ cancel: is.any, summary: is.any, firstKeptEntryId: is.any } satisfies OptionKinds<
      Answer<"session_before_compact">
    >),
    isFinal: always,
  },
  session_before_switch: refusal,
  session_before_fork: refusal,
  session_before_tree: refusal,
};

/**
 * Reads the value that a handler returned. `undefined` and `null` change nothing. Throws `invalid_argument` for
 * other invalid values.
 */
export function readAnswer<Type extends AnswerableEventType>(
  type: Type,
  value: unknown,
): Answer<Type> | undefined {
  if (value === undefined || value === null) return undefined;
  const { read, expected, table } = answerRules[type] as AnswerRule<Type>;
  if (typeof value === "object" && !Array.isArray(value)) {
    const answer = read(value);
    if (answer !== undefined) {
      table.read(`the result of a handler of ${type}`, value);
      return answer ?? undefined;
    }
  }
  throw new Fault(
    "invalid_argument",
    `invalid result ${describeValue(value)} of a handler of ${type}: expected ${expected}`,
  );
}

function readInputAnswer(value: object): Answer<"input"> | undefined {
  const [action, input, reply] = [
    readProperty(value, "action"),
    readProperty(value, "input"),
    readProperty(value, "reply"),
  ];
  if (action === "continue") return { action };
  if (action === "handled")
    return reply === undefined ? { action } : typeof reply === "string" ? { action, reply } : undefined;
  if (action !== "transform" || !isJson(input)) return undefined;
  if (typeof input !== "string" && !Array.isArray(input)) return undefined;
  const read = readInput(input);
  const isMessage = read?.message !== undefined && read.earlier === undefined && !isEmptyInput(read);
  return isMessage ? { action, input: sealedCopy(input) } : undefined;
}

/** The result that the model receives in place of a tool result, if an extension failed to change that result. */
const withheld = deepFreeze({
  type: "text",
  text: "[withheld: an extension failed to process this result]",
} as const);

function readPatch(value: object): Answer<"tool_result"> | undefined {
  const [given, isError, terminate] = [
    readProperty(value, "output"),
    readProperty(value, "isError"),
    readProperty(value, "terminate"),
  ];
  // An output that is undefined is a replacement that failed, and no result without a replacement.
  if (given === undefined && "output" in value) return undefined;
  const output = typeof given === "string" ? { type: "text", text: given } : given;
  if (output !== undefined && !(isJson(output) && isToolOutput(output))) return undefined;
  if (isError !== undefined && typeof isError !== "boolean") return undefined;
  if (!isTerminate(terminate)) return undefined;
  return {
    ...(output !== undefined && { output: sealedCopy(output) }),
    ...(isError !== undefined && { isError }),
    ...(terminate !== undefined && { terminate }),
  };
}

function isTerminate(value: unknown): value is ToolResult["terminate"] {
  return value === undefined || typeof value === "boolean" || value === "always" || value === "answer";
}

function isHistory(value: unknown): value is readonly ChatMessage[] {
  if (!Array.isArray(value) || !value.every(isChatMessage) || !isJson(value)) return false;
  return findUnpaired(value) === undefined;
}

/** Returns messages that the handler can no longer change. The event's own list is returned unchanged. */
function sealed(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  if (Object.isFrozen(messages)) return messages;
  return messages.map((each) => (Object.isFrozen(each) ? each : sealedCopy(each)));
}

/** Returns a copy of an answer, so that a handler that keeps its answer cannot change it later. */
function sealedCopy<Value>(value: Value): Value {
  return deepFreeze(copyJson(value as unknown as JsonValue)) as unknown as Value;
}
