import type { ApprovalDecision, ApprovalRequest } from "../run/approval.ts";
import type { EmittableEvent } from "../events/emittable-event.ts";
import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonValue } from "../base/json-value.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFacts } from "../run/run-facts.ts";
import type { ToolCall, ToolResult } from "../messages/tool-call.ts";
import type { Tool } from "./tool.ts";

/** A tool call with the result that the model received. */
export interface SettledCall {
  /** The call. */
  readonly call: ToolCall;
  /** The result that the model received. */
  readonly result: ToolResult;
}

/** The arguments of a call before and after `Tool.parse`. */
export interface CallArguments {
  /** Arguments as the model sent them, or as a person edited them. */
  readonly sent: JsonValue;
  /** Value that `Tool.execute` receives. It need not be JSON. The gate must not change it. */
  readonly parsed: unknown;
}

/** A tool call at the gate. The tool exists, the task may call it, and the arguments are parsed. */
export interface GatedCall extends CallArguments {
  /** The call. Its `input` is `parsed` in JSON form, so that the gate judges the arguments that are executed. */
  readonly call: ToolCall;
  /** The called tool. */
  readonly tool: Tool;
  /** Digest of the tool's server, name, description and schema. */
  readonly toolDigest: string;
  /** Whether the tool requires a person's approval for this call (`Tool.needsApproval`). */
  readonly needsApproval: boolean;
  /** Id of the calling agent. */
  readonly agentId: AgentId;
  /** Id of the calling task. */
  readonly taskId: TaskId;
  /** Id of the tenant. `null` for a run without a tenant. */
  readonly tenantId: string | null;
  /** User, session and run of the task. */
  readonly facts: RunFacts;
  /**
   * The settled calls of the task, oldest first, including calls from the journal. A decision based on this list
   * survives a restart; a counter in memory does not. The list excludes calls of the same batch and calls inside the
   * body of another tool or step.
   */
  readonly history: readonly SettledCall[];
  /** Run context for steps of the gate, scoped under this call. They are journaled and charged like any step. */
  readonly ctx: RunContext;
  /** Writes an event to the run's log, in the commit that records the call. Has the restrictions of `ctx.emitEvent`. */
  readonly emitEvent: (event: EmittableEvent) => void;
}

/** Asks a person in this process to decide on a call. An error that it throws counts as a denial. */
export type ApprovalHandler = (
  request: ApprovalRequest,
  facts: RunFacts,
) => ApprovalDecision | Promise<ApprovalDecision>;

/**
 * The gate's decision on a call. `by` names the part that decided. `input`, if present, replaces the arguments of the
 * call; it is parsed before it is used.
 */
export type GateVerdict =
  | { readonly decision: "allow"; readonly input?: JsonValue }
  | { readonly decision: "deny"; readonly by: string; readonly reason: string }
  | {
      readonly decision: "ask";
      readonly by: string;
      readonly reason: string;
      readonly input?: JsonValue;
      /** Whether an approval covers later calls of the same scope. `remember` is then called for every approval. */
      readonly once?: boolean;
      /** Identities of the rules that ask, for `remember`. Default: `reason`. */
      readonly rules?: readonly string[];
      /** Asks a person in this process. If absent, the task waits durably for `RunHandle.approve`. */
      readonly answer?: ApprovalHandler;
    };

/**
 * The gate that every tool call of every architecture passes. It combines hooks, extensions, guardrails and
 * permissions.
 *
 * - J7: the decision to ask is journaled before a person is asked, and the answer is bound to the arguments in the
 *   request and to the tool's digest. If the tool or the parsed arguments change before the call is executed, `before`
 *   decides again.
 * - The gate must honour the tool's own `needsApproval`.
 * - Arguments that a person edited pass `before` again. Only a denial has an effect then.
 * - A cancel, an exhausted budget and `MiddlewareTermination` stop the run. Any other error of the gate denies the
 *   call.
 * - For a recorded call neither `before` nor `after` runs.
 */
export interface ToolGate {
  /** Decides on a call before it is executed. */
  before(call: GatedCall): Promise<GateVerdict>;
  /**
   * Returns the result that the model receives. Called for every executed call, failed or not, but not for a denied
   * call.
   */
  after(call: GatedCall, result: ToolResult): Promise<ToolResult>;
  /**
   * Called when a person approves with `remember: true`, or approves a call about which the gate asked with `once`. May be
   * called twice for one call. `rules` are those of the verdict, as they were when the person was asked.
   */
  remember?(call: GatedCall, decision: ApprovalDecision, rules: readonly string[]): Promise<void>;
}
