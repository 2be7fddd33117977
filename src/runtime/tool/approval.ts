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
  /** With the arguments the answer is bound to. */
  readonly call: ToolCall;
  readonly reason: string;
  /** Absent: whoever sends the answer. */
  readonly answer?: ApprovalHandler;
}

/** J7: waits for a decision about a call: durably, or for a handler here. The task's clock stands still meanwhile (B5). */
export function askForApproval(
  steps: StepExecutor,
  callAddress: StepAddress,
  { call: { callId, toolName, input }, reason, answer }: Question,
): ApprovalDecision | Promise<ApprovalDecision> {
  const { runner, cancelScope } = steps;
  const { taskId, worker, facts } = runner;
  const digest = new JsonDigest(input);
  const inputDigest = digest.digest(worker.hash);
  // An answer names the arguments it is for: one that was given for others, before the call was made anew, answers nothing.
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

/** A question of code's own: its record is below an address of its own, as that of a tool's approval is below the call. */
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

/** Of a digest: enough that nobody meets two arguments that share them. */
const digitsNamed = 16;

/** Only an approval is one: what came from outside may be anything. */
function noDecision(said: unknown): ApprovalDecision {
  return { decision: "denied", reason: `${JSON.stringify(said)} is no decision` };
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

/** A handler that throws has not said yes. */
async function handled(
  answer: () => ApprovalDecision | Promise<ApprovalDecision>,
): Promise<ApprovalDecision> {
  try {
    return await answer();
  } catch (error) {
    return { decision: "denied", reason: `the approval handler failed: ${Fault.from(error).message}` };
  }
}
