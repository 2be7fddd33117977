import { randomUUID } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import {
  describeValue,
  Fault,
  isChatMessage,
  isJson,
  isUserPart,
  readProperty,
  type AgentId,
  type ChatMessage,
  type Failure,
  type JsonObject,
  type JsonValue,
  type LlmReply,
  type ModelRequest,
  type RunStatus,
  type ToolResult,
  type UserPart,
} from "../../kernel/index.ts";
import type { SecretFields } from "./redaction.ts";

/** A model call of a stored run. */
export interface RecordedModelCall {
  readonly kind: "model";
  /** Sequence number of the call's event in the recorded run. `reeve show RUN --request` prints the call. */
  readonly seq: number;
  readonly agentId: AgentId;
  readonly role: string;
  /** The request as the agent made it, without ephemeral messages. */
  readonly request: ModelRequest;
  /** Number of additional messages at the end of the request whose text is never stored. */
  readonly ephemeral: number;
  /** The answer. `null` if the call failed. */
  readonly reply: Pick<LlmReply, "message" | "stopReason" | "model"> | null;
  /** The error of a failed call. `null` if the model answered. */
  readonly failure: Failure | null;
}

/** A tool call of a stored run. */
export interface RecordedToolCall {
  readonly kind: "tool";
  /** Sequence number of the call's event in the recorded run. */
  readonly seq: number;
  readonly agentId: AgentId;
  readonly toolName: string;
  /** The arguments as the model sent them. */
  readonly input: JsonValue;
  /** The result that the model received. */
  readonly result: ToolResult;
  /**
   * Whether the body of the tool has itself called models, tools or agents. A replay executes such a body, and
   * answers these calls from the record.
   */
  readonly isNested: boolean;
}

export type RecordedCall = RecordedModelCall | RecordedToolCall;

/** The input of a stored run, the answers of its models and tools, and its output. */
export interface RunRecording {
  readonly runId: string;
  readonly agentId: AgentId;
  readonly status: RunStatus;
  /** Time of the submission. Epoch milliseconds. */
  readonly createdAt: number;
  /** The message with which the run began. */
  readonly input: string | readonly UserPart[];
  /** JSON Schema that the answer had to match. `null` if the answer is text. */
  readonly schema: JsonObject | null;
  /** The messages of the session before the input. */
  readonly session: readonly ChatMessage[];
  readonly output: JsonValue;
  /** Names of the members whose values tools mark as secret, by tool. */
  readonly secrets: SecretFields;
  /** The calls in the order in which they started. */
  readonly calls: readonly RecordedCall[];
}

const format = "reeve-recording";
const version = 1;

/**
 * The stored form. Each message, system prompt and tool list is stored once in `contents`; other places contain its
 * index.
 */
interface StoredRecording extends Omit<RunRecording, "calls" | "session"> {
  readonly format: typeof format;
  readonly version: typeof version;
  readonly contents: readonly JsonValue[];
  readonly session: readonly number[];
  readonly calls: readonly StoredCall[];
}

type StoredCall =
  | RecordedToolCall
  | (Omit<RecordedModelCall, "request"> & {
      readonly request: {
        readonly messages: readonly number[];
        readonly tools: number | null;
        readonly settings: JsonObject;
      };
    });

/** Writes a recording. If the process crashes during the call, the old file remains, and perhaps a temporary file. */
export async function writeRecording(file: string, recording: RunRecording): Promise<void> {
  const draft = `${file}.${randomUUID()}.tmp`;
  try {
    // Requests and results may be private, also those without a recognised secret.
    await writeFile(draft, `${JSON.stringify(storedForm(recording), null, 1)}\n`, {
      mode: 0o600,
      flush: true,
    });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/**
 * Reads a recording. If it is damaged or has another version, throws `invalid_argument` with the file and the
 * place.
 */
export async function readRecording(file: string): Promise<RunRecording> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new Fault(
      "invalid_argument",
      `invalid recording ${file}: it cannot be read; write it with reeve eval add RUN`,
      { cause },
    );
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Fault(
      "invalid_argument",
      `invalid recording ${file}: it is not JSON (${Fault.from(cause).message}); write it again with reeve eval add RUN`,
      { cause },
    );
  }
  if (readProperty(value, "format") !== format)
    throw new Fault(
      "invalid_argument",
      `invalid recording ${file}: it does not say "format": "${format}"; write it with reeve eval add RUN`,
    );
  if (readProperty(value, "version") !== version)
    throw new Fault(
      "invalid_argument",
      `invalid recording ${file}: its version is ${describeValue(readProperty(value, "version"))}, and this build reads version ${version}; write it again with reeve eval add RUN`,
    );
  const problem = problemIn(value);
  if (problem !== undefined)
    throw new Fault(
      "invalid_argument",
      `invalid recording ${file}: ${problem}; write it again with reeve eval add RUN`,
    );
  return recordingOf(value as StoredRecording);
}

function storedForm({ calls, session, ...head }: RunRecording): StoredRecording {
  const contents: JsonValue[] = [];
  const places = new Map<string, number>();
  // Requests share their messages, so that most are found without their text.
  const seen = new Map<unknown, number>();
  const place = (content: unknown): number => {
    const at = seen.get(content) ?? placeOfText(content);
    seen.set(content, at);
    return at;
  };
  const placeOfText = (content: unknown): number => {
    const text = JSON.stringify(content);
    const known = places.get(text);
    if (known !== undefined) return known;
    places.set(text, contents.length);
    return contents.push(JSON.parse(text) as JsonValue) - 1;
  };
  const stored = calls.map((call): StoredCall => {
    if (call.kind === "tool") return call;
    const { messages, tools, ...settings } = call.request;
    return {
      ...call,
      request: {
        messages: messages.map(place),
        tools: tools === undefined ? null : place(tools),
        settings,
      },
    };
  });
  return { format, version, ...head, session: session.map(place), contents, calls: stored };
}

function recordingOf({
  format: _format,
  version: _version,
  contents,
  calls,
  session,
  ...head
}: StoredRecording): RunRecording {
  const message = (place: number): ChatMessage => contents[place] as unknown as ChatMessage;
  return {
    ...head,
    session: session.map(message),
    calls: calls.map((call): RecordedCall => {
      if (call.kind === "tool") return call;
      const { messages, tools, settings } = call.request;
      const request = {
        messages: messages.map(message),
        ...(tools !== null && { tools: contents[tools] }),
        ...settings,
      };
      return { ...call, request: request as unknown as ModelRequest };
    }),
  };
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isObject: Check = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isAbsentOr =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);

const headChecks: Readonly<Record<string, readonly [check: Check, expected: string]>> = {
  runId: [isText, "a text"],
  agentId: [isText, "a text"],
  status: [isText, "a text"],
  createdAt: [isCount, "a time in milliseconds"],
  input: [
    (value) => isText(value) || (Array.isArray(value) && value.every(isUserPart)),
    "a text, or a list of text, image and file parts",
  ],
  schema: [isAbsentOr(isObject), "a JSON Schema, or null"],
  output: [(value) => value !== undefined && isJson(value), "a JSON value"],
  secrets: [isObject, "lists of names by tool"],
  contents: [Array.isArray, "a list"],
  session: [Array.isArray, "a list"],
  calls: [Array.isArray, "a list"],
};

const toolChecks: Readonly<Record<string, readonly [check: Check, expected: string]>> = {
  seq: [isCount, "the number of an event"],
  agentId: [isText, "a text"],
  toolName: [isText, "a text"],
  input: [(value) => value !== undefined, "the arguments of the call"],
  result: [(value) => isObject(readProperty(value, "output")), "a result with an output"],
  isNested: [(value) => typeof value === "boolean", "true or false"],
};

const modelChecks: Readonly<Record<string, readonly [check: Check, expected: string]>> = {
  seq: [isCount, "the number of an event"],
  agentId: [isText, "a text"],
  role: [isText, "a text"],
  ephemeral: [isCount, "a number from 0"],
  reply: [isAbsentOr((value) => isChatMessage(readProperty(value, "message"))), "a reply with a message"],
  failure: [isAbsentOr((value) => isText(readProperty(value, "message"))), "an error with a message"],
};

/** Returns the invalid place of a stored recording. `undefined` if the recording is valid. */
function problemIn(value: unknown): string | undefined {
  const wrong = wrongMember(value, headChecks, "");
  if (wrong !== undefined) return wrong;
  const { contents, session, calls } = value as StoredRecording;
  const isPlace: Check = (place) => isCount(place) && (place as number) < contents.length;
  const isMessage: Check = (place) => isPlace(place) && isChatMessage(contents[place as number]);
  const bad = session.findIndex((place) => !isMessage(place));
  if (bad >= 0) return `session[${bad}] is no position of a message in contents`;
  for (const [index, call] of calls.entries()) {
    const at = `calls[${index}]`;
    const kind = readProperty(call, "kind");
    if (kind !== "tool" && kind !== "model")
      return `${at}.kind is ${describeValue(kind)}: expected "model" or "tool"`;
    const problem = wrongMember(call, kind === "tool" ? toolChecks : modelChecks, `${at}.`);
    if (problem !== undefined) return problem;
    if (kind === "tool") continue;
    const request = readProperty(call, "request");
    const messages = readProperty(request, "messages");
    if (!Array.isArray(messages) || !messages.every(isMessage))
      return `${at}.request.messages has an entry that is no position of a message in contents`;
    const tools = readProperty(request, "tools");
    if (tools !== null && !(isPlace(tools) && Array.isArray(contents[tools as number])))
      return `${at}.request.tools is no position of a tool list in contents`;
    if (!isObject(readProperty(request, "settings"))) return `${at}.request.settings is no object`;
    if ((readProperty(call, "reply") === null) === (readProperty(call, "failure") === null))
      return `${at} has neither a reply nor a failure, or both`;
  }
  return undefined;
}

function wrongMember(
  value: unknown,
  checks: Readonly<Record<string, readonly [check: Check, expected: string]>>,
  prefix: string,
): string | undefined {
  for (const [name, [check, expected]] of Object.entries(checks)) {
    const member = readProperty(value, name);
    if (!check(member)) return `${prefix}${name} is ${describeValue(member)}: expected ${expected}`;
  }
  return undefined;
}
