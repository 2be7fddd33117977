import {
  HistoryRetention,
  nearestJson,
  samplingNames,
  stepAt,
  toolCallsOf,
  Transcript,
  type ChatMessage,
  type JsonObject,
  type JsonValue,
  type LlmRequest,
  type Model,
  type ModelRequest,
  type RequestPart,
  type SentFrame,
  type SentRequest,
  type StepAddress,
  type ToolResult,
  type ToolSpec,
  type TranscriptPiece,
} from "../../kernel/index.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { AnsweredRequest, TaskRunner } from "../task/task-runner.ts";

/** Names of the settings of a request that are recorded. */
const settingNames = [
  ...samplingNames,
  "toolChoice",
  "responseFormat",
  "maxOutputTokens",
  "stopSequences",
  "thinkingLevel",
  "providerOptions",
] as const satisfies readonly (keyof LlmRequest & keyof ModelRequest)[];

/** The parts of a model call that determine its request. */
interface RequestingCall {
  readonly address: StepAddress;
  readonly role: string;
  readonly request: LlmRequest;
  readonly model: Model | undefined;
}

const noParts: readonly RequestPart[] = [];
const noTools: readonly ToolSpec[] = [];

/**
 * J11: records the request of a model call, if it does not follow from other records, in the commit of the call's
 * reservation. A crash before the call loses the record together with the call. A call that continues the previous
 * one adds nothing to the commit.
 */
export function recordRequest(
  step: ActiveStep,
  call: RequestingCall,
  ephemeral: number,
  changed: readonly RequestPart[] = noParts,
): void {
  const { runner } = step;
  const frame = isSameFrame(runner, call, ephemeral, changed)
    ? undefined
    : newFrame(runner, call, ephemeral, changed);
  const messages = newMessages(runner, call.request.transcript);
  if (frame === undefined && messages === undefined) return;
  const { contents, ...parts } = frame ?? {};
  const request: SentRequest = {
    taskId: runner.taskId,
    address: call.address,
    ...(call.role !== "main" && { role: call.role }),
    ...parts,
    ...(messages !== undefined && { messages }),
    ...(contents !== undefined && { contents }),
  };
  runner.log.add({ requests: [request] });
}

/** Whether this process has recorded the same frame for the last call of the role. It compares references and numbers only. */
function isSameFrame(
  { sentFrames, turn }: TaskRunner,
  { role, request, model }: RequestingCall,
  ephemeral: number,
  changed: readonly RequestPart[],
): boolean {
  const last = sentFrames?.get(role);
  if (last === undefined || last.turn !== turn || last.model !== model || last.ephemeral !== ephemeral)
    return false;
  const before = last.request;
  if (before.instructions !== request.instructions || before.tools !== request.tools) return false;
  if (last.changed !== changed && last.changed.join() !== changed.join()) return false;
  // Without an iterator: this runs in every turn.
  for (let index = 0; index < settingNames.length; index++) {
    const name = settingNames[index] as (typeof settingNames)[number];
    if (before[name] !== request[name]) return false;
  }
  return true;
}

/**
 * Returns the frame of a call, with the contents that the run does not have yet. `undefined` if the frame is that
 * of the last call.
 */
function newFrame(
  runner: TaskRunner,
  { role, request, model }: RequestingCall,
  ephemeral: number,
  changed: readonly RequestPart[],
): Pick<SentRequest, "frame" | "contents"> | undefined {
  const { turn, task, state, worker } = runner;
  const lasting = task.record.supervision.retention !== HistoryRetention.NONE;
  const contents: Record<string, JsonValue> = {};
  const hold = (hash: string, content: JsonValue): string => {
    if (!state.contents.has(hash, { lasting })) contents[hash] = content;
    return hash;
  };
  const { instructions = "", tools = noTools } = request;
  const frame: { -readonly [Key in keyof SentFrame]: SentFrame[Key] } = {};
  const text = worker.contentHashes.ofText(instructions);
  if (turn === undefined ? instructions !== "" : text !== turn.record.instructions)
    frame.instructions = hold(text, instructions);
  if (turn === undefined ? tools.length > 0 : state.contents.find(turn.record.tools) !== (tools as unknown)) {
    // A copy: code may pass its tools, which have bodies.
    const specs = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    const list = nearestJson(specs) as unknown as object;
    const hash = worker.contentHashes.ofJson(list, "the tools of a model call");
    if (hash !== turn?.record.tools) frame.tools = hold(hash, list as unknown as JsonValue);
  }
  if (ephemeral > 0) frame.ephemeral = ephemeral;
  if (changed.length > 0) frame.middleware = changed;
  const settings = settingsOf(request);
  if (settings !== undefined) frame.settings = settings;
  if (model?.contextWindow !== undefined) frame.contextWindow = model.contextWindow;
  const last = { request, model, turn, ephemeral, changed };
  (runner.sentFrames ??= new Map()).set(role, last);
  const before = task.frames?.get(role);
  // Most agents send what their turn says, and need no comparison. The first call of another role than the turn's has a frame
  // in any case: without one, a reader takes it for a call of an earlier version, which recorded none.
  const isOfTurn = role === (turn?.record.role ?? "main");
  if (
    before === undefined
      ? isOfTurn && Object.keys(frame).length === 0
      : JSON.stringify(before) === JSON.stringify(frame)
  )
    return undefined;
  return { frame, ...(Object.keys(contents).length > 0 && { contents: Object.freeze(contents) }) };
}

function settingsOf(request: LlmRequest): JsonObject | undefined {
  const settings: Record<string, JsonValue> = {};
  for (const name of settingNames)
    if (request[name] !== undefined) settings[name] = nearestJson(request[name]);
  return Object.keys(settings).length === 0 ? undefined : settings;
}

/**
 * Returns the messages of a call, if they do not follow from other records. Costs O(1) for a call that continues
 * the last one.
 */
function newMessages(runner: TaskRunner, transcript: Transcript): SentRequest["messages"] {
  const { turn } = runner;
  const last = runner.lastRequest?.turn === turn ? runner.lastRequest : undefined;
  if (last === undefined) {
    const history = turn?.history ?? Transcript.empty;
    const rest = transcript.length - history.length;
    const isContinued = transcript.startsWith(history);
    const input = turn?.record.input ?? runner.task.input;
    if (isContinued && (rest === 0 || (rest === 1 && isInput(transcript.at(-1), input)))) return undefined;
    const pieces = isContinued
      ? piecesAfter(transcript, history.length)
      : piecesOf(transcript, history.slice());
    return { base: null, pieces };
  }
  const { request, answer, address } = last;
  if (!transcript.startsWith(request.transcript))
    return { base: address, pieces: piecesOf(transcript, [...request.transcript.slice(), answer]) };
  const known = request.transcript.length + followed(runner, last, transcript);
  // A repeated request has the messages of the last one, without its answer.
  if (known === transcript.length && known > request.transcript.length) return undefined;
  return { base: address, pieces: piecesAfter(transcript, known) };
}

/** Whether a message is the input of the task, as the first message of an invocation. */
function isInput(message: ChatMessage | undefined, input: JsonValue): boolean {
  if (message?.role !== "user" || message.content.length !== 1) return false;
  const part = message.content[0];
  return part?.type === "text" && part.providerMetadata === undefined && part.text === input;
}

/**
 * Returns how many of the messages after the last request are its answer and the recorded results of all calls of
 * the answer.
 */
function followed(
  { task }: TaskRunner,
  { request, answer, address }: AnsweredRequest,
  transcript: Transcript,
): number {
  const at = request.transcript.length;
  if (transcript.at(at) !== answer) return 0;
  const results = transcript.at(at + 1);
  if (results?.role !== "tool") return 1;
  const calls = toolCallsOf(answer);
  if (calls.length !== results.content.length) return 1;
  for (let index = 0; index < calls.length; index++) {
    const recorded = task.steps.get(stepAt(address, index));
    if (recorded?.kind !== "tool" || recorded.outcome.kind !== "ok") return 1;
    const { output } = recorded.outcome.value as unknown as ToolResult;
    if (results.content[index]?.output !== output) return 1;
  }
  return 2;
}

function piecesAfter(transcript: Transcript, known: number): readonly TranscriptPiece[] {
  const rest = transcript.slice(known).map(stored);
  return known === 0 ? rest : [[0, known], ...rest];
}

/**
 * Returns the messages of a transcript as pieces: messages of `base` by their position, and other messages as a
 * whole.
 */
function piecesOf(transcript: Transcript, base: readonly ChatMessage[]): readonly TranscriptPiece[] {
  const places = new Map(base.map((message, index) => [message, index]));
  const pieces: TranscriptPiece[] = [];
  for (const message of transcript) {
    const at = places.get(message);
    const last = pieces.at(-1);
    if (at === undefined) pieces.push(stored(message));
    else if (Array.isArray(last) && last[1] === at) pieces[pieces.length - 1] = [last[0] as number, at + 1];
    else pieces.push([at, at + 1]);
  }
  return pieces;
}

/** J1, J10: returns a copy of a message that is JSON and that code cannot change. */
function stored(message: ChatMessage): ChatMessage {
  return nearestJson(message) as unknown as ChatMessage;
}

/** Returns which parts of a request middleware changed. Empty if the request is unchanged. */
export function changedParts(given: ModelRequest, sent: ModelRequest): readonly RequestPart[] {
  if (given === sent) return noParts;
  const [before, after] = [split(given), split(sent)];
  const parts: RequestPart[] = [];
  if (before.system !== after.system) parts.push("instructions");
  if (given.tools !== sent.tools && !isSameList(given.tools ?? [], sent.tools ?? [])) parts.push("tools");
  if (!isSameList(before.messages, after.messages)) parts.push("messages");
  if (settingNames.some((name) => given[name] !== sent[name])) parts.push("settings");
  return parts;
}

interface SplitRequest {
  readonly system: string;
  readonly messages: readonly ChatMessage[];
}

function split({ messages }: ModelRequest): SplitRequest {
  const [first, ...rest] = messages;
  return first?.role === "system" ? { system: first.content, messages: rest } : { system: "", messages };
}

function isSameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}
