import type { ApprovalDecision, ApprovalRequest } from "../run/approval.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { ToolCall } from "../messages/tool-call.ts";
import type { Tool } from "./tool.ts";
import type { ToolResult } from "../messages/tool-result.ts";

/** A call this task has made, with what the model was given for it. */
export interface SettledCall {
  readonly call: ToolCall;
  readonly result: ToolResult;
}

/** A call at the gate: the tool exists, the task may call it, its arguments have been read. */
export interface GatedCall {
  readonly call: ToolCall;
  readonly tool: Tool;
  /** The tool's own word on this very call. */
  readonly needsApproval: boolean;
  readonly agentId: AgentId;
  readonly taskId: TaskId;
  readonly tenantId: string | null;
  readonly facts: RunFacts;
  /**
   * The task's calls that have settled, oldest first, those from the journal as well: what a gate decides from them survives a
   * restart, which a count of its own would not. Calls of the same batch are not in it, nor those inside an earlier tool or step.
   */
  readonly history: readonly SettledCall[];
  /** For steps of the gate's own, scoped under this call: journaled, and paid where they cost. */
  readonly ctx: RunContext;
  /** Into the run's log, with the record of the call: what code may tell (`ctx.emitEvent`). */
  readonly emitEvent: (event: EmittableEvent) => void;
}

/** Puts a question to somebody in this process. What it throws is a deny. */
export type ApprovalHandler = (
  request: ApprovalRequest,
  facts: RunFacts,
) => ApprovalDecision | Promise<ApprovalDecision>;

/** What becomes of a call. `input`: go on with these arguments instead. */
export type GateVerdict =
  | { readonly decision: "allow"; readonly input?: JsonValue }
  | { readonly decision: "deny"; readonly by: string; readonly reason: string }
  | {
      readonly decision: "ask";
      readonly by: string;
      readonly reason: string;
      readonly input?: JsonValue;
      /** Absent: the task waits, durably, until somebody decides. */
      readonly answer?: ApprovalHandler;
    };

/**
 * What every tool call of every architecture passes: hooks, extensions, guardrails, permissions, in one place.
 *
 * - A verdict that asks is journaled before anyone is asked, and the answer is bound to the arguments it names (J7).
 * - The tool's own `needsApproval` is the gate's to honour.
 * - Arguments that a person edited pass `before` once more; only a deny counts then.
 * - A cancel, an exhausted budget and `MiddlewareTermination` stop the run. Anything else that is thrown is a deny: a gate fails closed.
 * - On a recorded call neither method runs.
 */
export interface ToolGate {
  before(call: GatedCall): Promise<GateVerdict>;
  /** What the model is given in place of `result`; also of a call that failed, but of none that was refused. */
  after(call: GatedCall, result: ToolResult): Promise<ToolResult>;
  /** A person approved and wants not to be asked again. May come twice for one call. */
  remember?(call: GatedCall, decision: ApprovalDecision): Promise<void>;
}
