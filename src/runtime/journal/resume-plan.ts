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

/**
 * Returns why an ended task of a workflow cannot be resumed, as the end of a sentence. `undefined` if it can be
 * resumed.
 */
export function whyFinal(task: Pick<TaskState, "record" | "journal" | "steps">): string | undefined {
  if (hasCompensated(task)) return "its compensations have undone its work; start another run";
  if (task.record.byName === undefined) return undefined;
  return "it ended before a worker accepted its input; start another run with an input that the workflow accepts";
}

/** Reason of the cancel when a parent ends and its children are cancelled. */
export const parentEnded = "its parent has ended";

/** Reason of the cancel when the children of an abandoned branch or of an abandoned tool body are cancelled. */
export const branchAbandoned = "the code that spawned it was abandoned";

/** J5: an ended task to resume, and the records that become void before it continues. */
export interface ResumedTask {
  readonly taskId: TaskId;
  readonly voids: readonly StepAddress[];
  /** The runs that the task has started and that are resumed with the task. */
  readonly runs: readonly RunId[];
}

/**
 * J5: returns which tasks of an ended run are resumed with the run. These are the root, if it did not complete, and
 * for each resumed task the children whose failure ended it, the children that were cancelled because it ended, and
 * the children of abandoned branches that run again. A child whose failure the parent handled is not resumed,
 * because later steps depend on this outcome. A task is not resumed if retention has erased its history, or if its
 * compensations have begun.
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

/**
 * L19: returns the addresses of the steps that called objects. Such a call cannot be resumed, so that the caller
 * calls again.
 */
function callsToRepeat({ started }: TaskState, runs: readonly RunId[]): readonly StepAddress[] {
  return runs.flatMap((runId) => {
    const run = started?.get(runId);
    return run?.isFinal === true ? [run.startedBy] : [];
  });
}

/**
 * Returns the records below void steps that become void with them: the attempts of a step, which starts again with
 * its first attempt, and the start time of `ctx.timeout`.
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

/**
 * Whether the task cannot continue, because retention erased its records when the run ended, or because its work
 * was undone.
 */
function isFinal(task: TaskState): boolean {
  return task.record.supervision.retention === HistoryRetention.NONE || whyFinal(task) !== undefined;
}

/**
 * Returns the children that were cancelled because this task ended or because a branch of it was abandoned that
 * runs again. Also returns children that the deadline stopped together with this task, before it received their
 * end.
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

/**
 * Returns the runs that were cancelled because this task ended, or because a branch of it was abandoned that runs
 * again.
 */
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

/** Returns a function that says whether a step is in an abandoned branch that does not run again. */
function givenUp(task: TaskState, voids: readonly StepAddress[]): (address: StepAddress) => boolean {
  const given = [...task.steps.values()]
    .flatMap((step) => abandonmentOf(step) ?? [])
    .filter(({ step }) => !runsAgain(task, step, voids));
  return (address) => given.some((each) => isInside(address, each));
}

function isAtDeadline({ outcome }: TaskState): boolean {
  return outcome !== null && outcomeStatus(outcome) === "deadline_exceeded";
}

/** Returns the tasks whose end a recorded join of the task returned. */
function joinedIn({ steps }: TaskState): ReadonlySet<string> {
  return new Set([...steps.values()].filter(isJoin).flatMap(({ name }) => name.split(" ")));
}

/** Whether the step received the outcome of a started run that did not complete. */
function isFailedRun({ kind, name, outcome }: StepRecord): boolean {
  if (kind !== "wait" || outcome.kind !== "ok" || runOf(name) === undefined) return false;
  return (outcome.value as { readonly status?: string } | null)?.status !== "completed";
}

function isJoin({ kind, name, outcome }: StepRecord): boolean {
  return kind === "wait" && outcome.kind === "ok" && /^(join|ask) /.test(name);
}

/**
 * Returns the address of the failed record, and those of the records inside the step that contain the same fault
 * because it passed through them. A call of `ctx.any` or `ctx.map` has the faults of several branches. A call of
 * `ctx.map` inside the step has succeeded, and contains the fault as that of an item: it is the same fault if
 * nothing follows the call in its branch.
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

/** Returns the faults of the branches of a call of `ctx.any` or `ctx.map`. */
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
 * Whether the address is the last one: no record follows it in its scope or in a scope around it, and no step that
 * contains it has succeeded. A void call of `ctx.map` has succeeded only for its fulfilled items.
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

/** Whether the branch is an item without a value, of a void call of `ctx.map`. */
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
 * W1: returns the records that become void because abandoned branches run again. When a branch is abandoned, the
 * values that it had received, such as signals, become available to other waits. If no other code has received such
 * a value, the branch keeps its record. Otherwise the records of the branch from that wait on are void too, so that
 * the branch waits again.
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

/** Returns the addresses of a wait and of the steps after it, in its branch of the step. */
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
