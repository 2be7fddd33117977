import {
  assertJson,
  Fault,
  isApprovalDecision,
  JsonDigest,
  type ApprovalDecision,
  type ApprovalHandler,
  type ApprovalRequest,
  type PersonQuestion,
  type StepAddress,
  type ToolCall,
} from "../../kernel/index.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { CancellationScope } from "../task/cancellation-scope.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { approvalAddress, approvalWait } from "../journal/wait-names.ts";

export interface Question {
  /** The call, with the arguments to which the answer is bound. */
  readonly call: ToolCall;
  readonly reason: string;
  /** The handler that answers in this process. If absent, the answer comes through the run's mailbox. */
  readonly answer?: ApprovalHandler;
}

/**
 * J7: waits for a decision about a call, durably or for a handler in this process. The task's clock stops meanwhile
 * (B5).
 */
export function askForApproval(
  steps: StepExecutor,
  callAddress: StepAddress,
  { call: { callId, toolName, input }, reason, answer }: Question,
): ApprovalDecision | Promise<ApprovalDecision> {
  const { runner, cancelScope } = steps;
  const { taskId, worker, facts } = runner;
  const digest = new JsonDigest(input);
  const inputDigest = digest.digest(worker.hash);
  // The id contains a digest of the arguments, so that an answer to an earlier call with other arguments does not
  // count.
  const approvalId = `${taskId}/${callAddress}/${inputDigest.slice(0, digitsNamed)}`;
  const name = approvalWait(approvalId);
  const request: ApprovalRequest = {
    approvalId,
    toolName,
    callId,
    input,
    inputDigest,
    reason,
  };
  const step = { address: approvalAddress(callAddress), kind: "approval", name, digest } as const;
  return steps.runInScope<ApprovalDecision>(
    step,
    async (open) => {
      const said = answer
        ? await runner.activity.pauseFor(
            cancelScope,
            handled(() => answer(request, facts)),
          )
        : await decided(runner, cancelScope, name);
      const decision = isApprovalDecision(said) ? said : noDecision(said);
      open.emit({ type: "approval_decision", data: { approvalId, decision } });
      return decision;
    },
    { type: "approval_request", data: request },
  );
}

/** Asks a person on behalf of code. The record has its own address, as a tool's approval is below its call. */
export function askPerson(
  steps: StepExecutor,
  { reason, ...call }: PersonQuestion,
): Promise<ApprovalDecision> {
  const address = steps.next();
  return steps.exclusive(`approval of ${call.toolName}`, async () => {
    assertJson(call.input, `the question of ${call.toolName}`);
    return askForApproval(steps, address, { call, reason });
  });
}

/** Number of digits of the digest in an approval id, enough to make collisions practically impossible. */
const digitsNamed = 16;

/** Converts an invalid decision to a denial, because the value comes from outside. */
function noDecision(said: unknown): ApprovalDecision {
  return { decision: "denied", reason: `invalid decision ${JSON.stringify(said)}` };
}

async function decided(runner: TaskRunner, cancelScope: CancellationScope, name: string): Promise<unknown> {
  const wait = runner.host.waits.wait(runner.taskId, name);
  try {
    return await runner.activity.waitFor(cancelScope, wait.came, { name });
  } catch (error) {
    wait.leave();
    throw error;
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
