import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { AssistantMessage } from "../messages/chat-message.ts";
import type { ToolOutput } from "../messages/content.ts";
import type { StopReason } from "../messages/stop-reason.ts";
import type { Usage } from "../messages/usage.ts";

/** A tool call of a run and its result. */
export interface RunToolCall {
  /** Id that the provider gave the call. */
  readonly callId: string;
  /** Name of the called tool. */
  readonly toolName: string;
  /** Arguments with which the tool was executed. If it was not executed, the arguments as the model sent them. */
  readonly input: JsonValue;
  /** What the model saw of the result. `null` if the call has no result. */
  readonly output: ToolOutput | null;
  /** Outcome of the call. `denied`: a rule or a person denied it. `open`: the run ended before the call had a result. */
  readonly status: "ok" | "error" | "denied" | "open";
  /** Duration of the execution, in milliseconds. */
  readonly durationMs: number;
}

/** One model call of a run, with the tool calls that the model made in it. */
export interface RunStep {
  /** The task that made the call. */
  readonly taskId: TaskId;
  /** The agent that made the call. */
  readonly agentId: AgentId;
  /** Role whose model was called. `main` for the agent's own turns, otherwise a supporting role such as `planner`. */
  readonly role: string;
  /** The model's message. */
  readonly message: AssistantMessage;
  /** Text of the message. */
  readonly text: string;
  /** Reasoning of the message. Empty if the provider returned none. */
  readonly reasoning: string;
  /** The tool calls of the message, with their results. */
  readonly toolCalls: readonly RunToolCall[];
  /** Why the model stopped. `null` if unknown. */
  readonly stopReason: StopReason | null;
  /** Usage and cost of the call. `null` if unknown. */
  readonly usage: Usage | null;
  /** The model that answered. `null` if unknown. */
  readonly model: { readonly provider: string; readonly modelId: string } | null;
  /** Duration of the call, in milliseconds. */
  readonly durationMs: number;
}
