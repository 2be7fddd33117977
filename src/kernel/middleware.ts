import type { ModelRequest, ModelResponse } from "./model.ts";
import type { AgentId, RunId, SessionId, TaskId } from "./identity.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { RunResult } from "./run-result.ts";
import type { ToolResult } from "./tool.ts";

/**
 * One layer of the onion around an agent's run, a model call or a tool call.
 *
 * - M1 Work before, `await next()`, work after. Not calling `next` answers in its place: `context.result` must be set.
 * - M2 `next` may be called again once the earlier call has settled (retry, fallback). While one is open, or after `process`
 *   returned, it is `middleware_misuse`.
 * - M3 Throw `MiddlewareTermination` to stop the run as `guardrail_tripped`.
 * - J7 What stands in `context.result` at the end is what the caller gets and the journal keeps. On replay nothing here runs.
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
  /** For layers to leave each other notes; not stored. */
  readonly metadata: Record<string, unknown>;
}

/** Around one `agent.run()`. */
export interface AgentRunContext extends ContextBase {
  readonly sessionId: SessionId;
  readonly input: JsonValue;
  result?: RunResult;
}

/** Around one call of the model. `request` may be replaced before `next`. */
export interface ChatContext extends ContextBase {
  readonly systemInstructions: string;
  request: ModelRequest;
  readonly streaming: boolean;
  result?: ModelResponse;
}

/** Around one call of a tool. `arguments` may be replaced before `next`. */
export interface FunctionContext extends ContextBase {
  readonly functionName: string;
  readonly callId: string;
  arguments: JsonObject;
  result?: ToolResult;
}

export type AgentMiddleware = Middleware<AgentRunContext>;
export type ChatMiddleware = Middleware<ChatContext>;
export type FunctionMiddleware = Middleware<FunctionContext>;
