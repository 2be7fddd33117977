import type { DeepReadonly } from "../base/json.ts";
import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { RunStatus } from "../run/run-result.ts";
import type { StopReason } from "../messages/llm-reply.ts";
import type { Usage } from "../messages/usage.ts";

/** The moments that a hook can observe. A hook cannot change, stop or fail a run; middleware can. */
export const HookEvent = Object.freeze({
  /** A task starts. Sent once per task, also if the task is resumed several times (trap R13). */
  RUN_START: "run_start",
  /** A task ends. Sent once per task, when it ends for the first time. */
  RUN_END: "run_end",
  /** A turn starts. */
  STEP_START: "step_start",
  /** A turn ends. */
  STEP_END: "step_end",
  /** A model call starts. */
  LLM_START: "llm_start",
  /** A model call has been answered. */
  LLM_END: "llm_end",
  /** A tool call starts. */
  TOOL_START: "tool_start",
  /** A tool call has a result. */
  TOOL_END: "tool_end",
  /** A guardrail or middleware stopped the task. Sent when the task ends. */
  GUARDRAIL_TRIP: "guardrail_trip",
  /** A task passes work to a sub-agent. */
  HANDOFF: "handoff",
  /** A flow or graph starts. */
  FLOW_START: "flow_start",
  /** A flow or graph ends. */
  FLOW_END: "flow_end",
});

/** One of the moments that a hook can observe. */
export type HookEvent = (typeof HookEvent)[keyof typeof HookEvent];

interface Base {
  readonly agentName: string;
  readonly agentId: AgentId;
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly sessionId: SessionId;
  /** Time of the moment, in epoch milliseconds. */
  readonly at: number;
}

/** The data that a hook receives, by moment. */
export interface HookPayloads {
  /** `input` is the input of the task. */
  run_start: Base & { input: JsonValue };
  /** `usage` covers the task's own model calls. `error` is present if a fault ended the task. */
  run_end: Base & { status: RunStatus; usage: Usage; error?: { code: string; message: string } };
  /** `step` is the number of the turn. */
  step_start: Base & { step: number };
  /** `step` is the number of the turn. */
  step_end: Base & { step: number };
  /** `attempt` is the number of the attempt, from 1. */
  llm_start: Base & { provider: string; modelId: string; attempt: number };
  /** `stopReason` is `null` if the provider reported none. */
  llm_end: Base & {
    provider: string;
    modelId: string;
    usage: Usage;
    stopReason: StopReason | null;
    durationMs: number;
  };
  /** `input` holds the arguments of the call. */
  tool_start: Base & { toolName: string; callId: string; input: JsonValue };
  /** The status `denied` means that the call was not executed. */
  tool_end: Base & {
    toolName: string;
    callId: string;
    status: "ok" | "error" | "denied";
    durationMs: number;
  };
  /** `guardrail` is the name of the guardrail or middleware that stopped the task. */
  guardrail_trip: Base & { guardrail: string; reason: string };
  /** `task` is the text that the sub-agent receives. `childTaskId` is `null` if no child was spawned. */
  handoff: Base & { target: AgentId; childTaskId: TaskId | null; task: string };
  /** `flow` is the name of the flow. */
  flow_start: Base & { flow: string };
  /** `flow` is the name of the flow, `status` its outcome. */
  flow_end: Base & { flow: string; status: RunStatus };
}

/** The frozen data that a hook receives at this moment. */
export type HookPayload<Name extends HookEvent> = DeepReadonly<HookPayloads[Name]>;

/** A hook. Its return value is ignored. S4: an error that it throws is recorded and has no other effect. */
export type HookCallback<Name extends HookEvent> = (payload: HookPayload<Name>) => void | Promise<void>;

/** Registers hooks. Each agent has one; `HookManager` implements it. */
export interface Hooks {
  /** Registers a callback for a moment. Returns a function that removes the callback. */
  on<Name extends HookEvent>(event: Name, callback: HookCallback<Name>): () => void;
}

/** A callback together with the moment at which it is called, for `HookManager.register`. */
export type Hook = {
  readonly [Name in HookEvent]: { readonly event: Name; readonly callback: HookCallback<Name> };
}[HookEvent];

/** A set of hooks that registers itself, such as `RunLogger` and `CostTracker`. */
export interface HookSet {
  /** Registers the callbacks of the set. Returns a function that removes them. */
  watch(hooks: Hooks): () => void;
}
