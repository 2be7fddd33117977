import {
  checkChildRequest,
  digestOf,
  Fault,
  HistoryRetention,
  JsonDigest,
  samplingNames,
  stepAt,
  toolCallsOf,
  toolMessage,
  toolResultPart,
  type CallSettings,
  type ChatMessage,
  type ChildRequest,
  type JsonValue,
  type LlmRequest,
  type RequestOfTask,
  type StepAddress,
  type ToolCallPart,
  type ToolResult,
  type Transcript,
} from "../../kernel/index.ts";
import type { InheritedChild } from "../journal/task-record.ts";
import type { AnsweredRequest, TaskRunner } from "../task/task-runner.ts";

/** Checks the request of a child and returns what the child inherits from the task. */
export function inheritedBy(runner: TaskRunner, request: ChildRequest): () => InheritedChild {
  const { lastRequest, agent, agentId, taskId } = runner;
  const offered = [...(lastRequest?.request.tools ?? none), ...(agent.tools ?? none)];
  checkChildRequest("ctx.child()", request, new Set(offered.map(({ name }) => name)));
  if (lastRequest === undefined)
    throw new Fault(
      "invalid_argument",
      `ctx.child() has no request to share: task ${taskId} of ${agentId} has not called a model yet; use ctx.spawn()`,
    );
  return () => ({
    request: requestToShare(runner, lastRequest),
    settings: settingsOf(lastRequest.request),
  });
}

/** A part of a history that a session or a content contains, and the messages that follow it. */
interface SharedHistory extends Pick<RequestOfTask, "sessionId" | "leafId" | "history" | "said"> {
  readonly rest: readonly ChatMessage[];
}

/** Returns what the child inherits. It refers by hash to contents that the run already has. */
function requestToShare(runner: TaskRunner, lastRequest: AnsweredRequest): InheritedChild["request"] {
  const { request, role } = lastRequest;
  const { contentHashes } = runner.worker;
  const lasting = runner.task.record.supervision.retention !== HistoryRetention.NONE;
  const contents: Record<string, JsonValue> = {};
  const hold = (hash: string, content: unknown): string => {
    if (!runner.state.contents.has(hash, { lasting })) contents[hash] = content as JsonValue;
    return hash;
  };
  const { instructions = "", tools = none, transcript, thinkingLevel } = request;
  const { rest, said, ...stored } = storedPart(runner, transcript);
  const { model, maxToolCallsPerTurn } = runner.turn?.record ?? {};
  const holdAll = (messages: readonly ChatMessage[]): string =>
    hold(contentHashes.ofJson(messages, "the messages of a child"), messages);
  const last = rest.length === 0 ? none : [holdAll(rest)];
  if (last.length > 0) runner.shared = { transcript, stored: { ...stored, said: [...said, ...last] } };
  return {
    ...stored,
    // Apart from the request: a later request has other results of the calls.
    said: [...said, ...last, holdAll(answered(runner, lastRequest))],
    instructions: hold(contentHashes.ofText(instructions), instructions),
    tools: hold(contentHashes.ofJson(tools, "the tools of a child"), tools),
    role,
    ...(model !== undefined && { model }),
    ...(thinkingLevel !== undefined && { thinkingLevel }),
    ...(maxToolCallsPerTurn !== undefined && { maxToolCallsPerTurn }),
    ...(Object.keys(contents).length > 0 && { contents: Object.freeze(contents) }),
  };
}

/** Returns the answer to the request. S1: a call without a result gets a result that says so. */
function answered(runner: TaskRunner, { answer, address }: AnsweredRequest): readonly ChatMessage[] {
  const calls = toolCallsOf(answer);
  if (calls.length === 0) return [answer];
  const parts = calls.map((call, index) =>
    toolResultPart(call, resultOf(runner, stepAt(address, index), call) ?? notExecuted),
  );
  return [answer, toolMessage(parts)];
}

/**
 * Returns the recorded result of a call. `undefined` if the call has none, or if the code has made another call
 * instead.
 */
function resultOf(
  { task, worker }: TaskRunner,
  address: StepAddress,
  { toolName, input }: ToolCallPart,
): ToolResult | undefined {
  const record = task.steps.get(address);
  if (record?.kind !== "tool" || record.name !== toolName || record.outcome.kind !== "ok") return undefined;
  const isSame = digestOf(record, worker.hash) === new JsonDigest(input).digest(worker.hash);
  return isSame ? (record.outcome.value as unknown as ToolResult) : undefined;
}

const notExecuted = {
  output: { type: "text", text: "[not executed: the call was open when this child started]" },
  isError: true,
} as const;

/**
 * Returns the longest beginning of a transcript that is already stored: what an earlier child shared, or the
 * history of the turn.
 */
function storedPart({ turn, shared }: TaskRunner, transcript: Transcript): SharedHistory {
  if (shared !== undefined && transcript.startsWith(shared.transcript))
    return { ...shared.stored, rest: transcript.slice(shared.transcript.length) };
  if (turn === undefined || !transcript.startsWith(turn.history))
    return { sessionId: null, leafId: null, said: none, rest: transcript.slice() };
  const { sessionId, leafId, history, said = none } = turn.record;
  const replaced = history === undefined ? {} : { history };
  return { sessionId, leafId, ...replaced, said, rest: transcript.slice(turn.history.length) };
}

/**
 * Returns the settings of a request that also apply to a child. `toolChoice` is left out, because it would apply to
 * every turn of the child.
 */
function settingsOf(request: LlmRequest): CallSettings | null {
  const settings: Record<string, number> = {};
  for (const name of [...samplingNames, "maxOutputTokens"] as const) {
    const value = request[name];
    if (value !== undefined) settings[name] = value;
  }
  return Object.keys(settings).length === 0 ? null : settings;
}

const none: readonly never[] = [];
