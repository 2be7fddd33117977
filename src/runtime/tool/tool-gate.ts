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

/** The result of the gate: `input` holds edited arguments, `refusal` the text for the model. */
export type Passed = { readonly input?: JsonValue } | { readonly refusal: string };

/**
 * Passes one call through the gate and, if required, an approval. Without a gate, the tool's own `needsApproval`
 * decides.
 */
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

/** T3: coerces the arguments of a tool. */
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
 * J7: records a decision to ask, so that a later process does not decide again what a person was already asked or has
 * changed. Other decisions are not recorded: a call without a record is made and judged again. So is a call whose handler
 * had not answered, because only the gate provides the handler.
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
  // Emitted with the decision, because a process that takes over does not decide again.
  const told = open.takeEvents(before);
  await steps.runInScope<RecordedAsk>(step, async (asking) => {
    for (const draft of told) asking.emit(draft);
    return { ...question, handled: answer !== undefined };
  });
  return verdict;
}

/** `handled` means that a handler in the process was to answer. */
type RecordedAsk = Omit<Extract<GateVerdict, { decision: "ask" }>, "answer"> & { readonly handled: boolean };

/** Calls the gate. It fails closed: an error denies the call. */
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

/** Remembers an approval. The approval is valid even if it could not be remembered. */
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
