import {
  type EventData,
  type InputQueue,
  type RunId,
  type StepAddress,
  type StepRecord,
  type StepScope,
  type TaskId,
  type WaitCause,
  branchScope,
  parseRunId,
  stepAt,
} from "../../kernel/index.ts";

/** Name of the wait for a signal. A `resolve` message in the mailbox uses the same name, as for every wait below. */
export function signalWait(name: string): string {
  return `signal ${name}`;
}

/** Name of the signal that the wait is for. `undefined` for a wait of another kind. */
export function signalOf(wait: string): string | undefined {
  return wait.startsWith(signalWait("")) ? wait.slice(signalWait("").length) : undefined;
}

/** Name of the wait for an update. */
export function updateWait(name: string): string {
  return `update ${name}`;
}

/** Name of the update that the wait is for. `undefined` for a wait of another kind. */
export function updateOf(wait: string): string | undefined {
  return wait.startsWith(updateWait("")) ? wait.slice(updateWait("").length) : undefined;
}

/** Name of the wait for a promise of the task. Its value is kept when a step has received it, so that several steps may wait for it. */
export function promiseWait(key: string): string {
  return `promise ${key}`;
}

/** Key of the promise that the wait is for. `undefined` for a wait of another kind. */
export function promiseOf(wait: string): string | undefined {
  return wait.startsWith(promiseWait("")) ? wait.slice(promiseWait("").length) : undefined;
}

/** Name of the wait for a reply. It contains the address of the asking step, so that it is unique in the task and equal on replay (J2). */
export function replyWait(address: StepAddress): string {
  return `reply ${address}`;
}

/**
 * Name of the wait for the end of another run. Unlike other values, the end is kept when a step has received it, so that
 * several steps may wait for it. A later end of the same run, after it was resumed, replaces it.
 */
export function runWait(runId: RunId): string {
  return `run ${runId}`;
}

/** The run whose end the wait is for. `undefined` for a wait of another kind. */
export function runOf(wait: string): RunId | undefined {
  return wait.startsWith(runWait("" as RunId))
    ? (wait.slice(runWait("" as RunId).length) as RunId)
    : undefined;
}

/** Whether the value stays when a step has received it. */
export function keepsValue(wait: string): boolean {
  return runOf(wait) !== undefined || promiseOf(wait) !== undefined;
}

/** Name under which the root of a run keeps the tasks of other runs that wait for its end. No step waits for it. */
export const callerWait = "caller";

/** Name of the step that starts another run. */
export function startName(agentId: string): string {
  return `start ${agentId}`;
}

/** Whether the record is that of a step that starts another run. */
export function startsRun({ kind, name }: Pick<StepRecord, "kind" | "name">): boolean {
  return kind === "send" && name.startsWith(startName(""));
}

/** Name of the wait for the decision on an approval. */
export function approvalWait(approvalId: string): string {
  return `approval ${approvalId}`;
}

/** Name of the step that records when a wait with a timeout began. */
export const timeoutName = "timeout";

/** Address of the record of when the wait at `wait` began. */
export function timeoutAddress(wait: StepAddress): StepAddress {
  return branchScope(wait, timeoutName) as StepAddress;
}

/** Name of the step that records a failed attempt of `ctx.step`. */
export const attemptName = "attempt";

/** J5: address of the record of a failed attempt of the step, and scope of the steps inside the attempt. `attempt` counts from 1. */
export function attemptAddress(step: StepAddress, attempt: number): StepAddress {
  return branchScope(step, `${attemptName}.${attempt}`) as StepAddress;
}

const liveName = "live";

/** Address of the record that an attempt of `ctx.attempt` has started, and scope of its calls. `attempt` counts from 1. */
export function liveAddress(step: StepAddress, attempt: number): StepAddress {
  return branchScope(step, `${liveName}.${attempt}`) as StepAddress;
}

/**
 * Address of the record that an attempt was parked: its questions of that time stay open when it ends. `count` counts from 1.
 */
export function parkedAddress(attempt: StepAddress, count: number): StepAddress {
  return branchScope(attempt, `parked.${count}`) as StepAddress;
}

/** Name under which the log shows that a task has a program which only waits. Only its process knows for what. */
export function programWait(program: string): string {
  return `program ${program}`;
}

/** Address of the record of a question that an attempt of `ctx.attempt` asks in the scope of its call. */
export function questionAddress(call: StepAddress): StepAddress {
  return branchScope(call, "question") as StepAddress;
}

/** Name of the branch of `ctx.timeout` that waits for its limit. */
export const limitBranch = "time.limit";

/** Parts of stored addresses, so they must not change. A colon cannot be part of the name of a branch. */
const compensationsMark = "compensations:";
const uncancellableMark = "uncancellable:";

/**
 * Address of the record that the compensations of a task have begun, and scope of their steps. `journal` is the scope of the
 * task's journal.
 */
export function compensationsIn(journal: StepScope): StepAddress {
  return (journal === "" ? compensationsMark : `${journal}/${compensationsMark}`) as StepAddress;
}

/** Whether the step belongs to the compensations of its task. */
export function isCompensating(address: string): boolean {
  return address.includes(compensationsMark);
}

/** Scope of the steps inside the `ctx.uncancellable` at this address. */
export function uncancellableIn(address: StepAddress): StepScope {
  return `${address}/${uncancellableMark}` as StepScope;
}

/** C2: whether a cancel of the task does not reach the step at this address. */
export function isShieldedStep(address: StepAddress): boolean {
  return isCompensating(address) || address.includes(`/${uncancellableMark}`);
}

/** Part of a stored address, so it must not change. A colon cannot be part of the name of a branch. */
const patchMark = "patched:";

/** J9: address of the record of what `ctx.patched(name)` returned. It has no index, so that it moves no other address. */
export function patchIn(journal: StepScope, name: string): StepAddress {
  return (journal === "" ? `${patchMark}${name}` : `${journal}/${patchMark}${name}`) as StepAddress;
}

/** Whether the address is that of a decision of `ctx.patched`. */
export function isPatch(address: string): boolean {
  return address.includes(patchMark);
}

/** J8: each journal of a task has its own addresses, so that no idempotency key is used twice. */
export function journalScope(journal: number): StepScope {
  return journal === 0 ? "" : branchScope(stepAt("", journal - 1), "continued");
}

/** Name of the branch of `ctx.map` for the item with this index, from 0. */
export function itemBranch(index: number): string {
  return `item.${index}`;
}

/** Name of the wait before the next attempt of a step. Like that of a sleep, it starts with `sleep`, because only time ends it. */
export function retryWait(step: StepAddress): string {
  return `sleep retry ${step}`;
}

/** Name of the wait under which the input of a queue is stored until a drain takes it. */
export function queueWait(queue: InputQueue): string {
  return queue;
}

const inputWaits: ReadonlySet<string> = new Set<InputQueue>(["steer", "follow_up"]);

/** Step name of a drain of the agent's inbox. Its value is a list of messages. */
export const inboxDrain = "inbox";

/** Name of the wait for the end of child tasks. It only describes the wait: the ends of the tasks settle it, not a `resolve` message. */
export function joinWait(taskIds: readonly TaskId[]): string {
  return `join ${taskIds.join(" ")}`;
}

/**
 * Address below which the gate and the approval of a tool call have their records, by round from 0. A new round starts if the tool or the
 * parsed arguments changed after the gate had asked.
 */
export function roundAddress(call: StepAddress, round: number): StepAddress {
  return round === 0 ? call : (branchScope(call, `round.${round + 1}`) as StepAddress);
}

const approvalBranch = "approval";
const approvalEnd = `/${approvalBranch}`;

/** J7: address of the approval record of a round of a tool call. It is a branch, so it cannot collide with the numbered steps of the tool's body. */
export function approvalAddress(round: StepAddress): StepAddress {
  return branchScope(round, approvalBranch) as StepAddress;
}

/** J7: address of the record of the gate's decision in a round of a tool call. Only a decision to ask a person is recorded. */
export function gateAddress(round: StepAddress): StepAddress {
  return branchScope(round, "gate") as StepAddress;
}

/** Address of the record of the repair of a malformed tool call. */
export function repairAddress(call: StepAddress): StepAddress {
  return branchScope(call, "repair") as StepAddress;
}

/** The step at this address asks a person for approval. */
export function asksPerson(address: StepAddress): boolean {
  return address.endsWith(approvalEnd);
}

/** Part of a stored address, so it must not change. */
const emittedBranch = "told";

/** E4: address that marks the events before a `parallel` as emitted. It is only ever begun: there is no step to record. */
export function emittedAddress(parallel: StepAddress): StepAddress {
  return branchScope(parallel, emittedBranch) as StepAddress;
}

/** Part of a stored address, so it must not change. A colon cannot be part of the name of a branch. */
const earlyMark = "events:";

/** E4: address that marks the first `count` events of a scope as emitted. It is only ever begun: there is no step to record. */
export function earlyEventsAddress(scope: StepScope, count: number): StepAddress {
  return `${earlyEventsPrefix(scope)}${count}` as StepAddress;
}

/** Returns how many events of a scope are marked as emitted by the openings of a task. */
export function earlyEventsIn(opened: Iterable<StepAddress>, scope: StepScope): number {
  const prefix = earlyEventsPrefix(scope);
  let most = 0;
  for (const address of opened)
    if (address.startsWith(prefix)) most = Math.max(most, Number(address.slice(prefix.length)));
  return most;
}

function earlyEventsPrefix(scope: StepScope): string {
  return scope === "" ? earlyMark : `${scope}/${earlyMark}`;
}

/** `false` for an address that marks emitted events, which no task waits for. */
export function isCall(address: StepAddress): boolean {
  return !address.endsWith(`/${emittedBranch}`) && !address.includes(earlyMark);
}

/**
 * The record of a question that was withdrawn, because the tool or its arguments changed before the call was executed. It is not an
 * `ApprovalDecision`, so an answer from outside cannot be mistaken for it.
 */
export const withdrawn = Object.freeze({ decision: "withdrawn" });

/** Whether the outcome is that of a withdrawn question. */
export function isWithdrawn(outcome: StepRecord["outcome"]): boolean {
  if (outcome.kind !== "ok") return false;
  return (outcome.value as { readonly decision?: unknown } | null)?.decision === withdrawn.decision;
}

/** A wait whose values a step has taken, and how many. */
export interface TakenWait {
  readonly wait: string;
  readonly count: number;
}

/** W1: the wait whose values the step has taken, and how many. Returns `undefined` if the step took none, for example after a timeout. */
export function resolutionsTaken({
  kind,
  name,
  address,
  outcome,
}: Pick<StepRecord, "kind" | "name" | "address" | "outcome">): TakenWait | undefined {
  // The value of a signal that the code has refused is used up.
  if (outcome.kind === "failed")
    return kind === "wait" && signalOf(name) !== undefined ? { wait: name, count: 1 } : undefined;
  if (kind === "approval") return isWithdrawn(outcome) ? undefined : { wait: name, count: 1 };
  if (kind === "drain") {
    const { length: count } = outcome.value as readonly unknown[];
    return count === 0 || name === inboxDrain ? undefined : { wait: name, count };
  }
  if (kind !== "wait") return undefined;
  const value = outcome.value as { readonly kind?: string; readonly value?: unknown } | null;
  if (name.startsWith("ask ")) {
    return value?.kind === "timed_out" ? undefined : { wait: replyWait(address), count: 1 };
  }
  const isMessage = signalOf(name) !== undefined || updateOf(name) !== undefined;
  return isMessage && value?.value !== undefined ? { wait: name, count: 1 } : undefined;
}

/** Whether other steps may wait for the same values, because the name does not contain the address of the step. */
export function isShared({ wait }: TakenWait): boolean {
  return signalOf(wait) !== undefined || updateOf(wait) !== undefined || inputWaits.has(wait);
}

/** Id of the mailbox message that steers a busy run with a submitted input, instead of starting the run `runId`. */
export function mailOfSubmission(runId: RunId): string {
  return `submit ${runId}`;
}

/** P1: id of the mailbox message of a signal to which its sender gave an id. */
export function mailOfSignal(runId: RunId, taskId: TaskId, name: string, id: string): string {
  return `signal ${runId} ${taskId} ${JSON.stringify([name, id])}`;
}

/** P1: id of the mailbox message of an input that its caller has named. */
export function mailOfInput(id: string): string {
  return `input ${id}`;
}

/** P1: id of the mailbox message of an update. */
export function mailOfUpdate(runId: RunId, name: string, id: string): string {
  return `update ${runId} ${JSON.stringify([name, id])}`;
}

/** The run that the submission would have started. `undefined` for a message that does not come from a submission. */
export function submittedAs(mailId: string): RunId | undefined {
  const [, runId] = /^submit (\S+)/.exec(mailId) ?? [];
  return runId === undefined ? undefined : parseRunId(runId);
}

/** Task id and address of the round of the tool call that the approval is for, joined by `/`. */
export function callOfApproval(approvalId: string): string {
  return approvalId.slice(0, approvalId.lastIndexOf("/"));
}

/** Id of the task that waits for the approval. */
export function taskOfApproval(approvalId: string): string {
  return approvalId.slice(0, approvalId.indexOf("/"));
}

/** Part of a stored id, so it must not change. No address of a step is equal to it. */
const topUpMark = "top-up";

/** B5: id of the question for a top-up that a task asks after `count` others. */
export function topUpQuestionId(taskId: string, count: number): string {
  return `${taskId}/${topUpMark}/${count}`;
}

export function isTopUpQuestion(approvalId: string): boolean {
  return approvalId.split("/", 2)[1] === topUpMark;
}

/** What a wait of each kind waits for, by the first word of its name. The wait for a child has no cause, because the child has its own. */
const causes: Readonly<Record<string, WaitCause>> = {
  approval: "person",
  signal: "signal",
  update: "signal",
  promise: "signal",
  sleep: "time",
  reply: "message",
  run: "run",
  budget: "budget",
  cap: "cap",
};

/** The waits that calls in this run or in others end. The journal does not show whether they have. */
const endedByCalls: readonly string[] = ["budget", "cap"];

/** Whether only a message, a time or the end of a task ends the wait. The journal shows whether that has come. */
export function isLastingWait(wait: string): boolean {
  const [kind = ""] = wait.split(" ", 1);
  return kind === "join" || (Object.hasOwn(causes, kind) && !endedByCalls.includes(kind));
}

/** Returns what a task waits for, from the data of its `task_suspend`. */
export function causesOf({ waitsFor, until }: EventData["task_suspend"]): readonly WaitCause[] {
  const found = waitsFor.flatMap((name) => causes[name.split(" ", 1)[0] ?? ""] ?? []);
  return until === null ? found : [...found, "time"];
}
