import type { CancelSignal } from "../base/cancel-signal.ts";
import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { Model, ModelRequest, ModelResponse, ModelStreamPart } from "../messages/model.ts";
import type { ToolCall, ToolResult } from "../messages/tool-call.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { RunResult } from "../run/run-result.ts";
import type { Tool } from "./tool.ts";

/**
 * One layer around an agent's run, a model call or a tool call.
 *
 * - M1: a layer works before and after `await next()`. A layer that does not call `next` answers the call itself
 *   and must set `context.result`.
 * - M2: a layer may call `next` again after the earlier call has settled, for example to retry. If it calls `next`
 *   while an earlier call is in flight, or after `process` has returned, the call fails with `middleware_misuse`.
 * - M3: a layer that throws `MiddlewareTermination` stops the run with status `guardrail_tripped`.
 * - M4: a layer that replaces a request or arguments replaces them only for the layers inside it. The layers around
 *   it still see the original, so that their retry starts from the same values as the first attempt.
 * - J7: the caller receives the final `context.result`, and the journal records it. On a replay no layer runs for a
 *   recorded call. Layers around a whole run do run again, because a replay executes the run inside them again.
 *
 * @example
 * ```ts
 * import { Agent, type ChatMiddleware } from "reeve";
 * import { scriptedModel } from "reeve/testing";
 *
 * const coldAnswers: ChatMiddleware = {
 *   async process(context, next) {
 *     context.request = { ...context.request, temperature: 0 };
 *     await next();
 *   },
 * };
 *
 * const agent = new Agent({
 *   name: "clerk",
 *   model: scriptedModel(["Done."]),
 *   middleware: [{ name: "cold-answers", chat: coldAnswers }],
 * });
 * ```
 */
export interface Middleware<Context> {
  /** Handles one run or call. `next` runs the layers inside and finally the run or call itself. */
  process(context: Context, next: () => Promise<void>): Promise<void>;
}

/** A layer as a plain function, for a layer that needs neither a name nor state. */
export type MiddlewareFunction<Context> = Middleware<Context>["process"];

interface ContextBase {
  /** Name of the agent. */
  readonly agentName: string;
  /** Id of the agent. */
  readonly agentId: AgentId;
  /** Id of the run. */
  readonly runId: RunId;
  /** Id of the task. */
  readonly taskId: TaskId;
  /** Id of the session. */
  readonly sessionId: SessionId;
  /** Id of the tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** User, session and run of the task. */
  readonly facts: RunFacts;
  /** Aborted when the call or the task is cancelled. */
  readonly signal: CancelSignal;
  /** Values that layers pass to each other. Not stored. */
  readonly metadata: Record<string, unknown>;
  /** Writes an event to the run's log, in the commit that records the call. Has the restrictions of `ctx.emitEvent`. */
  emitEvent(event: EmittableEvent): void;
  /**
   * Waits for a promise without holding the worker's slot, so that other tasks run in this time. A cancel ends the
   * wait of a layer around a model call or tool call.
   */
  waitFor<Value>(wait: Promise<Value>): Promise<Value>;
}

/** What a layer around one task of an agent receives. */
export interface AgentRunContext extends ContextBase {
  /** Description of the agent, which says what it is good at. Empty if the agent has none. */
  readonly description: string;
  /** Version of the agent's code. `null` if the agent states none. */
  readonly version: string | null;
  /** Model of the agent's role `main`. `null` if the agent has none. */
  readonly model: Model | null;
  /** Id of the agent that spawned the task. `null` for the root. */
  readonly parentId: AgentId | null;
  /** Id of the task that spawned this one. One agent may have several tasks in a run. `null` for the root. */
  readonly parentTaskId: TaskId | null;
  /** Input of the task. */
  readonly input: JsonValue;
  /** Result of the task. `next` sets it, or a layer that answers without `next` (M1). */
  result?: Pick<RunResult<JsonValue>, "output" | "status" | "interruptionReason">;
  /**
   * Registers a callback that is called once when this process stops working on the task: because the task has
   * ended, or because the process has dropped a task that waits. In the second case the promise of `next` never
   * settles.
   */
  onLeave(callback: () => void): void;
}

/** What a layer around one model call receives. */
export interface ChatContext extends ContextBase {
  /** The system prompt of the request. */
  readonly systemInstructions: string;
  /** The role whose model is called. */
  readonly role: string;
  /** The model to call. A layer may replace it before `next`. After `next` it is the model that answered. */
  model: Model;
  /** The request to send. A layer may replace it before `next`. */
  request: ModelRequest;
  /** Whether readers see the answer while it streams. */
  readonly streaming: boolean;
  /** Filters for the streamed text that readers see, applied in order. They do not change the recorded `result`. */
  readonly filters: DeltaFilter[];
  /** The complete answer. `next` sets it, or a layer that answers without `next` (M1). */
  result?: ModelResponse;
  /**
   * Returns the cost of an answer in USD. It is the cost that the provider reported, or else the tokens at the
   * price that the runtime uses for the last call of `next`. `null` if the price is unknown or no model was called.
   */
  costOf(response: ModelResponse): number | null;
}

/** What a layer around one tool call receives. */
export interface FunctionContext extends ContextBase {
  /** Name of the tool. */
  readonly functionName: string;
  /** The tool to call. */
  readonly tool: Tool;
  /** Id that the provider gave the call. */
  readonly callId: string;
  /** J6: key that is the same on every attempt of this call. */
  readonly idempotencyKey: string;
  /**
   * Arguments of the call. A layer may replace them before `next`; they are then validated against the tool's schema
   * again.
   */
  arguments: JsonObject;
  /** Filters for the progress updates that readers see, applied in order. */
  readonly filters: UpdateFilter[];
  /** Result of the call. `next` sets it, or a layer that answers without `next` (M1). */
  result?: ToolResult;
}

/** A streamed piece of an answer. @advanced */
export type StreamedDelta = Exclude<ModelStreamPart, { readonly type: "finish" | "usage" }>;

/** Passes, changes or holds back the pieces of an answer that readers see. Create a new filter for each model call. */
export interface DeltaFilter {
  /**
   * Called before each attempt of the call. The filter must drop pieces that it has held back from an earlier
   * attempt (E2).
   */
  begin?(): void;
  /** Returns the pieces to send now. */
  push(delta: StreamedDelta): readonly StreamedDelta[];
  /** Called when the answer is complete. Returns the pieces that were held back. */
  flush(): readonly StreamedDelta[];
}

/** Changes a progress update of a tool before readers see it. */
export type UpdateFilter = (update: JsonValue) => JsonValue;

/** A layer around each task of an agent. */
export type AgentMiddleware = Middleware<AgentRunContext>;
/** A layer around each model call of an agent. */
export type ChatMiddleware = Middleware<ChatContext>;
/** A layer around each tool call of an agent. */
export type FunctionMiddleware = Middleware<FunctionContext>;

/** The answer of a `preTool` hook: a denial with its reason, or no opinion. A hook cannot approve a call. */
export type PreToolVerdict = { readonly deny: string } | undefined | void;

/**
 * The hooks of tool calls (seed 003): `preTool` may deny a call, `postTool` observes its result. `HookManager` is
 * something else: its callbacks only observe.
 *
 * The first denial wins. A `preTool` that throws denies the call. A `postTool` that throws is recorded and changes
 * nothing (S4).
 */
export interface HookRegistry {
  /** Called before all other checks of a tool call. Returns a denial, or no opinion. */
  preTool(call: ToolCall, facts: RunFacts): PreToolVerdict | Promise<PreToolVerdict>;
  /** Called after a tool call has a result. */
  postTool(call: ToolCall, result: ToolResult, facts: RunFacts): void | Promise<void>;
}
