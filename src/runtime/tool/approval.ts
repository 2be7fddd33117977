import {
  assertJson,
  canonicalJson,
  Fault,
  isApprovalDecision,
  JsonDigest,
  type ApprovalDecision,
  type ApprovalHandler,
  type ApprovalRequest,
  type PersonQuestion,
  type StepAddress,
  type TaskId,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { seatWithin, type SeatWaiter } from "../task/seat-wait.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { SeatLimit } from "./gate-context.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { approvalAddress, approvalWait, withdrawn } from "../journal/wait-names.ts";

/** A question to a person, with the address that asks it: a round of a tool call, or a step of the agent's code. */
export interface Question {
  readonly round: StepAddress;
  readonly request: ApprovalRequest;
  /**
   * Whether an earlier attempt has asked the same question, so that no second request is emitted. Default: `false`.
   */
  readonly isAskedBefore?: boolean;
  /** The handler that answers in this process. If absent, the answer comes through the run's mailbox. */
  readonly answer?: ApprovalHandler;
  /** How long the answer of a person waits until the task has a seat. If absent, it does not wait. */
  readonly seat?: SeatLimit;
}

/**
 * J7: waits for a decision about a call: durably, or for a handler in this process. The time of the wait does not
 * count for the task's deadline (B5).
 */
export function askForApproval(
  steps: StepExecutor,
  { round, request, answer, seat, isAskedBefore = false }: Question,
): ApprovalDecision | Promise<ApprovalDecision> {
  const { runner, cancelScope } = steps;
  const { approvalId } = request;
  const step = approvalStep(round, request);
  return steps.runInScope<ApprovalDecision>(
    step,
    async (open) => {
      const said = answer
        ? await runner.activity.pauseFor(
            cancelScope,
            handled(() => answer(request, runner.facts)),
          )
        : await decided({ runner, cancelScope }, step.name, seat);
      const decision = isApprovalDecision(said) ? said : noDecision(said);
      open.emit({ type: "approval_decision", data: { approvalId, decision } });
      return decision;
    },
    isAskedBefore ? undefined : { type: "approval_request", data: request },
  );
}

/**
 * Withdraws a question that no person has answered. The log then contains a denial, so that no surface asks a
 * person any more. A later answer has no effect.
 */
export async function withdrawQuestion(
  steps: StepExecutor,
  round: StepAddress,
  question: Pick<ApprovalRequest, "approvalId" | "input">,
  reason: string,
): Promise<void> {
  const { approvalId } = question;
  await steps.runInScope(approvalStep(round, question), async (open) => {
    const decision: ApprovalDecision = { decision: "denied", reason, by: "runtime" };
    open.emit({ type: "approval_decision", data: { approvalId, decision } });
    return withdrawn;
  });
}

/** Returns the step that records the answer to a question. */
export function approvalStep(
  round: StepAddress,
  { approvalId, input }: Pick<ApprovalRequest, "approvalId" | "input">,
): StepIdentity {
  const digest = new JsonDigest(input);
  return { address: approvalAddress(round), kind: "approval", name: approvalWait(approvalId), digest };
}

/**
 * Returns the id of a question. It contains a digest of what the person is asked about, so that an answer to an
 * earlier question with other arguments is not accepted.
 */
export function approvalIdOf(taskId: TaskId, round: StepAddress, digest: string): string {
  return `${taskId}/${round}/${shortDigest(digest)}`;
}

/** Returns the part of a digest that the id of a question contains. */
export function shortDigest(digest: string): string {
  return digest.slice(0, digitsNamed);
}

/** Returns the digest of what the person is asked about, from the id of the question. */
export function askedAbout(approvalId: string): string {
  return approvalId.slice(approvalId.lastIndexOf("/") + 1);
}

const questionTable = optionTable({
  toolName: is.text(),
  callId: is.text(),
  input: is.any,
  reason: is.text(),
  kind: is.any,
} satisfies OptionKinds<PersonQuestion>);

/**
 * Asks a person on behalf of code. The record has an address of its own, like that of a tool's approval, which is
 * below its call.
 */
export function askPerson(steps: StepExecutor, question: PersonQuestion): Promise<ApprovalDecision> {
  const { kind = "question", reason, toolName, callId, input } = { ...question };
  const round = steps.next();
  return steps.exclusive(`approval of ${toolName}`, async () => {
    questionTable.read("ctx.approval()", question);
    assertJson(input, `the question of ${toolName}`);
    assertQuestion(kind);
    const { taskId, worker } = steps.runner;
    worker.sizes.assert(input, `the question of ${toolName}`);
    const inputDigest = worker.hash(canonicalJson(input));
    const approvalId = approvalIdOf(taskId, round, inputDigest);
    const request = { approvalId, kind, toolName, callId, input, inputDigest, reason };
    return askForApproval(steps, { round, request });
  });
}

const questionKinds: readonly string[] = [
  "question",
  "elicitation",
  "client_tool",
  "confirm",
  "select",
  "input",
  "merge",
] satisfies readonly NonNullable<PersonQuestion["kind"]>[];

/** Throws for a question that claims to be a tool approval. Only the checks before a tool call may ask for one. */
function assertQuestion(kind: string): void {
  if (questionKinds.includes(kind)) return;
  throw new Fault(
    "invalid_argument",
    `invalid kind ${JSON.stringify(kind)} of ctx.approval: expected one of ${questionKinds.join(", ")}`,
  );
}

/** Number of digits of the digest in an approval id. It is large enough to make equal ids practically impossible. */
const digitsNamed = 16;

/** Converts an invalid decision to a denial. The value must be checked, because it comes from outside. */
function noDecision(said: unknown): ApprovalDecision {
  return { decision: "denied", reason: `invalid decision ${JSON.stringify(said)}` };
}

async function decided(waiter: SeatWaiter, name: string, seat: SeatLimit | undefined): Promise<unknown> {
  const { runner, cancelScope } = waiter;
  const wait = runner.host.waits.wait(runner.taskId, name);
  try {
    const said = await runner.activity.waitFor(cancelScope, wait.came, { name });
    if (seat !== undefined) await seatOrEnd(waiter, seat);
    return said;
  } catch (error) {
    wait.leave();
    throw error;
  }
}

/**
 * Resolves when the task has a seat. If it gets none in time, the answer is not recorded, and the wait continues
 * until the end of the attempt.
 */
async function seatOrEnd(waiter: SeatWaiter, { waitMs, onLost }: SeatLimit): Promise<void> {
  try {
    await seatWithin(waiter, waitMs);
  } catch (error) {
    onLost(error);
    await new Promise<never>((_resolve, reject) => waiter.cancelScope.token.onCancel(reject));
  }
}

/** Asks the handler. If the handler throws, the call is denied. */
async function handled(
  answer: () => ApprovalDecision | Promise<ApprovalDecision>,
): Promise<ApprovalDecision> {
  try {
    return await answer();
  } catch (error) {
    return { decision: "denied", reason: `the approval handler failed: ${Fault.from(error).message}` };
  }
}
