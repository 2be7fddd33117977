import {
  type InputQueue,
  type RunId,
  type StepAddress,
  type StepRecord,
  type TaskId,
  branchScope,
  parseRunId,
} from "../../kernel/index.ts";

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

/** What waits in a queue is kept like what came for a wait of this name; drains take it. */
export function queueWait(queue: InputQueue): string {
  return queue;
}

/** The name of drains of an agent's inbox, which are of messages. */
export const inboxDrain = "inbox";

/** Nobody resolves it: the tasks' own ends do. */
export function joinWait(taskIds: readonly TaskId[]): string {
  return `join ${taskIds.join(" ")}`;
}

const approvalBranch = "approval";
const approvalEnd = `/${approvalBranch}`;

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
  return address.endsWith(approvalEnd);
}

const toldBranch = "told";

/** Where it is noted that what came before a `parallel` was told (E4). Never recorded: nothing is waited for. */
export function toldAddress(parallel: StepAddress): StepAddress {
  return branchScope(parallel, toldBranch) as StepAddress;
}

/** Whether a step that was begun at this address is one that somebody waits for. */
export function isCall(address: StepAddress): boolean {
  return !address.endsWith(`/${toldBranch}`);
}

/** The wait whose first values the step took (W1), and how many; a step that waited in vain took none. */
export function resolutionsTaken({
  kind,
  name,
  address,
  outcome,
}: Pick<StepRecord, "kind" | "name" | "address" | "outcome">):
  | { readonly wait: string; readonly count: number }
  | undefined {
  if (outcome.kind === "failed") return undefined;
  if (kind === "approval") return { wait: name, count: 1 };
  if (kind === "drain") {
    const { length: count } = outcome.value as readonly unknown[];
    return count === 0 || name === inboxDrain ? undefined : { wait: name, count };
  }
  if (kind !== "wait") return undefined;
  const value = outcome.value as { readonly kind?: string; readonly value?: unknown } | null;
  if (name.startsWith("ask ")) {
    return value?.kind === "timed_out" ? undefined : { wait: replyWait(address), count: 1 };
  }
  return name.startsWith("signal ") && value?.value !== undefined ? { wait: name, count: 1 } : undefined;
}

/** The id of the mail that says an input to a run instead of starting the run `runId` with it. */
export function mailOfSubmission(runId: RunId): string {
  return `submit ${runId}`;
}

/** The run that would have been started; `undefined` for a mail that is no submission. */
export function submittedAs(mailId: string): RunId | undefined {
  const [, runId] = /^submit (\S+)/.exec(mailId) ?? [];
  return runId === undefined ? undefined : parseRunId(runId);
}

/** Task and address of the call that is asked about. */
export function callOfApproval(approvalId: string): string {
  return approvalId.slice(0, approvalId.lastIndexOf("/"));
}

/** The task that waits for the decision. */
export function taskOfApproval(approvalId: string): string {
  return approvalId.slice(0, approvalId.indexOf("/"));
}
