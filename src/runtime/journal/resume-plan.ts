import {
  canonicalJson,
  outcomeStatus,
  rootTaskId,
  HistoryRetention,
  type Failure,
  type StepAddress,
  type RunId,
  type StepRecord,
  type TaskId,
} from "../../kernel/index.ts";
import { abandonmentOf, isInside } from "./branch-values.ts";
import type { RunState } from "./run-state.ts";
import { cancelReason, receivedEnd } from "./run-calls.ts";
import { hasCompensated, type TaskState } from "./task-state.ts";
import { attemptAddress, attemptName, itemBranch, limitBranch, runOf } from "./wait-names.ts";

/** Why an ended task of a workflow cannot be resumed, as the end of a sentence. `undefined` if it can. */
export function whyFinal(task: Pick<TaskState, "record" | "journal" | "steps">): string | undefined {
  if (hasCompensated(task)) return "its compensations have undone its work; start another run";
  if (task.record.byName === undefined) return undefined;
  return "it ended before a worker accepted its input; start another run with an input that the workflow accepts";
}

/** Reason with which the end of a parent cancels its children. */
export const parentEnded = "its parent has ended";

/** Reason with which an abandoned branch, or the abandoned body of a tool, cancels the children that it has spawned. */
export const branchAbandoned = "the code that spawned it was abandoned";

/** J5: an ended task to resume, and the records to void before it continues. */
export interface ResumedTask {
  readonly taskId: TaskId;
  readonly voids: readonly StepAddress[];
  /** The runs that the task has started and that are resumed with it. */
  readonly runs: readonly RunId[];
}

/**
 * J5: which tasks of an ended run are resumed with it. The root, if it did not complete; of each resumed task, the children whose
 * failure ended it, the children that were cancelled because it ended, and those of abandoned branches that run again. A child whose
 * failure the parent handled is not resumed: later steps depend on that outcome. A task whose history retention has erased, or that has begun
 * to undo its work, is not resumed either.
 */
export function planResume(state: RunState): readonly ResumedTask[] {
  const root = state.task(rootTaskId);
  if (root.outcome === null || root.outcome.status === "completed" || isFinal(root)) return [];
  const plan: ResumedTask[] = [];
  const reached = new Set<TaskState>([root]);
  for (const task of reached) {
    const endedOn = task.endedOn.flatMap((address) => sameFailure(task, address));
    const isLast = ({ address }: StepRecord): boolean => isTip(task, address, endedOn);
    const joins = [...task.steps.values()].filter((step) => isJoin(step) && isLast(step));
    const failed = (name: string): TaskState[] =>
      name
        .split(" ")
        .flatMap((part) => state.tasks.get(part as TaskId) ?? [])
        .filter(({ outcome }) => outcome?.status === "failed" || outcome?.status === "cancelled")
        .filter((child) => !isFinal(child));
    const stale = joins.filter(({ name }) => failed(name).length > 0);
    for (const { name } of stale) for (const child of failed(name)) reached.add(child);
    const staleRuns = [...task.steps.values()].filter((step) => isFailedRun(step) && isLast(step));
    const voided = [...endedOn, ...stale.map(addressOf), ...staleRuns.map(addressOf)];
    const failedRuns = staleRuns.flatMap(({ name }) => runOf(name) ?? []);
    const voids = [
      ...voided,
      ...callsToRepeat(task, [...failedRuns, ...runsCancelledWith(state, task, voided)]),
    ];
    for (const child of cancelledWith(state, task, voids)) reached.add(child);
    const again = [...repeatedBranches(task, voids), ...startedAnew(task, voids)];
    const runs = new Set([...failedRuns, ...runsCancelledWith(state, task, voids)]);
    // The end of a run that has undone its work stays: the code receives it again.
    const resumed = [...runs].filter(
      (runId) =>
        task.started?.get(runId)?.isFinal !== true &&
        receivedEnd(state, task.record.taskId, runId)?.isFinal !== true,
    );
    plan.push({ taskId: task.record.taskId, voids: [...voids, ...again], runs: resumed });
  }
  return plan;
}

/** L19: the addresses of the steps that called objects. Such a call cannot be resumed, so that the caller calls again. */
function callsToRepeat({ started }: TaskState, runs: readonly RunId[]): readonly StepAddress[] {
  return runs.flatMap((runId) => {
    const run = started?.get(runId);
    return run?.isFinal === true ? [run.startedBy] : [];
  });
}

/**
 * The records below voided steps that are voided with them: the attempts of a step, which starts with its first attempt
 * again, and the limit of `ctx.timeout`, which starts anew.
 */
function startedAnew({ steps }: TaskState, voids: readonly StepAddress[]): readonly StepAddress[] {
  const prefixes = voids.flatMap((address) => {
    if (steps.has(attemptAddress(address, 1))) return [`${address}/${attemptName}.`];
    return steps.get(address)?.kind === "race" ? [`${address}/${limitBranch}/`] : [];
  });
  if (prefixes.length === 0) return [];
  return [...steps.keys()].filter(
    (address) => prefixes.some((prefix) => address.startsWith(prefix)) && !voids.includes(address),
  );
}

/** Whether the task cannot continue: retention erased its records when the run ended, or its work was undone. */
function isFinal(task: TaskState): boolean {
  return task.record.supervision.retention === HistoryRetention.NONE || whyFinal(task) !== undefined;
}

/**
 * Children that were cancelled because this task ended, or because a branch of it was abandoned that runs again, and those that
 * the deadline stopped together with this task, before it received their end.
 */
function cancelledWith(
  state: RunState,
  task: TaskState,
  voids: readonly StepAddress[],
): readonly TaskState[] {
  const joined = isAtDeadline(task) ? joinedIn(task) : undefined;
  const children = [...state.tasks.values()].filter(
    (each) =>
      each.record.parentId === task.record.taskId &&
      !isFinal(each) &&
      each.outcome?.status === "cancelled" &&
      (each.cancelled?.reason === parentEnded ||
        each.cancelled?.reason === branchAbandoned ||
        (joined !== undefined && isAtDeadline(each) && !joined.has(each.record.taskId))),
  );
  if (children.length === 0) return children;
  const isGivenUp = givenUp(task, voids);
  return children.filter(({ spawnedBy }) => spawnedBy === undefined || !isGivenUp(spawnedBy));
}

/** Runs that were cancelled because this task ended, or because a branch of it was abandoned that runs again. */
function runsCancelledWith(
  state: RunState,
  task: TaskState,
  voids: readonly StepAddress[],
): readonly RunId[] {
  const { started, record } = task;
  if (started === undefined) return [];
  const isGivenUp = givenUp(task, voids);
  return [...started.values()].flatMap(({ runId, startedBy }) => {
    const end = receivedEnd(state, record.taskId, runId);
    const reason = end && cancelReason(end);
    const isOurs = reason === parentEnded || reason === branchAbandoned;
    return isOurs && !isGivenUp(startedBy) ? [runId] : [];
  });
}

/** Returns which steps are in abandoned branches that do not run again. */
function givenUp(task: TaskState, voids: readonly StepAddress[]): (address: StepAddress) => boolean {
  const given = [...task.steps.values()]
    .flatMap((step) => abandonmentOf(step) ?? [])
    .filter(({ step }) => !runsAgain(task, step, voids));
  return (address) => given.some((each) => isInside(address, each));
}

function isAtDeadline({ outcome }: TaskState): boolean {
  return outcome !== null && outcomeStatus(outcome) === "deadline_exceeded";
}

/** The tasks whose end a recorded join of the task returned. */
function joinedIn({ steps }: TaskState): ReadonlySet<string> {
  return new Set([...steps.values()].filter(isJoin).flatMap(({ name }) => name.split(" ")));
}

/** Whether the step received the end of a started run that did not complete. */
function isFailedRun({ kind, name, outcome }: StepRecord): boolean {
  if (kind !== "wait" || outcome.kind !== "ok" || runOf(name) === undefined) return false;
  return (outcome.value as { readonly status?: string } | null)?.status !== "completed";
}

function isJoin({ kind, name, outcome }: StepRecord): boolean {
  return kind === "wait" && outcome.kind === "ok" && /^(join|ask) /.test(name);
}

/**
 * Addresses of the failed record and of the records inside the step that hold the same fault, because the fault passed
 * through them. A call of `ctx.any` or `ctx.map` has the faults of several branches. A call of `ctx.map` inside has succeeded,
 * and holds the fault as that of an item: it is the same one if nothing followed the call in its branch.
 */
function sameFailure(task: TaskState, address: StepAddress): readonly StepAddress[] {
  const record = task.steps.get(address);
  const failure = failureText(record);
  const inBranches = failedBranches(record);
  if (failure === undefined && inBranches.length === 0) return [];
  const isSame = (step: StepRecord): boolean =>
    step.outcome.kind === "failed" &&
    (failureText(step) === failure || isAmong(inBranches, step.outcome.failure));
  const inside = [...task.steps.values()].filter((step) => step.address.startsWith(`${address}/`));
  const found = [address, ...inside.filter(isSame).map(addressOf)];
  const faults = record?.outcome.kind === "failed" ? [...inBranches, record.outcome.failure] : inBranches;
  const maps = inside.filter(
    (step) => step.outcome.kind === "ok" && failedBranches(step).some((each) => isAmong(faults, each)),
  );
  // The outer call first: a branch of it that was rejected is no success around the inner call.
  for (const { address: inner } of maps.toSorted((one, other) => one.address.length - other.address.length))
    if (isTip(task, inner, found)) found.push(inner);
  return found;
}

type Fallen = Pick<Failure, "code" | "message">;

function isAmong(faults: readonly Fallen[], { code, message }: Fallen): boolean {
  return faults.some((each) => each.code === code && each.message === message);
}

/** The faults of the branches of a call of `ctx.any` or `ctx.map`. */
function failedBranches(record: StepRecord | undefined): readonly Fallen[] {
  if (record?.kind === "race" && record.outcome.kind === "failed")
    return (record.outcome.failure.details?.["branches"] ?? []) as unknown as readonly Failure[];
  if (record?.kind !== "step" || record.outcome.kind !== "ok" || !Array.isArray(record.outcome.value))
    return [];
  return (record.outcome.value as readonly { readonly failure?: Failure }[]).flatMap(
    (item) => item?.failure ?? [],
  );
}

function failureText(step: StepRecord | undefined): string | undefined {
  if (step?.outcome.kind !== "failed") return undefined;
  const { code, message, details = null } = step.outcome.failure;
  return canonicalJson({ code, message, details });
}

/**
 * No record follows the address in its scope or in a scope around it, and no step that contains the address has succeeded. A call of
 * `ctx.map` that is voided has succeeded only for its fulfilled items.
 */
function isTip({ steps }: TaskState, address: StepAddress, voids: readonly StepAddress[] = none): boolean {
  const parts = address.split("/");
  for (let length = parts.length; length > 0; length--) {
    const index = Number(parts[length - 1]);
    if (!Number.isSafeInteger(index)) continue;
    const own = steps.get(parts.slice(0, length).join("/") as StepAddress);
    const isAround = length < parts.length && own !== undefined && own.kind !== "llm";
    if (isAround && own.outcome.kind === "ok" && !isRejectedItem(own, parts[length], voids)) return false;
    const around = parts.slice(0, length - 1);
    // J2: the tool calls of one turn run concurrently, so a later index does not mean a later step.
    const isTool = own?.kind === "tool" || steps.get(around.join("/") as StepAddress)?.kind === "llm";
    if (isTool) continue;
    const next = [...around, index + 1].join("/");
    for (const each of steps.keys()) if (each === next || each.startsWith(`${next}/`)) return false;
  }
  return true;
}

const none: readonly never[] = [];

/** Whether the branch is an item without a value of a voided call of `ctx.map`. */
function isRejectedItem(
  { address, outcome }: StepRecord,
  branch: string | undefined,
  voids: readonly StepAddress[],
): boolean {
  if (!voids.includes(address) || outcome.kind !== "ok" || !Array.isArray(outcome.value)) return false;
  const items = outcome.value as readonly ({ readonly failure?: Failure } | null)[];
  return items.some((item, index) => item?.failure !== undefined && itemBranch(index) === branch);
}

function addressOf({ address }: StepRecord): StepAddress {
  return address;
}

/**
 * W1: the records to void because abandoned branches run again. When a branch is abandoned, the values that it had received,
 * such as signals, become available to other waits. If no other code has received such a value since, the branch keeps its
 * record. Otherwise the records of the branch from that wait on are void as well, so that the branch waits again.
 */
function repeatedBranches(task: TaskState, voids: readonly StepAddress[]): readonly StepAddress[] {
  const { steps, branchValues } = task;
  return [...steps.values()].flatMap((record) => {
    const abandoned = record.kind === "abandon" ? abandonmentOf(record) : undefined;
    if (abandoned === undefined || !runsAgain(task, abandoned.step, voids)) return [];
    const lost = branchValues?.takenSince(record.address) ?? [];
    return [record.address, ...lost.flatMap((wait) => fromWaitOn(steps.keys(), abandoned.step, wait))];
  });
}

/** Whether a step that abandoned branches runs again. A `parallel` has no record and runs again if the task ended in it. */
function runsAgain(task: TaskState, step: StepAddress, voids: readonly StepAddress[]): boolean {
  if (voids.includes(step)) return true;
  if (task.steps.has(step)) return false;
  return isTip(task, step) || voids.some((address) => address.startsWith(`${step}/`));
}

/** The addresses from a wait on, in its branch of the step. */
function fromWaitOn(
  addresses: Iterable<StepAddress>,
  step: StepAddress,
  wait: StepAddress,
): readonly StepAddress[] {
  const [, branch = ""] = /^([A-Za-z_][^/]*\/)?/.exec(wait.slice(step.length + 1)) ?? [];
  const scope = `${step}/${branch}`;
  const indexIn = (address: StepAddress): number => Number.parseInt(address.slice(scope.length), 10);
  const first = indexIn(wait);
  return [...addresses].filter((address) => address.startsWith(scope) && indexIn(address) >= first);
}
