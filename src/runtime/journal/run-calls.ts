import {
  fromNanoUsd,
  nothing,
  rootTaskId as root,
  type JsonValue,
  type LedgerCommand,
  type Mail,
  type RunFlow,
  type RunId,
  type TaskId,
  type TaskOutcome,
} from "../../kernel/index.ts";
import type { Addition } from "./run-log.ts";
import type { RunState } from "./run-state.ts";
import { hasCompensated, type RunCharge, type StartedState, type TaskState } from "./task-state.ts";
import { callerWait, runWait } from "./wait-names.ts";

/** A task of another run that receives the end of this run. */
export interface RunCaller {
  readonly runId: RunId;
  readonly taskId: TaskId;
  /** The runs that have started each other up to the caller, which is the first. Present if the caller started this run. */
  readonly above?: readonly RunId[];
  /** L17, L19: the places that the caller, and the runs that wait for it, hold until this run ends. Absent if it is none. */
  readonly holds?: readonly HeldPlace[];
}

/** L17, L19: a place among the runs of a key. */
export interface HeldPlace {
  /** Name of the limit of concurrency. Absent for a key of an object. */
  readonly limit?: string;
  /** Name of the object. Absent for a limit of concurrency. */
  readonly object?: string;
  readonly key: string;
}

/** The place that a run holds from its admission to its end. `undefined` if it has none. */
export function placeOf(flow: RunFlow | undefined): HeldPlace | undefined {
  const { object, concurrency } = flow ?? {};
  if (object !== undefined && object.isShared !== true) return { object: object.name, key: object.key };
  return concurrency && { limit: concurrency.name, key: concurrency.key };
}

/** The places that a run and the runs that wait for it hold. */
export function heldPlaces(state: RunState, flow: RunFlow | undefined): readonly HeldPlace[] {
  const own = placeOf(flow);
  const above = callersOf(state).find((caller) => caller.above !== undefined)?.holds ?? [];
  return own === undefined ? above : [own, ...above];
}

/** How many of the places are of the same key as another one. */
export function countSame(places: readonly HeldPlace[], { limit, object, key }: HeldPlace): number {
  return places.filter((each) => each.limit === limit && each.object === object && each.key === key).length;
}

/** The end of a run, as its callers receive it. */
export interface RunEnd {
  readonly outcome: TaskOutcome;
  /** What the run has spent. Only the run that started it receives this. */
  readonly spent?: RunCharge;
  /** Whether the run cannot be resumed, because it has undone its work. */
  readonly isFinal?: true;
}

/** The tasks of other runs that receive the end of this run. */
function callersOf({ resolutions }: RunState): readonly RunCaller[] {
  return resolutions.all(root, callerWait).map(({ value }) => value as unknown as RunCaller);
}

/** The runs that have started each other up to this run, which is the first. */
export function callChain(state: RunState, runId: RunId): readonly RunId[] {
  const starter = callersOf(state).find(({ above }) => above !== undefined);
  return [runId, ...(starter?.above ?? [])];
}

/** Whether a run was started by another one. */
export function isStartedBy(state: RunState, caller: RunId): boolean {
  return callersOf(state).some(({ runId, above }) => above !== undefined && runId === caller);
}

/** The end of this run as mail to its callers. */
export function endMails(state: RunState, runId: RunId, at: number): readonly Mail[] {
  return callersOf(state).flatMap((caller) => endMail(state, runId, caller, at) ?? []);
}

/** P1: the end of this run as mail to a caller. A repeated mail has no effect. `undefined` if the run has not ended. */
export function endMail(state: RunState, runId: RunId, caller: RunCaller, at: number): Mail | undefined {
  const { outcome, resumed, record } = state.task(root);
  if (outcome === null) return undefined;
  const { taskId, above } = caller;
  const value: RunEnd = {
    outcome,
    ...(above !== undefined && { spent: chargeOf(state) }),
    ...(hasCompensated(state.task(root)) && { isFinal: true as const }),
  };
  return {
    id: `end ${runId} ${resumed} ${taskId}`,
    runId: caller.runId,
    from: record.agentId,
    at,
    body: { type: "resolve", taskId, wait: runWait(runId), value: value as unknown as JsonValue },
  };
}

/** B6: what counts against the budget of a caller. */
function chargeOf({ ledger }: RunState): RunCharge {
  const { spent = nothing, unpriced = 0 } = ledger.accounts[root] ?? {};
  const costUsd = unpriced === 0 ? fromNanoUsd(spent.nanoUsd) : null;
  return { tokens: spent.tokens, costUsd, turns: spent.turns };
}

/** Id of the reservation of the part for a run. */
export function partOf(runId: RunId): string {
  return `part ${runId}`;
}

/**
 * B6: the command that charges the caller with what a run has spent since its last end. The first end returns the
 * unused part of the budget that the caller set aside. A run that was resumed has no such part: what it spends is
 * charged.
 */
export function chargeFor(
  state: RunState,
  taskId: TaskId,
  runId: RunId,
  end: RunEnd,
): LedgerCommand | undefined {
  const started = state.tasks.get(taskId)?.started?.get(runId);
  const { spent } = end;
  if (started?.hasPart !== true || spent === undefined) return undefined;
  const id = partOf(runId);
  if (state.ledger.open.some((each) => each.id === id)) return { type: "settle", id, ...spent };
  const { tokens = 0, costUsd = 0, turns = 0 } = started.spent ?? {};
  return {
    type: "charge",
    taskId,
    tokens: Math.max(0, spent.tokens - tokens),
    costUsd: spent.costUsd === null ? null : Math.max(0, spent.costUsd - (costUsd ?? 0)),
    turns: Math.max(0, spent.turns - turns),
    elsewhere: true,
  };
}

/** The end of a run that the task has received. `undefined` if it has received none. */
export function receivedEnd(state: RunState, taskId: TaskId, runId: RunId): RunEnd | undefined {
  return state.resolutions.first(taskId, runWait(runId))?.value as RunEnd | undefined;
}

/** The runs that a task has started and that are cancelled with it, as far as it has not received their end. */
export function runsToCancel(state: RunState, { record, started }: TaskState): readonly StartedState[] {
  if (started === undefined) return [];
  return [...started.values()].filter(
    ({ runId, onParentEnd, isOfOrigin }) =>
      onParentEnd === "cancel" && !isOfOrigin && receivedEnd(state, record.taskId, runId) === undefined,
  );
}

/** P1: the cancel of a started run. A later cancel, after the task was resumed, has another id. */
export function cancelMail(
  { record, resumed }: TaskState,
  { runId }: StartedState,
  reason: string,
  at: number,
): Mail {
  const { agentId, taskId, supervision } = record;
  const { runId: caller } = supervision;
  return {
    id: `cancel ${caller} ${taskId} ${resumed}`,
    runId,
    from: agentId,
    at,
    body: { type: "cancel", taskId: root, reason, caller },
  };
}

/** The change with which a resumed task resumes a run that it has started, and waits for its next end. */
export function resumeChange({ record, resumed }: TaskState, runId: RunId, at: number): Addition {
  const { agentId, taskId, supervision } = record;
  const id = `resume ${supervision.runId} ${taskId} ${resumed}`;
  return {
    resolves: [{ taskId, wait: runWait(runId), value: null }],
    mail: [{ id, runId, from: agentId, at, body: { type: "resume" } }],
  };
}

/** The reason for which a run was cancelled. `undefined` if it was not cancelled. */
export function cancelReason({ outcome }: RunEnd): string | undefined {
  const reason = outcome.status === "cancelled" ? outcome.failure?.details?.["reason"] : undefined;
  return typeof reason === "string" ? reason : undefined;
}
