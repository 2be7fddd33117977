import {
  type SentFrame,
  noUsage,
  Supervision,
  type CancellationStatus,
  type EventData,
  type JsonValue,
  type Message,
  type OnCallerEnd,
  type RunId,
  type StepAddress,
  type StepRecord,
  type TaskOutcome,
  type TaskRecord,
  type TokenCount,
  type Usage,
  type WaitCause,
} from "../../kernel/index.ts";
import type { BranchValues } from "./branch-values.ts";
import { TaskClock } from "./task-clock.ts";
import { compensationsIn, journalScope } from "./wait-names.ts";

/** The value of a step that starts a run. */
export interface StartRecord {
  readonly runId: RunId;
  readonly onParentEnd: OnCallerEnd;
  /**
   * Hash of the input. Present if the caller chose the id: another process may then create a run with this id
   * between the check of the step and its commit.
   */
  readonly asked?: string;
  /** L19: present for a call of an object, which cannot be resumed. A resumed caller calls again. */
  readonly isFinal?: true;
  /** B6: present if a part of the task's budget is reserved for the started run. */
  readonly hasPart?: true;
}

/** A run that a task has started. */
export interface StartedState extends StartRecord {
  /** Address of the step that started it. */
  readonly startedBy: StepAddress;
  /** Whether the original run of this fork started it. Such a run is not cancelled with the fork. */
  readonly isOfOrigin: boolean;
  /** The amount that the run had spent at its last end that the task received. */
  readonly spent?: RunCharge;
}

/** The amount that a run and the runs that it has started have spent. `costUsd` is `null` if a price is unknown. */
export interface RunCharge {
  readonly tokens: number;
  readonly costUsd: number | null;
  readonly turns: number;
}

/** The state of a task, computed from the commits of its run. */
export interface TaskState {
  readonly record: TaskRecord;
  readonly clock: TaskClock;
  /** `supervisionOf` creates it. */
  supervision: Supervision | undefined;
  /** Address of the parent's step that spawned the task. `undefined` for the root. */
  spawnedBy: StepAddress | undefined;
  /** Records of the current journal, by address. */
  readonly steps: Map<StepAddress, StepRecord>;
  /** Steps that have begun and have no record yet. */
  readonly opened: Map<StepAddress, number>;
  /**
   * Sequence number of the start event of each tool call that failed with a fault. It is needed if the record of
   * the call becomes void (J5).
   */
  readonly failedStarts: Map<StepAddress, number>;
  /** B1: input tokens that a model counted for a step that has no record yet. */
  readonly counts: Map<StepAddress, TokenCount>;
  /** J11: the last recorded request of each role, apart from its messages. Created with the first such record. */
  frames: Map<string, SentFrame> | undefined;
  /** The runs that the task has started, by id. Created with the first run. */
  started: Map<RunId, StartedState> | undefined;
  /** W1: values that steps in branches have taken. Created with the first value. */
  branchValues: BranchValues | undefined;
  /**
   * Addresses of the registered compensations of the current journal, in the order of their records. Created with
   * the first compensation.
   */
  compensations: StepAddress[] | undefined;
  /** Messages that the task has read from its agent's inbox. */
  readonly drained: Message[];
  /**
   * Messages that the task must acknowledge or answer: those with which it was started and those that it has read.
   * In a fork, the original run answers the messages that both share.
   */
  messages: readonly Message[];
  /** Ids of the messages that the task has answered. */
  readonly replied: string[];
  /** J8: number of `continueAsNew` calls, which is also the number of the current journal, counted from 0. */
  journal: number;
  /** Input of the present journal. */
  input: JsonValue;
  /** `null` while the task has not ended. */
  outcome: TaskOutcome | null;
  /** J5: addresses of the records whose fault ended the task. */
  endedOn: readonly StepAddress[];
  /** Usage of all recorded model calls. In a fork, only calls after the fork count. */
  usage: Usage;
  /** How often the task was resumed after it had ended. */
  resumed: number;
  /** `task_start` is emitted. */
  isStarted: boolean;
  /** Sequence number (`seq`) of the first `task_start` of the task. Present if `isStarted`. */
  startSeq: number | undefined;
  /**
   * Sequence number (`seq`) of the last `task_end` of the task. `undefined` if the task has not ended, or was
   * created and ended in one commit.
   */
  endSeq: number | undefined;
  /** How often the task's code has crashed since the task was last resumed. */
  crashes: number;
  /** Time at which the task's code last crashed. Epoch milliseconds. */
  crashedAt: number;
  /** The first cancellation of the task since it was last resumed. `null` if it was not cancelled. */
  cancelled: { readonly reason: string; readonly status: CancellationStatus } | null;
  /** B5: id of the open question for a top-up. `undefined` if the task has no such question. */
  topUpQuestion: string | undefined;
  /** B5: how often the task has asked for a top-up. */
  topUpsAsked: number;
  /** B5: whether a person has refused the last top-up, so that the task does not ask before the next one. */
  isDeclined: boolean;
  /** The task had a seat and was paused. */
  unseated: boolean;
  /** The reasons for which the task waits, according to its last `task_suspend`. */
  waitsFor: readonly WaitCause[];
  /** Time at which the task last emitted `task_suspend`. Epoch milliseconds; 0 if it has emitted none. */
  suspendedAt: number;
  /** The data of its last `task_suspend`. */
  suspension: EventData["task_suspend"] | undefined;
}

const empty: readonly never[] = [];

/** Returns the position of a task in the tree of its run, which never changes. */
export function supervisionOf(task: TaskState): Supervision {
  return (task.supervision ??= Supervision.fromJSON(task.record.supervision));
}

/** Returns the state of a task that was created at `at`, in epoch milliseconds. */
export function newTaskState(record: TaskRecord, at: number): TaskState {
  return {
    record,
    clock: new TaskClock(Math.max(at, record.startAt ?? at)),
    supervision: undefined,
    spawnedBy: undefined,
    steps: new Map(),
    opened: new Map(),
    failedStarts: new Map(),
    counts: new Map(),
    frames: undefined,
    started: undefined,
    branchValues: undefined,
    compensations: undefined,
    drained: [],
    messages: record.messages,
    replied: [],
    journal: 0,
    input: record.input,
    outcome: null,
    endedOn: empty,
    usage: noUsage,
    resumed: 0,
    isStarted: false,
    startSeq: undefined,
    endSeq: undefined,
    crashes: 0,
    crashedAt: 0,
    cancelled: null,
    topUpQuestion: undefined,
    topUpsAsked: 0,
    isDeclined: false,
    unseated: false,
    waitsFor: empty,
    suspendedAt: 0,
    suspension: undefined,
  };
}

/** Whether the compensations of the task have begun, so that it can neither do other work nor be resumed. */
export function hasCompensated({ journal, steps }: Pick<TaskState, "journal" | "steps">): boolean {
  return steps.has(compensationsIn(journalScope(journal)));
}

/** Adds to the task the run that a recorded step has started. `value` is `null` if retention has erased it. */
export function noteStarted(task: TaskState, startedBy: StepAddress, value: JsonValue): void {
  const record = value as unknown as StartRecord | null;
  if (record === null) return;
  task.started ??= new Map();
  task.started.set(record.runId, { ...record, startedBy, isOfOrigin: false });
}

/** Marks the started runs of a task as started by the original run of this fork. */
export function leaveToOrigin({ started }: TaskState): void {
  for (const [runId, run] of started ?? []) started?.set(runId, { ...run, isOfOrigin: true });
}

/** Keeps the start of a tool call that failed. It is needed if the record of the call becomes void. */
export function noteFailedStart({ opened, failedStarts }: TaskState, address: StepAddress): void {
  const seq = opened.get(address);
  if (seq !== undefined) failedStarts.set(address, seq);
}

/** J8: gives the task an empty journal and a new input. */
export function continueTask(task: TaskState, input: JsonValue): void {
  task.steps.clear();
  task.opened.clear();
  task.counts.clear();
  task.failedStarts.clear();
  task.branchValues = undefined;
  task.compensations = undefined;
  task.journal++;
  task.input = input;
}
