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

/**
 * Returns the name of the wait for a signal. The `resolve` message in the mailbox uses the same name, as for every
 * other wait in this file.
 */
export function signalWait(name: string): string {
  return `signal ${name}`;
}

/** Returns the name of the signal for which the wait is. `undefined` for a wait of another kind. */
export function signalOf(wait: string): string | undefined {
  return wait.startsWith(signalWait("")) ? wait.slice(signalWait("").length) : undefined;
}

/** Name of the wait for an update. */
export function updateWait(name: string): string {
  return `update ${name}`;
}

/** Returns the name of the update for which the wait is. `undefined` for a wait of another kind. */
export function updateOf(wait: string): string | undefined {
  return wait.startsWith(updateWait("")) ? wait.slice(updateWait("").length) : undefined;
}

/**
 * Returns the name of the wait for a promise of the task. Its value is kept after a step has received it, so that
 * several steps can wait for it.
 */
export function promiseWait(key: string): string {
  return `promise ${key}`;
}

/** Returns the key of the promise for which the wait is. `undefined` for a wait of another kind. */
export function promiseOf(wait: string): string | undefined {
  return wait.startsWith(promiseWait("")) ? wait.slice(promiseWait("").length) : undefined;
}

/**
 * Returns the name of the wait for a reply. It contains the address of the asking step, so that it is unique in the
 * task and the same on a replay (J2).
 */
export function replyWait(address: StepAddress): string {
  return `reply ${address}`;
}

/**
 * Returns the name of the wait for the end of another run. Unlike other values, this one is kept after a step has
 * received it, so that several steps can wait for it. If the run is resumed and ends again, the later end replaces
 * it.
 */
export function runWait(runId: RunId): string {
  return `run ${runId}`;
}

/** Returns the run for whose end the wait is. `undefined` for a wait of another kind. */
export function runOf(wait: string): RunId | undefined {
  return wait.startsWith(runWait("" as RunId))
    ? (wait.slice(runWait("" as RunId).length) as RunId)
    : undefined;
}

/** Whether the value of the wait is kept after a step has received it. */
export function keepsValue(wait: string): boolean {
  return runOf(wait) !== undefined || promiseOf(wait) !== undefined;
}

/**
 * Name under which the root of a run keeps the tasks of other runs that wait for its end. No step waits under this
 * name.
 */
export const callerWait = "caller";

/** Returns the name of the step that starts another run. */
export function startName(agentId: string): string {
  return `start ${agentId}`;
}

/** Whether the record belongs to a step that starts another run. */
export function startsRun({ kind, name }: Pick<StepRecord, "kind" | "name">): boolean {
  return kind === "send" && name.startsWith(startName(""));
}

/** Returns the name of the wait for the decision on an approval. */
export function approvalWait(approvalId: string): string {
  return `approval ${approvalId}`;
}

/** Name of the step that records the start time of a wait with a timeout. */
export const timeoutName = "timeout";

/** Returns the address of the record with the start time of the wait at `wait`. */
export function timeoutAddress(wait: StepAddress): StepAddress {
  return branchScope(wait, timeoutName) as StepAddress;
}

/** Name of the step that records a failed attempt of `ctx.step`. */
export const attemptName = "attempt";

/**
 * J5: returns the address of the record of a failed attempt of the step. It is also the scope of the steps inside
 * the attempt. `attempt` counts from 1.
 */
export function attemptAddress(step: StepAddress, attempt: number): StepAddress {
  return branchScope(step, `${attemptName}.${attempt}`) as StepAddress;
}

const liveName = "live";

/**
 * Returns the address of the record that an attempt of `ctx.attempt` has started. It is also the scope of the
 * attempt's calls. `attempt` counts from 1.
 */
export function liveAddress(step: StepAddress, attempt: number): StepAddress {
  return branchScope(step, `${liveName}.${attempt}`) as StepAddress;
}

/**
 * Returns the address of the record that an attempt was parked, which means that its open questions remain open
 * after its end. `count` counts from 1.
 */
export function parkedAddress(attempt: StepAddress, count: number): StepAddress {
  return branchScope(attempt, `parked.${count}`) as StepAddress;
}

/**
 * Returns the name under which the log shows that a task has a program which only waits. The program itself knows
 * for what.
 */
export function programWait(program: string): string {
  return `program ${program}`;
}

/** Returns the address of the record of a question that an attempt of `ctx.attempt` asks in the scope of its call. */
export function questionAddress(call: StepAddress): StepAddress {
  return branchScope(call, "question") as StepAddress;
}

/** Name of the branch of `ctx.timeout` that waits for its limit. */
export const limitBranch = "time.limit";

/**
 * Part of stored addresses, so that it must not change. It contains a colon, which the name of a branch cannot
 * contain.
 */
const compensationsMark = "compensations:";
const uncancellableMark = "uncancellable:";

/**
 * Returns the address of the record that the compensations of a task have begun. It is also the scope of their
 * steps. `journal` is the scope of the task's journal.
 */
export function compensationsIn(journal: StepScope): StepAddress {
  return (journal === "" ? compensationsMark : `${journal}/${compensationsMark}`) as StepAddress;
}

/** Whether the step belongs to the compensations of its task. */
export function isCompensating(address: string): boolean {
  return address.includes(compensationsMark);
}

/** Returns the scope of the steps inside the `ctx.uncancellable` at this address. */
export function uncancellableIn(address: StepAddress): StepScope {
  return `${address}/${uncancellableMark}` as StepScope;
}

/** C2: whether the step at this address is protected from a cancel of the task. */
export function isShieldedStep(address: StepAddress): boolean {
  return isCompensating(address) || address.includes(`/${uncancellableMark}`);
}

/**
 * Part of a stored address, so that it must not change. It contains a colon, which the name of a branch cannot
 * contain.
 */
const patchMark = "patched:";

/**
 * J9: returns the address of the record of the result of `ctx.patched(name)`. It has no index, so that it does not
 * move other addresses.
 */
export function patchIn(journal: StepScope, name: string): StepAddress {
  return (journal === "" ? `${patchMark}${name}` : `${journal}/${patchMark}${name}`) as StepAddress;
}

/** Whether the address belongs to a decision of `ctx.patched`. */
export function isPatch(address: string): boolean {
  return address.includes(patchMark);
}

/**
 * J8: returns the scope of a task's journal. Each journal has its own addresses, so that no idempotency key is used
 * twice.
 */
export function journalScope(journal: number): StepScope {
  return journal === 0 ? "" : branchScope(stepAt("", journal - 1), "continued");
}

/** Returns the name of the branch of `ctx.map` for the item with this index, counted from 0. */
export function itemBranch(index: number): string {
  return `item.${index}`;
}

/**
 * Returns the name of the wait before the next attempt of a step. Like the name of a sleep, it starts with `sleep`,
 * because only time ends it.
 */
export function retryWait(step: StepAddress): string {
  return `sleep retry ${step}`;
}

/** Returns the name of the wait under which the input of a queue is stored until the task reads it. */
export function queueWait(queue: InputQueue): string {
  return queue;
}

const inputWaits: ReadonlySet<string> = new Set<InputQueue>(["steer", "follow_up"]);

/** Name of the step that reads the agent's inbox. Its value is a list of messages. */
export const inboxDrain = "inbox";

/**
 * Returns the name of the wait for the end of child tasks. The name only describes the wait: the ends of the tasks
 * settle it, not a `resolve` message.
 */
export function joinWait(taskIds: readonly TaskId[]): string {
  return `join ${taskIds.join(" ")}`;
}

/**
 * Returns the address below which the checks and the approval of a tool call have their records, by round from 0. A
 * new round starts if the tool or the parsed arguments have changed after a check had asked a person.
 */
export function roundAddress(call: StepAddress, round: number): StepAddress {
  return round === 0 ? call : (branchScope(call, `round.${round + 1}`) as StepAddress);
}

const approvalBranch = "approval";
const approvalEnd = `/${approvalBranch}`;

/**
 * J7: returns the address of the approval record of a round of a tool call. It is a branch, so that it differs from
 * the numbered steps of the tool's body.
 */
export function approvalAddress(round: StepAddress): StepAddress {
  return branchScope(round, approvalBranch) as StepAddress;
}

/**
 * J7: returns the address of the record of the checks' decision in a round of a tool call. Only a decision to ask a
 * person is recorded.
 */
export function gateAddress(round: StepAddress): StepAddress {
  return branchScope(round, "gate") as StepAddress;
}

/** Returns the address of the record of the repair of a malformed tool call. */
export function repairAddress(call: StepAddress): StepAddress {
  return branchScope(call, "repair") as StepAddress;
}

/** Whether the step at this address asks a person for approval. */
export function asksPerson(address: StepAddress): boolean {
  return address.endsWith(approvalEnd);
}

/** Part of a stored address, so that it must not change. */
const emittedBranch = "told";

/**
 * E4: returns an address that marks the events before a `parallel` as emitted. The journal contains only its
 * opening and no record, because it is not a step.
 */
export function emittedAddress(parallel: StepAddress): StepAddress {
  return branchScope(parallel, emittedBranch) as StepAddress;
}

/**
 * Part of a stored address, so that it must not change. It contains a colon, which the name of a branch cannot
 * contain.
 */
const earlyMark = "events:";

/**
 * E4: returns an address that marks the first `count` events of a scope as emitted. The journal contains only its
 * opening and no record, because it is not a step.
 */
export function earlyEventsAddress(scope: StepScope, count: number): StepAddress {
  return `${earlyEventsPrefix(scope)}${count}` as StepAddress;
}

/** Returns how many events of a scope are marked as emitted by the opened addresses of a task. */
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

/**
 * Whether the address belongs to a call. `false` for an address that marks emitted events, because no task waits
 * for it.
 */
export function isCall(address: StepAddress): boolean {
  return !address.endsWith(`/${emittedBranch}`) && !address.includes(earlyMark);
}

/**
 * The record of a question that was withdrawn, because the tool or its arguments changed before the call was
 * executed. It is not an `ApprovalDecision`, so that an answer from outside cannot look like it.
 */
export const withdrawn = Object.freeze({ decision: "withdrawn" });

/** Whether the outcome belongs to a withdrawn question. */
export function isWithdrawn(outcome: StepRecord["outcome"]): boolean {
  if (outcome.kind !== "ok") return false;
  return (outcome.value as { readonly decision?: unknown } | null)?.decision === withdrawn.decision;
}

/** A wait whose values a step has taken, with their number. */
export interface TakenWait {
  readonly wait: string;
  readonly count: number;
}

/**
 * W1: returns the wait whose values the step has taken, with their number. Returns `undefined` if the step took
 * none, for example after a timeout.
 */
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

/**
 * Returns the id of the mailbox message that sends a submitted input as steering to a busy run, instead of starting
 * the run `runId`.
 */
export function mailOfSubmission(runId: RunId): string {
  return `submit ${runId}`;
}

/** P1: returns the id of the mailbox message of a signal with an id. */
export function mailOfSignal(runId: RunId, taskId: TaskId, name: string, id: string): string {
  return `signal ${runId} ${taskId} ${JSON.stringify([name, id])}`;
}

/** P1: returns the id of the mailbox message of an input with an id. */
export function mailOfInput(id: string): string {
  return `input ${id}`;
}

/** P1: returns the id of the mailbox message of an update. */
export function mailOfUpdate(runId: RunId, name: string, id: string): string {
  return `update ${runId} ${JSON.stringify([name, id])}`;
}

/**
 * Returns the run that the submission would have started. `undefined` for a message that does not come from a
 * submission.
 */
export function submittedAs(mailId: string): RunId | undefined {
  const [, runId] = /^submit (\S+)/.exec(mailId) ?? [];
  return runId === undefined ? undefined : parseRunId(runId);
}

/** Returns the task id and the address of the tool call's round to which the approval belongs, joined by `/`. */
export function callOfApproval(approvalId: string): string {
  return approvalId.slice(0, approvalId.lastIndexOf("/"));
}

/** Returns the id of the task that waits for the approval. */
export function taskOfApproval(approvalId: string): string {
  return approvalId.slice(0, approvalId.indexOf("/"));
}

/** Part of a stored id, so that it must not change. No address of a step is equal to it. */
const topUpMark = "top-up";

/** B5: returns the id of a task's question for a top-up, after `count` earlier ones. */
export function topUpQuestionId(taskId: string, count: number): string {
  return `${taskId}/${topUpMark}/${count}`;
}

export function isTopUpQuestion(approvalId: string): boolean {
  return approvalId.split("/", 2)[1] === topUpMark;
}

/**
 * The reason for which a wait of each kind waits, by the first word of its name. The wait for a child has none,
 * because the child's own wait gives the reason.
 */
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

/** The waits that end when calls in this run or in others end. The journal does not show whether this has happened. */
const endedByCalls: readonly string[] = ["budget", "cap"];

/**
 * Whether only a message, a time or the end of a task can end the wait. If so, the journal shows whether this has
 * happened.
 */
export function isLastingWait(wait: string): boolean {
  const [kind = ""] = wait.split(" ", 1);
  return kind === "join" || (Object.hasOwn(causes, kind) && !endedByCalls.includes(kind));
}

/** Returns the reasons for which a task waits, from the data of its `task_suspend`. */
export function causesOf({ waitsFor, until }: EventData["task_suspend"]): readonly WaitCause[] {
  const found = waitsFor.flatMap((name) => causes[name.split(" ", 1)[0] ?? ""] ?? []);
  return until === null ? found : [...found, "time"];
}
