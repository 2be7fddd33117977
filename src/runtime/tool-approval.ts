import {
  canonicalJson,
  type ApprovalDecision,
  type EventDraft,
  type Hash,
  type StepAddress,
  type ToolCall,
} from "../kernel/index.ts";
import type { ScopeSteps } from "./scope-steps.ts";
import { approvalAddress, approvalWait } from "./wait-name.ts";

/** J7: waits, durably, for a person to decide about a call. The task's clock stands still meanwhile (B5). */
export function askForApproval(
  steps: ScopeSteps,
  callAddress: StepAddress,
  { callId, toolName, input }: ToolCall,
): Promise<ApprovalDecision> {
  const { runner, strand } = steps;
  const { taskId, owner, tree } = runner;
  const approvalId = `${taskId}/${callAddress}`;
  const name = approvalWait(approvalId);
  const digest = (hash: Hash): string => hash(canonicalJson(input));
  const request: EventDraft = {
    type: "approval_request",
    data: {
      approvalId,
      toolName,
      callId,
      input,
      inputDigest: digest(owner.hash),
      reason: `${toolName} asks for it`,
    },
  };
  const step = { address: approvalAddress(callAddress), kind: "approval", name, digest } as const;
  return steps.recorded<ApprovalDecision>(
    step,
    async (open) => {
      const wait = tree.wait(taskId, name);
      try {
        const decision = (await runner.waiting(strand, wait.came, { name })) as unknown as ApprovalDecision;
        open.tell({ type: "approval_decision", data: { approvalId, decision } });
        return decision;
      } catch (error) {
        wait.leave();
        throw error;
      }
    },
    request,
  );
}

/** The task that waits for the decision. */
export function taskOfApproval(approvalId: string): string {
  return approvalId.slice(0, approvalId.indexOf("/"));
}
