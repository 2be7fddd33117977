import { branchScope, type StepAddress, type StepRecord } from "../kernel/index.ts";

/** The names under which tasks wait; `resolve` in the mailbox uses the same. */
export function signalWait(name: string): string {
  return `signal ${name}`;
}

/** The signal a wait is for; `undefined` for a wait of another kind. */
export function signalOf(wait: string): string | undefined {
  return wait.startsWith(signalWait("")) ? wait.slice(signalWait("").length) : undefined;
}

/** An ask waits under its own step, so that a replay asks under the same name and no other ask does (J2). */
export function replyWait(address: StepAddress): string {
  return `reply ${address}`;
}

export function approvalWait(approvalId: string): string {
  return `approval ${approvalId}`;
}

const approvalBranch = "approval";

/** Where the approval of a tool's call has its record (J7): beside the steps of the body, which have numbers. */
export function approvalAddress(call: StepAddress): StepAddress {
  return branchScope(call, approvalBranch) as StepAddress;
}

/** Where the verdict of the gate on a call has its record, when it is to ask (J7). */
export function gateAddress(call: StepAddress): StepAddress {
  return branchScope(call, "gate") as StepAddress;
}

/** Whether the step at this address is a question to a person. */
export function asksPerson(address: StepAddress): boolean {
  return address.endsWith(`/${approvalBranch}`);
}

/** The wait whose first value the step took (W1); a step that waited in vain took none. */
export function resolutionTaken({
  kind,
  name,
  address,
  outcome,
}: Pick<StepRecord, "kind" | "name" | "address" | "outcome">): string | undefined {
  if (outcome.kind === "failed") return undefined;
  if (kind === "approval") return name;
  if (kind !== "wait") return undefined;
  const value = outcome.value as { readonly kind?: string; readonly value?: unknown } | null;
  if (name.startsWith("ask ")) return value?.kind === "timed_out" ? undefined : replyWait(address);
  return name.startsWith("signal ") && value?.value !== undefined ? name : undefined;
}
