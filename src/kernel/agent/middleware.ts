import type { CancelSignal } from "../base/cancel-signal.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { Model, ModelRequest, ModelResponse, ModelStreamPart } from "../messages/model.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { RunResult } from "../run/run-result.ts";
import type { Tool } from "./tool.ts";
import type { ToolResult } from "../messages/tool-result.ts";

/**
 * One layer of the onion around an agent's run, a model call or a tool call.
 *
 * - M1 Work before, `await next()`, work after. Not calling `next` answers in its place: `context.result` must be set.
 * - M2 `next` may be called again once the earlier call has settled (retry, fallback). While one is open, or after `process`
 *   returned, it is `middleware_misuse`.
 * - M3 Throw `MiddlewareTermination` to stop the run as `guardrail_tripped`.
 * - M4 What a layer replaces of a request or of arguments holds further in. Around it stands what stood before, so that a call made
 *   again from there starts as the first one did.
 * - J7 What stands in `context.result` at the end is what the caller gets and the journal keeps. On replay nothing here runs; the
 *   layers around a whole run are the exception, since the run inside them is what replays.
 */
export interface Middleware<Context> {
  process(context: Context, next: () => Promise<void>): Promise<void>;
}

/** A bare function will do where a layer needs no name or state. */
export type MiddlewareFunction<Context> = Middleware<Context>["process"];

interface ContextBase {
  readonly agentName: string;
  readonly agentId: AgentId;
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly sessionId: SessionId;
  readonly tenantId: string | null;
  readonly facts: RunFacts;
  readonly signal: CancelSignal;
  /** For layers to leave each other notes; not stored. */
  readonly metadata: Record<string, unknown>;
  /** Into the run's log, with the record of the call: what code may tell (`ctx.emitEvent`). */
  emitEvent(event: EmittableEvent): void;
  /** Waits for something that is no work: around a call the worker's slot is others' meanwhile, and a stop ends the wait. */
  waitFor<Value>(wait: Promise<Value>): Promise<Value>;
}

/** Around one `agent.run()`. */
export interface AgentRunContext extends ContextBase {
  /** The agent that hired it; `null` at the root. */
  readonly parentId: AgentId | null;
  /** Its task: of one agent there may be several. */
  readonly parentTaskId: TaskId | null;
  readonly input: JsonValue;
  result?: Pick<RunResult<JsonValue>, "output" | "status" | "interruptionReason">;
  /** Called once when this process is done with the task: it ended, or was let go of while it waits, and `next` never settles. */
  onLeave(callback: () => void): void;
}

/** Around one call of the model. `model` and `request` may be replaced before `next`; `model` then is the one that answered. */
export interface ChatContext extends ContextBase {
  readonly systemInstructions: string;
  readonly role: string;
  model: Model;
  request: ModelRequest;
  readonly streaming: boolean;
  /** What watchers are shown of a streamed answer passes through these, first to last; the answer itself is `result`. */
  readonly filters: DeltaFilter[];
  result?: ModelResponse;
}

/** Around one call of a tool. `arguments` may be replaced before `next`; they are read by the tool's schema again. */
export interface FunctionContext extends ContextBase {
  readonly functionName: string;
  readonly tool: Tool;
  readonly callId: string;
  readonly idempotencyKey: string;
  arguments: JsonObject;
  /** What watchers are shown of its progress passes through these, first to last. */
  readonly filters: UpdateFilter[];
  result?: ToolResult;
}

/** A piece of a streamed answer. */
export type StreamedDelta = Exclude<ModelStreamPart, { readonly type: "finish" }>;

/** Lets through, changes or holds back what watchers see while an answer streams. New for each call of the model. */
export interface DeltaFilter {
  /** Before each attempt at the answer: what was held back of an earlier one is void, as is what was shown (E2). */
  begin?(): void;
  push(delta: StreamedDelta): readonly StreamedDelta[];
  /** The answer is complete: what was held back. */
  flush(): readonly StreamedDelta[];
}

/** Changes what watchers see of a tool's progress. */
export type UpdateFilter = (update: JsonValue) => JsonValue;

export type AgentMiddleware = Middleware<AgentRunContext>;
export type ChatMiddleware = Middleware<ChatContext>;
export type FunctionMiddleware = Middleware<FunctionContext>;
