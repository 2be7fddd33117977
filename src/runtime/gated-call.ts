import type { EventDraft, GatedCall, JsonValue, Tool, ToolCall } from "../kernel/index.ts";
import type { CallHistory } from "./call-history.ts";
import type { OpenStep } from "./open-step.ts";
import { ScopeInside, type InnerContext } from "./scope-inside.ts";
import { Strand } from "./strand.ts";

/** Why a call is shown to its gate: before it is made, again when a person has edited or approved it, after it. */
export type GateStage = "gate" | "edited" | "remember" | "after";

export interface GatedCallOptions {
  readonly open: OpenStep;
  readonly call: ToolCall;
  /** Of the scope that makes the call. */
  readonly history: CallHistory;
  /** A scope under the call; a branch of it where one is named. */
  readonly scoped: (strand: Strand, branch?: string) => InnerContext;
}

/**
 * Shows a call to its gate. Steps that the gate takes have a scope of their own for each look, so that one that is not repeated on
 * replay shifts no other.
 */
export async function showToGate<Value>(
  { open, call, scoped, history }: GatedCallOptions,
  { tool, needsApproval, stage, input = call.input }: Look,
  look: (gated: GatedCall) => Promise<Value>,
): Promise<Value> {
  const { agentId, taskId, facts, tree } = open.runner;
  const inside = new ScopeInside(() => {
    // What was called has settled; a step of the gate is a call of its own (H7).
    open.end();
    return scoped(new Strand(open.strand), stage);
  });
  try {
    return await look({
      call: input === call.input ? call : { ...call, input },
      tool,
      needsApproval,
      agentId,
      taskId,
      tenantId: tree.tenantId,
      facts,
      history: history.calls,
      get ctx() {
        return inside.ctx;
      },
      tell: (event: EventDraft) => open.tell(event),
    });
  } finally {
    for (const draft of inside.takeTold()) open.tell(draft);
  }
}

export interface Look {
  readonly tool: Tool;
  readonly needsApproval: boolean;
  readonly stage: GateStage;
  /** Edited arguments. */
  readonly input?: JsonValue;
}
