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

/** A task of another run that receives the outcome of this run. */
export interface RunCaller {
  readonly runId: RunId;
  readonly taskId: TaskId;
  /**
   * The chain of runs of which each has started the next, up to the caller, which is the first entry. Present if
   * the caller started this run.
   */
  readonly above?: readonly RunId[];
  /**
   * L17, L19: the places that the caller, and the runs that wait for it, hold until this run ends. Absent if they
   * hold none.
   */
  readonly holds?: readonly HeldPlace[];
}

/** L17, L19: a place among the runs of a key that are allowed to run. */
export interface HeldPlace {
  /** Name of the limit of concurrency. Absent for a key of an object. */
  readonly limit?: string;
  /** Name of the object. Absent for a limit of concurrency. */
  readonly object?: string;
  readonly key: string;
}

/** Returns the place that a run holds from its admission to its end. `undefined` if it holds none. */
export function placeOf(flow: RunFlow | undefined): HeldPlace | undefined {
  const { object, concurrency } = flow ?? {};
  if (object !== undefined && object.isShared !== true) return { object: object.name, key: object.key };
  return concurrency && { limit: concurrency.name, key: concurrency.key };
}

/** Returns the places of a run and of the runs that wait for it. */
export function heldPlaces(state: RunState, flow: RunFlow | undefined): readonly HeldPlace[] {
  const own = placeOf(flow);
  const above = callersOf(state).find((caller) => caller.above !== undefined)?.holds ?? [];
  return own === undefined ? above : [own, ...above];
}

/** Returns how many of the places have the same key as another one. */
export function countSame(places: readonly HeldPlace[], { limit, object, key }: HeldPlace): number {
  return places.filter((each) => each.limit === limit && each.object === object && each.key === key).length;
}

/** The outcome of a run, as its callers receive it. */
export interface RunEnd {
  readonly outcome: TaskOutcome;
  /** The amount that the run has spent. Only the run that started it receives this. */
  readonly spent?: RunCharge;
  /** Present if the run cannot be resumed, because its work was undone. */
  readonly isFinal?: true;
}

/** Returns the tasks of other runs that receive the outcome of this run. */
function callersOf({ resolutions }: RunState): readonly RunCaller[] {
  return resolutions.all(root, callerWait).map(({ value }) => value as unknown as RunCaller);
}

/** Returns the chain of runs of which each has started the next, up to this run, which is the first entry. */
export function callChain(state: RunState, runId: RunId): readonly RunId[] {
  const starter = callersOf(state).find(({ above }) => above !== undefined);
  return [runId, ...(starter?.above ?? [])];
}

/** Whether this other run started the run. */
export function isStartedBy(state: RunState, caller: RunId): boolean {
  return callersOf(state).some(({ runId, above }) => above !== undefined && runId === caller);
}

/** Returns the mail that tells the callers of this run its outcome. */
export function endMails(state: RunState, runId: RunId, at: number): readonly Mail[] {
  return callersOf(state).flatMap((caller) => endMail(state, runId, caller, at) ?? []);
}

/**
 * P1: returns the mail that tells one caller the outcome of this run. A repeated mail has no effect. `undefined` if
 * the run has not ended.
 */
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

/** B6: returns the amount that counts against the budget of a caller. */
function chargeOf({ ledger }: RunState): RunCharge {
  const { spent = nothing, unpriced = 0 } = ledger.accounts[root] ?? {};
  const costUsd = unpriced === 0 ? fromNanoUsd(spent.nanoUsd) : null;
  return { tokens: spent.tokens, costUsd, turns: spent.turns };
}

/** Returns the id of the reservation for a started run, which is a part of the caller's budget. */
export function partOf(runId: RunId): string {
  return `part ${runId}`;
}

/**
 * B6: returns the command that charges the caller with what a run has spent since its last end. At the first end,
 * the unused part of the budget that the caller had reserved is released. A resumed run has no such reservation;
 * what it spends is charged directly.
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

/** Returns the outcome of a run that the task has received. `undefined` if the task has not received it. */
export function receivedEnd(state: RunState, taskId: TaskId, runId: RunId): RunEnd | undefined {
  return state.resolutions.first(taskId, runWait(runId))?.value as RunEnd | undefined;
}

/**
 * Returns the runs that a task has started and that are cancelled with it, unless the task has already received
 * their outcome.
 */
export function runsToCancel(state: RunState, { record, started }: TaskState): readonly StartedState[] {
  if (started === undefined) return [];
  return [...started.values()].filter(
    ({ runId, onParentEnd, isOfOrigin }) =>
      onParentEnd === "cancel" && !isOfOrigin && receivedEnd(state, record.taskId, runId) === undefined,
  );
}

/** P1: returns the mail that cancels a started run. A cancel after the task was resumed has another id. */
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

/** Returns the change with which a resumed task resumes a run that it has started, and waits for its next end. */
export function resumeChange({ record, resumed }: TaskState, runId: RunId, at: number): Addition {
  const { agentId, taskId, supervision } = record;
  const id = `resume ${supervision.runId} ${taskId} ${resumed}`;
  return {
    resolves: [{ taskId, wait: runWait(runId), value: null }],
    mail: [{ id, runId, from: agentId, at, body: { type: "resume" } }],
  };
}

/** Returns the reason for which a run was cancelled. `undefined` if it was not cancelled. */
export function cancelReason({ outcome }: RunEnd): string | undefined {
  const reason = outcome.status === "cancelled" ? outcome.failure?.details?.["reason"] : undefined;
  return typeof reason === "string" ? reason : undefined;
}
