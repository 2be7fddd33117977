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

/** A question to a person, and the address that asks it: a round of a tool call, or a step of the agent's code. */
export interface Question {
  readonly round: StepAddress;
  readonly request: ApprovalRequest;
  /** Whether an earlier attempt has asked, so that no second request is emitted. Default: `false`. */
  readonly isAskedBefore?: boolean;
  /** The handler that answers in this process. If absent, the answer comes through the run's mailbox. */
  readonly answer?: ApprovalHandler;
  /** How long the answer of a person waits for the seat of the task. If absent, it does not wait. */
  readonly seat?: SeatLimit;
}

/**
 * J7: waits for a decision about a call, durably or for a handler in this process. The task's clock stops meanwhile
 * (B5).
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
 * Withdraws a question that no one has answered. The log shows a denial, so that no surface asks a person any more; an
 * answer that arrives later has no effect.
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

/** The step that records the answer to a question. */
export function approvalStep(
  round: StepAddress,
  { approvalId, input }: Pick<ApprovalRequest, "approvalId" | "input">,
): StepIdentity {
  const digest = new JsonDigest(input);
  return { address: approvalAddress(round), kind: "approval", name: approvalWait(approvalId), digest };
}

/**
 * Returns the id of a question. It contains a digest of what the person is asked about, so that an answer to an earlier
 * question with other arguments does not count.
 */
export function approvalIdOf(taskId: TaskId, round: StepAddress, digest: string): string {
  return `${taskId}/${round}/${shortDigest(digest)}`;
}

/** The part of a digest that the id of a question contains. */
export function shortDigest(digest: string): string {
  return digest.slice(0, digitsNamed);
}

/** The digest of what the person is asked about, as the id of the question contains it. */
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

/** Asks a person on behalf of code. The record has its own address, as a tool's approval is below its call. */
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

/** Refuses a question that pretends to be a tool approval. Only the checks before a tool call ask for those. */
function assertQuestion(kind: string): void {
  if (questionKinds.includes(kind)) return;
  throw new Fault(
    "invalid_argument",
    `invalid kind ${JSON.stringify(kind)} of ctx.approval: expected one of ${questionKinds.join(", ")}`,
  );
}

/** Number of digits of the digest in an approval id, enough to make collisions practically impossible. */
const digitsNamed = 16;

/** Converts an invalid decision to a denial, because the value comes from outside. */
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

/** Resolves when the task has a seat. If it has none in time, the answer is not recorded, and the end of the attempt is awaited. */
async function seatOrEnd(waiter: SeatWaiter, { waitMs, onLost }: SeatLimit): Promise<void> {
  try {
    await seatWithin(waiter, waitMs);
  } catch (error) {
    onLost(error);
    await new Promise<never>((_resolve, reject) => waiter.cancelScope.token.onCancel(reject));
  }
}

/** Asks the handler. A handler that throws has denied the call. */
async function handled(
  answer: () => ApprovalDecision | Promise<ApprovalDecision>,
): Promise<ApprovalDecision> {
  try {
    return await answer();
  } catch (error) {
    return { decision: "denied", reason: `the approval handler failed: ${Fault.from(error).message}` };
  }
}
