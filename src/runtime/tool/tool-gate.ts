import {
  canonicalJson,
  Fault,
  JsonDigest,
  type ApprovalDecision,
  type ApprovalRequest,
  type AskVerdict,
  type Denial,
  type JsonValue,
  type StepAddress,
  type Tool,
  type ToolResult,
} from "../../kernel/index.ts";
import { withGateContext, type JudgedCall, type ToolCallOptions } from "./gate-context.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { approvalIdOf, approvalStep, askForApproval, shortDigest, withdrawQuestion } from "./approval.ts";
import { parseArguments, type ParsedArguments } from "./call-arguments.ts";
import { decideBefore, ownVerdict, type FinalVerdict } from "./call-entries.ts";
import { failedResult, findTool } from "./received-call.ts";
import { toolDigest } from "./tool-digest.ts";
import { approvalAddress, gateAddress, isWithdrawn, roundAddress } from "../journal/wait-names.ts";

/** A call that is about to be judged by the checks. */
export interface Passage extends ToolCallOptions, JudgedCall {}

/**
 * The result of the checks before a tool call: the tool and arguments to execute, or the result of a call that is
 * not executed.
 */
export type Passed =
  | { readonly kind: "allowed"; readonly judged: JudgedCall }
  | { readonly kind: "settled"; readonly result: ToolResult };

/**
 * Passes one call through the `before` checks and, if required, an approval. If the checks do not decide, the
 * tool's own need for approval decides.
 *
 * An approval is valid only for the tool and the parsed arguments that the person saw. If either has changed when
 * the call is about to be executed, in this process or after a restart, the checks decide again in a new round.
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
      const tool = currentTool(passage);
      if (tool === undefined)
        return settled(refused(passage, `[denied: ${passage.tool.name} is not available any more]`));
      passage = await changedPassage(passage, tool);
    }
  }
  const text = `[denied: ${passage.tool.name} changed ${maxRounds} times while it waited for approval]`;
  return settled(refused(passage, text));
}

function settled(result: ToolResult): Passed {
  return { kind: "settled", result };
}

/** Returns the agent's current tool with this name. `undefined` if the agent does not have it any more. */
function currentTool({ open, call, extra }: ToolCallOptions): Tool | undefined {
  return findTool(open.runner.agent, call.toolName, extra);
}

/** Returns the result for a call that is not executed, because a rule or a person denied it. */
function refused({ open }: ToolCallOptions, text: string): ToolResult {
  open.isDenied = true;
  return failedResult(text);
}

/** Returns the result for a call that a check denied. */
export function denied(
  options: ToolCallOptions,
  { by, reason, text = `[denied: ${reason}]` }: Denial,
): ToolResult {
  const { callId, toolName } = options.call;
  options.open.emit({ type: "permission_deny", data: { callId, toolName, by, reason } });
  return refused(options, text);
}

/** Number of rounds after which a call is denied, so that a server that always changes its tool cannot ask forever. */
const maxRounds = 16;

/** A recorded decision to ask a person. */
interface RecordedAsk extends Omit<AskVerdict, "answer"> {
  /** The arguments about which the person is asked, if a check has edited them. */
  readonly input?: JsonValue;
  /** Whether a handler in the process had to answer. */
  readonly handled: boolean;
  /** Digest of the tool and of the parsed arguments about which the person is asked. */
  readonly subject: string;
}

function findAsk(passage: ToolCallOptions, round: StepAddress): RecordedAsk | undefined {
  const found = passage.open.runner.journal.find(gateStep(passage, round));
  return found?.kind === "ok" ? (found.value as unknown as RecordedAsk) : undefined;
}

/**
 * Returns the step that records the decision of the checks. J4: its digest covers the arguments that the model
 * sent, and not the tool.
 */
function gateStep({ call }: ToolCallOptions, round: StepAddress): StepIdentity {
  const digest = new JsonDigest(call.input);
  return { address: gateAddress(round), kind: "gate", name: call.toolName, digest };
}

/**
 * Whether a recorded round is no longer valid, because there is a later round, its question was withdrawn, or the
 * tool or the arguments have changed since then. A person's refusal stays valid in any case.
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

/** Ends a round that is no longer valid. If no person has answered its question, the question is withdrawn. */
async function close(passage: ToolCallOptions, round: StepAddress, asked: RecordedAsk): Promise<void> {
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

/**
 * Withdraws the open question about a call that is not executed, because the tool does not exist or is not allowed
 * any more.
 */
export async function withdrawAsked(options: ToolCallOptions): Promise<void> {
  for (let index = 0; ; index++) {
    const round = roundAddress(options.open.address, index);
    const asked = findAsk(options, round);
    if (asked === undefined) return;
    await close(options, round, asked);
  }
}

/** Returns the call with the new tool, if the tool changed while the call waited in this process. */
async function changedPassage(passage: Passage, tool: Tool): Promise<Passage> {
  return { ...passage, ...(await parsedCall(tool, passage.call.input)) };
}

/** Returns a digest of what an approval is valid for: the tool, and the arguments with which it is executed. */
function subjectOf({ open, tool, input }: Passage): string {
  const { hash } = open.runner.worker;
  return hash(canonicalJson([toolDigest(tool, hash), input.json]));
}

/**
 * Error text for edited arguments of a program's call. A program makes its call with the arguments that it has
 * sent.
 */
const changedArguments =
  "a hook or an extension would change the arguments, and the arguments of a program's own call cannot be changed";

/** Returns the digest of the question about a call with these arguments. */
function questionDigest({ open }: ToolCallOptions, subject: string, input: JsonValue): string {
  return open.runner.worker.hash(canonicalJson([subject, input]));
}

/** Returns the id of the question about a call with these arguments. */
function questionId(options: ToolCallOptions, round: StepAddress, subject: string, input: JsonValue): string {
  return approvalIdOf(options.open.runner.taskId, round, questionDigest(options, subject, input));
}

async function passRound(
  passage: Passage,
  round: StepAddress,
  recorded: RecordedAsk | undefined,
): Promise<Passed | "changed"> {
  const { from } = passage;
  const { verdict, input } = await verdictOf(passage, round, recorded);
  const isOutdated = recorded !== undefined && !repeats({ verdict, input }, recorded, passage);
  if (isOutdated) await close(passage, round, recorded);
  if (verdict.decision === "answer") return settled(verdict.result);
  if (verdict.decision === "deny") return settled(denied(passage, verdict));
  const judged = { ...passage, input };
  if (passage.foreign !== undefined && input !== passage.input)
    return settled(denied(passage, { decision: "deny", by: "arguments", reason: changedArguments }));
  if (verdict.decision === "allow") return { kind: "allowed", judged };
  if (isOutdated) return "changed";
  const { answer, reason } = verdict;
  const subject = recorded?.subject ?? subjectOf(passage);
  const digest = questionDigest(passage, subject, judged.input.sent);
  const keptId = passage.foreign?.takeKept(shortDigest(digest));
  const isAskedBefore = keptId !== undefined;
  const approvalId = keptId ?? approvalIdOf(passage.open.runner.taskId, round, digest);
  const request = requestOf(judged, { approvalId, reason });
  passage.foreign?.onAsk({ round, request, isAskedBefore });
  const decision = await askForApproval(from.steps, {
    round,
    request,
    isAskedBefore,
    ...(answer && { answer }),
    ...(passage.foreign?.seat && { seat: passage.foreign.seat }),
  });
  if (decision.decision === "skipped") return settled(refused(passage, "[skipped by a person]"));
  if (decision.decision === "denied")
    return settled(refused(passage, `[denied: ${decision.reason ?? "by a person"}]`));
  if (hasChanged(passage, request)) return "changed";
  const approved = await withInput(judged, decision.input);
  if (decision.input !== undefined) {
    const again = await judge(approved, round, "edited");
    if (again.verdict.decision === "deny") return settled(denied(passage, again.verdict));
  }
  if (decision.remember === true || verdict.once === true)
    await remember(approved, round, decision, verdict.rules ?? [reason]);
  return { kind: "allowed", judged: approved };
}

/** Whether a judgement asks the recorded question again, because the arguments are the same. */
function repeats({ verdict, input }: Judgement, recorded: RecordedAsk, passage: Passage): boolean {
  const { input: asked = passage.input.sent } = recorded;
  return verdict.decision === "ask" && canonicalJson(input.sent) === canonicalJson(asked);
}

/** Returns the call with other arguments, which are parsed. Without other arguments, returns the same call. */
async function withInput(passage: Passage, sent: JsonValue | undefined): Promise<Passage> {
  return sent === undefined ? passage : { ...passage, input: await parseArguments(passage.tool, sent) };
}

/** Whether the agent has another tool of this name than the one that the person approved. */
function hasChanged(passage: Passage, request: ApprovalRequest): boolean {
  const tool = currentTool(passage);
  return tool === undefined || toolDigest(tool, passage.open.runner.worker.hash) !== request.toolDigest;
}

function requestOf(
  { open, call: { callId, toolName }, tool, input: { sent, json }, foreign }: Passage,
  { approvalId, reason }: Pick<ApprovalRequest, "approvalId" | "reason">,
): ApprovalRequest {
  const { hash } = open.runner.worker;
  return {
    approvalId,
    kind: foreign === undefined ? "tool_call" : "foreign_tool_call",
    toolName,
    callId,
    input: sent,
    ...(json !== sent && { parsedInput: json }),
    inputDigest: hash(canonicalJson(sent)),
    toolDigest: toolDigest(tool, hash),
    ...(foreign === undefined ? { inputSchema: tool.inputSchema } : { foreign: foreign.details }),
    reason,
  };
}

/** A decision of the checks, with the arguments about which they decided. */
interface Judgement {
  readonly verdict: FinalVerdict;
  readonly input: ParsedArguments;
}

/**
 * J7: records a decision to ask, so that a later process does not decide again what a person was already asked or
 * has changed. Other decisions are not recorded: after a crash, a call without a record is judged again. A call
 * whose handler had not answered is judged again too, because only the check provides the handler.
 */
async function verdictOf(
  passage: Passage,
  round: StepAddress,
  recorded: RecordedAsk | undefined,
): Promise<Judgement> {
  const { open, from } = passage;
  const isAnswered = open.runner.task.steps.has(approvalAddress(round));
  if (recorded !== undefined && (isAnswered || !recorded.handled))
    return { verdict: recorded, input: (await withInput(passage, recorded.input)).input };
  const before = open.events.length;
  const judgement = await judge(passage, round, "gate");
  const { verdict, input } = judgement;
  if (verdict.decision !== "ask" || recorded !== undefined) return judgement;
  const { answer, ...question } = verdict;
  const edited = input === passage.input ? {} : { input: input.sent };
  // Emitted with the decision, because a process that takes over does not decide again.
  const drafts = open.takeEvents(before);
  await from.steps.runInScope<RecordedAsk>(gateStep(passage, round), async (asking) => {
    for (const draft of drafts) asking.emit(draft);
    return { ...question, ...edited, handled: answer !== undefined, subject: subjectOf(passage) };
  });
  return judgement;
}

/** Asks the checks. If a check edits the arguments, the new arguments pass all checks again. */
async function judge(passage: Passage, round: StepAddress, stage: "gate" | "edited"): Promise<Judgement> {
  const { open, tool, input, needsApproval } = passage;
  const entries = open.runner.agent.callPath?.tool?.before;
  if (entries === undefined)
    return { verdict: ownVerdict({ tool, parsed: input.parsed, needsApproval }), input };
  return withGateContext(passage, { stage, round }, async (gatedCall) => {
    let judged: JudgedCall = { tool, input, needsApproval };
    for (let edits = 0; edits < maxRounds; edits++) {
      const verdict = await decideBefore(entries, gatedCall(judged), stage === "edited");
      if (verdict.decision !== "edit") return { verdict, input: judged.input };
      judged = await parsedCall(tool, verdict.input);
    }
    throw new Fault(
      "invalid_argument",
      `the arguments of ${tool.name} were edited ${maxRounds} times: an entry must not change its own edit`,
    );
  });
}

async function parsedCall(tool: Tool, sent: JsonValue): Promise<JudgedCall> {
  const input = await parseArguments(tool, sent);
  return { tool, input, needsApproval: await tool.needsApproval(input.parsed) };
}

/** Lets the checks remember an approval. The approval is valid even if it could not be remembered. */
async function remember(
  passage: Passage,
  round: StepAddress,
  decision: ApprovalDecision,
  rules: readonly string[],
): Promise<void> {
  const entries = passage.open.runner.agent.callPath?.tool?.before ?? [];
  const remembering = entries.filter((entry) => entry.remember !== undefined);
  if (remembering.length === 0) return;
  try {
    await withGateContext(passage, { stage: "remember", round }, async (gatedCall) => {
      const gated = gatedCall(passage);
      for (const entry of remembering) await entry.remember?.(gated, decision, rules);
    });
  } catch (error) {
    const failure = Fault.from(error).toJSON();
    passage.open.emit({ type: "hook_error", data: { hook: "remember", failure } });
  }
}
