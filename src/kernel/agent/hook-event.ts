import type { DeepReadonly } from "../base/frozen.ts";
import type { AgentId, RunId, SessionId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { RunStatus } from "../run/run-result.ts";
import type { StopReason } from "../messages/stop-reason.ts";
import type { Usage } from "../messages/usage.ts";

/** The moments a hook can watch. Hooks see; they cannot change, stop or break anything (middleware can). */
export const HookEvent = Object.freeze({
  /** Once per task, however often it is resumed (trap R13): it is over the first time it ends. */
  RUN_START: "run_start",
  RUN_END: "run_end",
  /** Around one turn. */
  STEP_START: "step_start",
  STEP_END: "step_end",
  LLM_START: "llm_start",
  LLM_END: "llm_end",
  TOOL_START: "tool_start",
  TOOL_END: "tool_end",
  /** A guardrail or middleware stopped the task; told with its end. */
  GUARDRAIL_TRIP: "guardrail_trip",
  HANDOFF: "handoff",
  FLOW_START: "flow_start",
  FLOW_END: "flow_end",
});

export type HookEvent = (typeof HookEvent)[keyof typeof HookEvent];

interface Base {
  readonly agentName: string;
  readonly agentId: AgentId;
  readonly runId: RunId;
  readonly taskId: TaskId;
  readonly sessionId: SessionId;
  /** Epoch milliseconds. */
  readonly at: number;
}

export interface HookPayloads {
  run_start: Base & { input: JsonValue };
  run_end: Base & { status: RunStatus; usage: Usage; error?: { code: string; message: string } };
  step_start: Base & { step: number };
  step_end: Base & { step: number };
  llm_start: Base & { provider: string; modelId: string; attempt: number };
  llm_end: Base & {
    provider: string;
    modelId: string;
    usage: Usage;
    stopReason: StopReason | null;
    durationMs: number;
  };
  tool_start: Base & { toolName: string; callId: string; input: JsonValue };
  tool_end: Base & {
    toolName: string;
    callId: string;
    status: "ok" | "error" | "denied";
    durationMs: number;
  };
  guardrail_trip: Base & { guardrail: string; reason: string };
  handoff: Base & { target: AgentId; childTaskId: TaskId | null; task: string };
  flow_start: Base & { flow: string };
  flow_end: Base & { flow: string; status: RunStatus };
}

export type HookPayload<Name extends HookEvent> = DeepReadonly<HookPayloads[Name]>;

/** Sync or async; what it returns is ignored, what it throws is recorded and goes no further (S4). */
export type HookCallback<Name extends HookEvent> = (payload: HookPayload<Name>) => void | Promise<void>;

/** Where callbacks are registered; one per agent. The `HookManager` implements it. */
export interface Hooks {
  on<Name extends HookEvent>(event: Name, callback: HookCallback<Name>): () => void;
}
