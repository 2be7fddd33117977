import {
  MiddlewarePipeline,
  type Layer,
  type LevelMiddleware,
} from "../../../../src/agents/interception/middleware/index.ts";
import {
  CancellationError,
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  userMessage,
  type AgentRunContext,
  type ChatContext,
  type EventDraft,
  type FunctionContext,
  type JsonObject,
  type Model,
  type ModelResponse,
  type StreamedDelta,
  type ToolResult,
} from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../../src/testing/index.ts";
import { simpleTool, text } from "../../../runtime/runtime-setup.ts";

export interface Scene {
  readonly told: EventDraft[];
  readonly abort: AbortController;
}

export interface Who {
  readonly tenantId?: string | null;
  readonly userId?: string | null;
}

function base({ tenantId = null, userId = null }: Who) {
  const told: EventDraft[] = [];
  const abort = new AbortController();
  const runId = formatRunId("1");
  const sessionId = formatSessionId("session_1");
  const context = {
    agentName: "scout",
    agentId: formatAgentId({ name: "scout" }),
    runId,
    taskId: formatTaskId(0),
    sessionId,
    tenantId,
    facts: { tenantId: null, userId, sessionId, runId, metadata: {}, context: undefined },
    signal: abort.signal,
    metadata: {} as Record<string, unknown>,
    emitEvent: (event: EventDraft) => void told.push(event),
    waitFor: <Value>(wait: Promise<Value>) => wait,
  };
  return { context, told, abort };
}

export interface ChatScene extends Scene {
  readonly context: ChatContext;
  /** Deltas that watchers of the run received, after all stream filters. */
  readonly shown: StreamedDelta[];
  readonly model: ReturnType<typeof scriptedModel>;
  readonly call: (layers: readonly (Layer | LevelMiddleware)[]) => Promise<ModelResponse | undefined>;
}

/**
 * Builds a model call like the runtime's, without a journal: each `next` calls the model once and applies
 * the filters.
 */
export function chatScene(
  script: readonly ScriptStep[],
  { streaming = false, ...more }: Partial<Pick<ChatContext, "request" | "role" | "streaming">> & Who = {},
): ChatScene {
  const { context: common, told, abort } = base(more);
  const shown: StreamedDelta[] = [];
  const model = scriptedModel(script);
  const { request = { messages: [userMessage("hello")] }, role = "main" } = more;
  const context: ChatContext = {
    ...common,
    systemInstructions: "",
    role,
    model,
    request,
    streaming,
    filters: [],
    costOf: ({ usage: { costUsd = null } }) => costUsd,
  };
  const next = async (): Promise<void> => {
    context.result = streaming
      ? await streamed(context, context.model, shown)
      : await context.model.generate(context.request);
  };
  const call = async (layers: readonly (Layer | LevelMiddleware)[]) => {
    const { chat } = new MiddlewarePipeline(layers);
    await (chat === undefined ? next() : chat.process(context, next));
    return context.result;
  };
  return { context, told, abort, shown, model, call };
}

async function streamed(
  { request, filters }: ChatContext,
  model: Model,
  shown: StreamedDelta[],
): Promise<ModelResponse> {
  for (const filter of filters) filter.begin?.();
  const show = (deltas: readonly StreamedDelta[], from: number): void => {
    let through = deltas;
    for (const filter of filters.slice(from)) through = through.flatMap((delta) => filter.push(delta));
    shown.push(...through);
  };
  for await (const part of model.stream(request)) {
    if (part.type === "usage") continue;
    if (part.type !== "finish") {
      show([part], 0);
      continue;
    }
    for (const [index, filter] of filters.entries()) show(filter.flush(), index + 1);
    const { type: _type, ...response } = part;
    return response;
  }
  throw new Error("the stream was cut");
}

export function shownText(
  shown: readonly StreamedDelta[],
  type: StreamedDelta["type"] = "text_delta",
): string {
  return shown.flatMap((delta) => (delta.type === type ? [delta.text] : [])).join("");
}

export function answerText(response: ModelResponse | undefined): string {
  return (response?.message.content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
}

export interface ToolScene extends Scene {
  readonly context: FunctionContext;
  /** Arguments of each call of the tool, in call order. */
  readonly calls: JsonObject[];
  readonly call: (layers: readonly Layer[]) => Promise<ToolResult | undefined>;
}

export type ToolAnswer = ToolResult | string | Error;

export interface ToolSceneOptions extends Who {
  readonly name?: string;
  readonly input?: JsonObject;
  readonly tool?: FunctionContext["tool"];
}

/** Builds a tool call: each `next` returns the next of `answers`, and the last answer repeats. */
export function toolScene(
  answers: readonly ToolAnswer[],
  { name = "look", input = { town: "Sens" }, tool, ...who }: ToolSceneOptions = {},
): ToolScene {
  const { context: common, told, abort } = base(who);
  const calls: JsonObject[] = [];
  const context: FunctionContext = {
    ...common,
    functionName: name,
    tool: tool ?? simpleTool({ name, execute: async () => text("unused") }),
    callId: "call_1",
    idempotencyKey: "key_1",
    arguments: input,
    filters: [],
  };
  const next = async (): Promise<void> => {
    const answer = answers[Math.min(calls.length, answers.length - 1)] ?? "";
    calls.push(context.arguments);
    if (answer instanceof Error) throw answer;
    context.result = typeof answer === "string" ? text(answer) : answer;
  };
  const call = async (layers: readonly Layer[]) => {
    const { function: around } = new MiddlewarePipeline(layers);
    await (around === undefined ? next() : around.process(context, next));
    return context.result;
  };
  return { context, told, abort, calls, call };
}

export function runScene(who: Who = {}): Scene & { readonly context: AgentRunContext } {
  const { context, told, abort } = base(who);
  return {
    context: {
      ...context,
      description: "",
      version: null,
      model: null,
      parentId: null,
      parentTaskId: null,
      input: "go",
      onLeave: () => {},
    },
    told,
    abort,
  };
}

export function resultText(result: ToolResult | undefined): string {
  return result?.output.type === "text" ? result.output.text : JSON.stringify(result?.output);
}

export function httpError(status: number, message = "it failed"): Error {
  return Object.assign(new Error(message), { status });
}

/**
 * Resolves with the rejection reason of `promise`, or with undefined. Lets a test await a later rejection.
 */
export function rejection(promise: Promise<unknown> | undefined): Promise<unknown> {
  return (promise ?? Promise.resolve()).then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** Middleware that calls `next` a second time if the first call fails. */
export const onceMore: Layer = {
  name: "once more",
  chat: async (_context, next) => {
    try {
      await next();
    } catch {
      await next();
    }
  },
};

export const cancelled = new CancellationError("enough");
