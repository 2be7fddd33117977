import {
  canonicalJson,
  Fault,
  JsonDigest,
  reasonToAsk,
  stopsTask,
  type ApprovalDecision,
  type ApprovalRequest,
  type GateVerdict,
  type JsonValue,
  type StepAddress,
  type Tool,
  type ToolGate,
} from "../../kernel/index.ts";
import { withGateContext, type GatedCallOptions, type GateStage, type JudgedCall } from "./gate-context.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { approvalIdOf, approvalStep, askForApproval, withdrawQuestion } from "./approval.ts";
import { parseArguments } from "./call-arguments.ts";
import { toolDigest } from "./tool-digest.ts";
import { approvalAddress, gateAddress, isWithdrawn, roundAddress } from "../journal/wait-names.ts";

/** A call in front of the gate. */
export interface Passage extends GatedCallOptions, JudgedCall {
  /** Returns the tool as the agent has it now. `undefined` if the agent has it no more. */
  readonly currentTool: () => Tool | undefined;
}

/** The result of the gate: the tool and arguments to execute, or the text for the model. */
export type Passed = JudgedCall | { readonly refusal: string };

/**
 * Whether a call needs a person's approval whatever the rules say. If there is no gate, and so no permissions, the risk of
 * the tool and its `approvalScope` count as well.
 */
export function needsApproval(
  gate: ToolGate | undefined,
  tool: Tool,
  parsed: unknown,
): boolean | Promise<boolean> {
  return (gate === undefined && reasonToAsk(tool, parsed) !== undefined) || tool.needsApproval(parsed);
}

/**
 * Passes one call through the gate and, if required, an approval.
 *
 * An approval counts only for the tool and the parsed arguments that the person saw. If either has changed when the call
 * is about to be executed, in this process or after a restart, the gate decides again in a new round.
 */
export async function passGate(first: Passage): Promise<Passed> {
  let passage = first;
  for (let index = 0; index < maxRounds; index++) {
    const round = roundAddress(passage.open.address, index);
    const asked = findAsk(passage, round);
    if (asked !== undefined && isOver(passage, index, asked)) await close(passage, round, asked);
    else {
      const passed = await passRound(passage, round, asked);
      if (passed !== "changed") return passed;
      const tool = passage.currentTool();
      if (tool === undefined) return { refusal: `[denied: ${passage.tool.name} is not available any more]` };
      passage = await changedPassage(passage, tool);
    }
  }
  return {
    refusal: `[denied: ${passage.tool.name} changed ${maxRounds} times while it waited for approval]`,
  };
}

/** Number of rounds after which a call is denied: a server that changes its tool all the time must not ask for ever. */
const maxRounds = 16;

/** A recorded decision to ask a person. */
interface RecordedAsk extends Omit<Extract<GateVerdict, { decision: "ask" }>, "answer"> {
  /** Whether a handler in the process was to answer. */
  readonly handled: boolean;
  /** Digest of the tool and of the parsed arguments about which the person is asked. */
  readonly subject: string;
}

function findAsk(passage: GatedCallOptions, round: StepAddress): RecordedAsk | undefined {
  const found = passage.open.runner.journal.find(gateStep(passage, round));
  return found?.kind === "ok" ? (found.value as unknown as RecordedAsk) : undefined;
}

/** J4: the digest covers the arguments that the model sent, never the tool. */
function gateStep({ call }: GatedCallOptions, round: StepAddress): StepIdentity {
  const digest = new JsonDigest(call.input);
  return { address: gateAddress(round), kind: "gate", name: call.toolName, digest };
}

/**
 * Whether a recorded round counts no more: a later one exists, its question was withdrawn, or the tool or the arguments
 * have changed since. A person's refusal counts in any case.
 */
function isOver(passage: Passage, index: number, asked: RecordedAsk): boolean {
  const { address, runner } = passage.open;
  const { steps } = runner.task;
  if (steps.has(gateAddress(roundAddress(address, index + 1)))) return true;
  const outcome = steps.get(approvalAddress(roundAddress(address, index)))?.outcome;
  if (outcome?.kind !== "ok") return asked.subject !== subjectOf(passage);
  if (isWithdrawn(outcome)) return true;
  const { decision } = outcome.value as unknown as ApprovalDecision;
  return decision === "approved" && asked.subject !== subjectOf(passage);
}

/** Ends a round that counts no more. A question that no one has answered is withdrawn. */
async function close(passage: GatedCallOptions, round: StepAddress, asked: RecordedAsk): Promise<void> {
  const { open, call, from } = passage;
  const { task, journal } = open.runner;
  const address = approvalAddress(round);
  const input = asked.input ?? call.input;
  const question = { approvalId: questionId(passage, round, asked.subject, input), input };
  if (task.steps.has(address)) journal.find(approvalStep(round, question));
  else if (task.opened.has(address)) {
    const reason = `${call.toolName} or its permissions have changed since the question was asked`;
    await withdrawQuestion(from.steps, round, question, reason);
  }
}

/** Whether an earlier owner of the run has asked a person about this call. */
export function wasAsked({ isRepeated, address, runner }: ActiveStep): boolean {
  return isRepeated && runner.task.steps.has(gateAddress(address));
}

/** Withdraws the open question about a call that is not executed, because the tool is gone or not allowed any more. */
export async function withdrawAsked(options: GatedCallOptions): Promise<void> {
  for (let index = 0; ; index++) {
    const round = roundAddress(options.open.address, index);
    const asked = findAsk(options, round);
    if (asked === undefined) return;
    await close(options, round, asked);
  }
}

/** The call of a tool that changed while the call waited in this process. */
async function changedPassage(passage: Passage, tool: Tool): Promise<Passage> {
  const gate = passage.open.runner.agent.callPath?.gate;
  const input = await parseArguments(tool, passage.call.input);
  return { ...passage, tool, input, needsApproval: await needsApproval(gate, tool, input.parsed) };
}

/** Digest of what an approval is bound to: the tool, and the arguments with which it is executed. */
function subjectOf({ open, tool, input }: Passage): string {
  const { hash } = open.runner.worker;
  return hash(canonicalJson([toolDigest(tool, hash), input.json]));
}

/** Id of the question about a call with these arguments. */
function questionId(
  { open }: GatedCallOptions,
  round: StepAddress,
  subject: string,
  input: JsonValue,
): string {
  const { taskId, worker } = open.runner;
  return approvalIdOf(taskId, round, worker.hash(canonicalJson([subject, input])));
}

async function passRound(
  passage: Passage,
  round: StepAddress,
  recorded: RecordedAsk | undefined,
): Promise<Passed | "changed"> {
  const { open, from } = passage;
  const gate = open.runner.agent.callPath?.gate;
  const verdict = await verdictOf(passage, round, gate, recorded);
  if (recorded !== undefined && verdict.decision !== "ask") await close(passage, round, recorded);
  if (verdict.decision === "deny") return denied(passage, verdict);
  const judged = await withInput(passage, (recorded ?? verdict).input);
  if (verdict.decision === "allow") return judged;
  const { answer, reason } = verdict;
  const subject = recorded?.subject ?? subjectOf(passage);
  const approvalId = questionId(passage, round, subject, judged.input.sent);
  const request = requestOf(judged, { approvalId, reason });
  const decision = await askForApproval(from.steps, { round, request, ...(answer && { answer }) });
  if (decision.decision !== "approved") return { refusal: refusalOf(decision) };
  if (hasChanged(passage, request)) return "changed";
  const approved = await withInput(judged, decision.input);
  if (gate !== undefined && decision.input !== undefined) {
    const again = await judge(approved, round, gate, "edited");
    if (again.decision === "deny") return denied(passage, again);
  }
  if (decision.remember === true || verdict.once === true)
    await remember(approved, round, decision, verdict.rules ?? [reason]);
  return approved;
}

/** The call with other arguments, which are parsed, or the same call if there are none. */
async function withInput(passage: Passage, sent: JsonValue | undefined): Promise<Passage> {
  return sent === undefined ? passage : { ...passage, input: await parseArguments(passage.tool, sent) };
}

/** Whether the agent has another tool of this name than the one that the person approved. */
function hasChanged({ open, currentTool }: Passage, request: ApprovalRequest): boolean {
  const tool = currentTool();
  return tool === undefined || toolDigest(tool, open.runner.worker.hash) !== request.toolDigest;
}

function requestOf(
  { open, call: { callId, toolName }, tool, input: { sent, json } }: Passage,
  { approvalId, reason }: Pick<ApprovalRequest, "approvalId" | "reason">,
): ApprovalRequest {
  const { hash } = open.runner.worker;
  return {
    approvalId,
    kind: "tool_call",
    toolName,
    callId,
    input: sent,
    ...(json !== sent && { parsedInput: json }),
    inputDigest: hash(canonicalJson(sent)),
    toolDigest: toolDigest(tool, hash),
    reason,
  };
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

function ownVerdict({ needsApproval: isNeeded, tool, input }: Passage): GateVerdict {
  if (!isNeeded) return { decision: "allow" };
  const reason = reasonToAsk(tool, input.parsed) ?? `${tool.name} asks for it`;
  return { decision: "ask", by: "tool", reason };
}

/**
 * J7: records a decision to ask, so that a later process does not decide again what a person was already asked or has
 * changed. Other decisions are not recorded: a call without a record is made and judged again. So is a call whose handler
 * had not answered, because only the gate provides the handler.
 */
async function verdictOf(
  passage: Passage,
  round: StepAddress,
  gate: ToolGate | undefined,
  recorded: RecordedAsk | undefined,
): Promise<GateVerdict> {
  const { open, from } = passage;
  const isAnswered = open.runner.task.steps.has(approvalAddress(round));
  if (recorded !== undefined && (isAnswered || !recorded.handled)) return recorded;
  const before = open.events.length;
  const verdict = gate === undefined ? ownVerdict(passage) : await judge(passage, round, gate, "gate");
  if (verdict.decision !== "ask" || recorded !== undefined) return verdict;
  const { answer, ...question } = verdict;
  // Emitted with the decision, because a process that takes over does not decide again.
  const drafts = open.takeEvents(before);
  await from.steps.runInScope<RecordedAsk>(gateStep(passage, round), async (asking) => {
    for (const draft of drafts) asking.emit(draft);
    return { ...question, handled: answer !== undefined, subject: subjectOf(passage) };
  });
  return verdict;
}

/** Calls the gate. It fails closed: an error denies the call. */
async function judge(
  passage: Passage,
  round: StepAddress,
  gate: ToolGate,
  stage: GateStage,
): Promise<GateVerdict> {
  try {
    return await withGateContext(passage, { ...passage, stage, round }, (gated) => gate.before(gated));
  } catch (error) {
    if (stopsTask(error)) throw error;
    return { decision: "deny", by: "gate", reason: `the gate failed: ${Fault.from(error).message}` };
  }
}

/** Lets the gate remember an approval. The approval is valid even if it could not be remembered. */
async function remember(
  passage: Passage,
  round: StepAddress,
  decision: ApprovalDecision,
  rules: readonly string[],
): Promise<void> {
  const gate = passage.open.runner.agent.callPath?.gate;
  if (gate?.remember === undefined) return;
  try {
    const look = { ...passage, stage: "remember", round } as const;
    await withGateContext(passage, look, async (gated) => gate.remember?.(gated, decision, rules));
  } catch (error) {
    const failure = Fault.from(error).toJSON();
    passage.open.emit({ type: "hook_error", data: { hook: "remember", failure } });
  }
}
