import {
  canonicalJson,
  Fault,
  MiddlewareTermination,
  type ApprovalDecision,
  type GatedCall,
  type GateVerdict,
  type Hash,
  type JsonValue,
  type ToolGate,
} from "../kernel/index.ts";
import type { OpenStep } from "./open-step.ts";
import type { ScopeSteps } from "./scope-steps.ts";
import type { StepIdentity } from "./task-runner.ts";
import { askForApproval } from "./tool-approval.ts";
import { gateAddress } from "./wait-name.ts";

export interface Passage {
  /** Of the code that calls the tool. */
  readonly steps: ScopeSteps;
  readonly open: OpenStep;
  readonly gated: GatedCall;
}

/** `input`: go on with these arguments instead. `refusal`: what the model is told. */
export type Passed = { readonly input?: JsonValue } | { readonly refusal: string };

/** One call through the gate, and past a person if it says so. Without a gate, the tool's own word is asked. */
export async function passGate(passage: Passage): Promise<Passed> {
  const { open, gated } = passage;
  const { callId, toolName } = gated.call;
  const gate = open.runner.agent.callPath?.gate;
  const verdict = gate === undefined ? ownVerdict(gated) : await verdictOf(passage, gate);
  if (verdict.decision === "allow") return given(verdict.input);
  if (verdict.decision === "deny") {
    const { by, reason } = verdict;
    open.tell({ type: "permission_deny", data: { callId, toolName, by, reason } });
    return { refusal: `[denied: ${reason}]` };
  }
  const { reason, answer } = verdict;
  const input = verdict.input ?? gated.call.input;
  const decision = await askForApproval(passage.steps, open.address, {
    call: { ...gated.call, input },
    reason,
    ...(answer && { answer }),
  });
  if (decision.decision === "denied") return { refusal: `[denied: ${decision.reason ?? "by a person"}]` };
  if (decision.decision === "skipped") return { refusal: "[skipped by a person]" };
  if (decision.remember === true) await remember(gate, gated, decision);
  return given(decision.input ?? verdict.input);
}

function ownVerdict({ needsApproval, call }: GatedCall): GateVerdict {
  if (!needsApproval) return { decision: "allow" };
  return { decision: "ask", by: "tool", reason: `${call.toolName} asks for it` };
}

function given(input: JsonValue | undefined): Passed {
  return input === undefined ? {} : { input };
}

/**
 * J7: a verdict to wait for a person is recorded, so that a process that comes after does not judge anew what a person was already
 * asked. A verdict that waits for nobody is not: a call that was not recorded is made again, and judged again.
 */
async function verdictOf({ steps, open, gated }: Passage, gate: ToolGate): Promise<GateVerdict> {
  const digest = (hash: Hash): string => hash(canonicalJson(gated.call.input));
  const address = gateAddress(open.address);
  const step: StepIdentity = { address, kind: "gate", name: gated.call.toolName, digest };
  const recorded = open.runner.find(step);
  if (recorded?.kind === "ok") return recorded.value as unknown as GateVerdict;
  const verdict = await judge(gate, gated);
  if (verdict.decision === "ask" && verdict.answer === undefined)
    await steps.recorded<GateVerdict>(step, async () => verdict);
  return verdict;
}

/** A gate fails closed. */
async function judge(gate: ToolGate, gated: GatedCall): Promise<GateVerdict> {
  try {
    return await gate.before(gated);
  } catch (error) {
    if (error instanceof MiddlewareTermination) throw error;
    return { decision: "deny", by: "gate", reason: `the gate failed: ${Fault.from(error).message}` };
  }
}

/** The approval stands, whether or not it could be remembered. */
async function remember(
  gate: ToolGate | undefined,
  gated: GatedCall,
  decision: ApprovalDecision,
): Promise<void> {
  try {
    await gate?.remember?.(gated, decision);
  } catch (error) {
    gated.tell({ type: "hook_error", data: { hook: "remember", failure: Fault.from(error).toJSON() } });
  }
}
