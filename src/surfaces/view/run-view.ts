import type {
  CrashLoop,
  ApprovalDecision,
  ApprovalRequest,
  ExecutionBudget,
  Failure,
  JsonValue,
  Priority,
  RunId,
  RunStatus,
  SessionId,
  TaskId,
  Usage,
} from "../../kernel/index.ts";
import type { Spend } from "./spend.ts";
import type { MapVersion } from "./versioned-map.ts";

/** The status of a task that has not ended, or the status with which it ended. */
type TaskViewStatus = "pending" | "running" | "waiting" | "pausing" | RunStatus;

/** Why a run or a task was cancelled. */
export interface CancelView {
  readonly reason: string;
  /** Who cancelled the run. `null` if a task above cancelled the task. */
  readonly by: string | null;
}

/** One task of a run. */
export interface TaskView {
  readonly taskId: TaskId;
  readonly agentId: string;
  /** The task that spawned this one. `null` for the root. */
  readonly parentId: TaskId | null;
  /** Number of tasks above this one. */
  readonly depth: number;
  /** Number of tasks that this task spawned. */
  readonly children: number;
  readonly priority: Priority;
  readonly status: TaskViewStatus;
  /** Budget of the task with all top-ups. `null` until the task starts. */
  readonly budget: ExecutionBudget | null;
  /** What the task itself spent. */
  readonly own: Spend;
  /** What the task and all its descendants spent. */
  readonly total: Spend;
  /** H1: whether the task holds a seat. */
  readonly hasSeat: boolean;
  /** H2: the task that took this task's seat, until this task gets a seat again. `null` if no task did. */
  readonly yieldsTo: TaskId | null;
  /** Names that the task waits for. Empty if it does not wait. */
  readonly waitsFor: readonly string[];
  /** Number of questions to a person without an answer. */
  readonly questions: number;
  /** Number of model and tool calls in progress. */
  readonly openCalls: number;
  /** The model or tool call that started last. `null` before the first. `isFailed`: its last attempt failed. */
  readonly lastCall: {
    readonly kind: "model" | "tool";
    readonly name: string;
    readonly isFailed?: boolean;
  } | null;
  /** Name of the model that the task called last. `null` before its first model call. */
  readonly model: string | null;
  /** The beginning of the output. `null` if the task has not completed, or without one. */
  readonly result: string | null;
  /** Why the task was cancelled. `null` if it did not end so. */
  readonly cancelled: CancelView | null;
  /** The limit that stopped the task: `costUsd`, `turns`, `tokens`, `seats`, `deadlineMs`, or `cap` for a spending cap. `null` if none did. */
  readonly stoppedAt: string | null;
  /** Number of recorded model and tool calls that a replay of the task reads from its journal. */
  readonly recorded: number;
  /** Cost of those model calls. */
  readonly recordedUsd: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

/** The model calls of one agent with one model. */
export interface MoneyLine {
  readonly agentId: string;
  readonly model: string;
  readonly calls: number;
  readonly usage: Usage;
}

/** A question to a person. */
export interface QuestionView {
  readonly request: ApprovalRequest;
  readonly taskId: TaskId;
  readonly agentId: string;
  readonly askedAt: number;
  readonly decision: ApprovalDecision | null;
  readonly decidedAt: number | null;
}

/** A moment at which another worker took over the run. */
export interface RecoveryView {
  readonly seq: number;
  readonly at: number;
  /** Time of the last event before. */
  readonly lastAt: number;
  readonly epoch: number;
  /** Names of the worker that took over, and of the one that died. `null` if the log does not name it. */
  readonly owner: string | null;
  readonly lostOwner: string | null;
  /** Whether the last owner died. It released the run otherwise. */
  readonly isCrash: boolean;
  /** Number of recorded calls that the new owner read from the journal instead of making them again. */
  readonly replayed: number;
  /** Cost of those calls, which was not paid again. */
  readonly savedUsd: number;
  /** Number of model calls that the last owner left in flight. They are charged, and the new owner makes them again. */
  readonly lost: number;
}

/** A time in which no agent of the run worked: all waited, or the run was paused or had ended. */
interface WaitView {
  /** The event that ended the wait, and its time. */
  readonly seq: number;
  readonly at: number;
  /** Time of the last event before. */
  readonly lastAt: number;
}

/** The start of a fork in a log. */
export interface ForkStart {
  readonly seq: number;
  readonly startedAt: number;
  /** Time of the last event before. */
  readonly lastAt: number;
}

/** The origin of a fork, and the last event that both share. */
export interface ForkView {
  readonly runId: RunId;
  readonly at: number;
  readonly inherited: Usage;
  /** Time of the last event that both share, and of the start of the fork. */
  readonly lastAt: number;
  readonly startedAt: number;
  /** The starts of the forks that the shared events contain, the first one first. Empty unless the origin is a fork. */
  readonly earlier: readonly ForkStart[];
}

/** The facts of a run as a whole. */
export interface RunFactsView {
  readonly runId: RunId;
  readonly agentId: string;
  readonly sessionId: SessionId;
  readonly input: JsonValue;
  readonly status: "pending" | "running" | "waiting" | RunStatus;
  readonly output: JsonValue;
  readonly failure: Failure | null;
  /** Who cancelled the run, also while its tasks still end. `null` if no caller did. */
  readonly cancelled: CancelView | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** Number of the last event that this view contains, and its time. */
  readonly seq: number;
  readonly at: number;
  /** H1: seats taken, and their maximum. */
  readonly seats: number;
  readonly maxSeats: number | null;
  /** Number of tasks that have not ended. */
  readonly live: number;
  /** Number of tasks that neither wait nor have ended. */
  readonly active: number;
  /** Number of recorded calls of those tasks, and the cost of their model calls. */
  readonly recorded: number;
  readonly recordedUsd: number;
  /** Number of questions to a person without an answer. */
  readonly questions: number;
  /** Number of model calls, tool calls and steps that have a result. */
  readonly results: number;
  /** Number of messages that agents and people sent to each other. */
  readonly messages: number;
  readonly recoveries: readonly RecoveryView[];
  /** The first waits of at least a minute, at most 50 of them. */
  readonly waits: readonly WaitView[];
  /** L7: why the run is paused as a crash loop. `null` if it is not. */
  readonly crashLoop: CrashLoop | null;
  /** Whether the run has begun to undo its work, so that it cannot be resumed. */
  readonly isUndone: boolean;
  /**
   * The run that this run was forked from, and the last event that both share. The latter may be before the event at which the
   * run was forked, because events of one commit are shared together. `null` if it is not a fork.
   */
  readonly forkedFrom: ForkView | null;
}

/** A run as its events up to one position describe it. */
export interface RunView extends RunFactsView {
  readonly tasks: MapVersion<TaskId, TaskView>;
  readonly money: MapVersion<string, MoneyLine>;
  readonly asked: MapVersion<string, QuestionView>;
}
