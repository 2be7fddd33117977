import {
  Fault,
  JsonDigest,
  stopsTask,
  type ApprovalDecision,
  type GateVerdict,
  type JsonValue,
  type Tool,
  type ToolGate,
} from "../../kernel/index.ts";
import { withGateContext, type GatedCallOptions, type GateStage } from "./gate-context.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { askForApproval } from "./approval.ts";
import { approvalAddress, gateAddress } from "../journal/wait-names.ts";

export interface Passage extends GatedCallOptions {
  readonly tool: Tool;
  readonly needsApproval: boolean;
}

/** `input`: go on with these arguments instead. `refusal`: what the model is told. */
export type Passed = { readonly input?: JsonValue } | { readonly refusal: string };

/** One call through the gate, and past a person if it says so. Without a gate, the tool's own word is asked. */
export async function passGate(passage: Passage): Promise<Passed> {
  const { open, call } = passage;
  const gate = open.runner.agent.callPath?.gate;
  const verdict = gate === undefined ? ownVerdict(passage) : await verdictOf(passage, gate);
  if (verdict.decision === "allow") return given(verdict.input);
  if (verdict.decision === "deny") return denied(passage, verdict);
  const { reason, answer } = verdict;
  const input = verdict.input ?? call.input;
  const decision = await askForApproval(passage.from.steps, open.address, {
    call: { ...call, input },
    reason,
    ...(answer && { answer }),
  });
  if (decision.decision !== "approved") return { refusal: refusalOf(decision) };
  const edited = decision.input === undefined ? undefined : coerceInput(passage.tool, decision.input);
  if (gate !== undefined && edited !== undefined) {
    const again = await judge(passage, gate, "edited", edited);
    if (again.decision === "deny") return denied(passage, again);
  }
  if (decision.remember === true) await remember(passage, gate, decision);
  return given(edited ?? verdict.input);
}

/** T3. */
export function coerceInput(tool: Tool, input: JsonValue): JsonValue {
  return tool.coerce === undefined ? input : tool.coerce(input);
}

function refusalOf(decision: Exclude<ApprovalDecision, { decision: "approved" }>): string {
  if (decision.decision === "skipped") return "[skipped by a person]";
  return `[denied: ${decision.reason ?? "by a person"}]`;
}

function denied(
  { open, call: { callId, toolName } }: Passage,
  { by, reason }: Extract<GateVerdict, { decision: "deny" }>,
): Passed {
  open.emit({ type: "permission_deny", data: { callId, toolName, by, reason } });
  return { refusal: `[denied: ${reason}]` };
}

function ownVerdict({ needsApproval, call }: Passage): GateVerdict {
  if (!needsApproval) return { decision: "allow" };
  return { decision: "ask", by: "tool", reason: `${call.toolName} asks for it` };
}

function given(input: JsonValue | undefined): Passed {
  return input === undefined ? {} : { input };
}

/**
 * J7: a verdict to ask is recorded, so that a process that comes after does not judge anew what a person was already asked, or what a
 * person said has changed. One that asks nobody is not: a call that was not recorded is made again, and judged again. So is one whose
 * handler had not answered, because the handler is only had from the gate.
 */
async function verdictOf(passage: Passage, gate: ToolGate): Promise<GateVerdict> {
  const { open, call } = passage;
  const { steps } = passage.from;
  const digest = new JsonDigest(call.input);
  const address = gateAddress(open.address);
  const step: StepIdentity = { address, kind: "gate", name: call.toolName, digest };
  const found = open.runner.journal.find(step);
  const recorded = found?.kind === "ok" ? (found.value as unknown as RecordedAsk) : undefined;
  const answered = open.runner.task.steps.has(approvalAddress(open.address));
  if (recorded !== undefined && (answered || !recorded.handled)) return recorded;
  const before = open.events.length;
  const verdict = await judge(passage, gate, "gate");
  if (verdict.decision !== "ask" || recorded !== undefined) return verdict;
  const { answer, ...question } = verdict;
  // With the verdict, because whoever takes over does not judge again.
  const told = open.takeTold(before);
  await steps.runInScope<RecordedAsk>(step, async (asking) => {
    for (const draft of told) asking.emit(draft);
    return { ...question, handled: answer !== undefined };
  });
  return verdict;
}

/** `handled`: somebody in the process was to answer. */
type RecordedAsk = Omit<Extract<GateVerdict, { decision: "ask" }>, "answer"> & { readonly handled: boolean };

/** A gate fails closed. */
async function judge(
  passage: Passage,
  gate: ToolGate,
  stage: GateStage,
  input?: JsonValue,
): Promise<GateVerdict> {
  const { tool, needsApproval } = passage;
  const look = { tool, needsApproval, stage, ...(input !== undefined && { input }) };
  try {
    return await withGateContext(passage, look, (gated) => gate.before(gated));
  } catch (error) {
    if (stopsTask(error)) throw error;
    return { decision: "deny", by: "gate", reason: `the gate failed: ${Fault.from(error).message}` };
  }
}

/** The approval stands, whether or not it could be remembered. */
async function remember(
  passage: Passage,
  gate: ToolGate | undefined,
  decision: ApprovalDecision,
): Promise<void> {
  const { open, tool, needsApproval } = passage;
  try {
    await withGateContext(
      passage,
      { tool, needsApproval, stage: "remember" },
      async (gated) => await gate?.remember?.(gated, decision),
    );
  } catch (error) {
    open.emit({ type: "hook_error", data: { hook: "remember", failure: Fault.from(error).toJSON() } });
  }
}
