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
  /** The caller who cancelled the run or the task. `null` if a task above cancelled this task. */
  readonly by: string | null;
}

/** One task of a run. */
export interface TaskView {
  readonly taskId: TaskId;
  readonly agentId: string;
  /** The task that started this one. `null` for the root. */
  readonly parentId: TaskId | null;
  /** Number of tasks above this one. */
  readonly depth: number;
  /** Number of tasks that this task spawned. */
  readonly children: number;
  readonly priority: Priority;
  readonly status: TaskViewStatus;
  /** Budget of the task including all top-ups. `null` until the task starts. */
  readonly budget: ExecutionBudget | null;
  /** What the task itself spent. */
  readonly own: Spend;
  /** Costs and tokens of the task and all of its descendants. */
  readonly total: Spend;
  /** H1: whether the task holds a seat. */
  readonly hasSeat: boolean;
  /**
   * The task that took this task's seat, until this task gets a seat again (rule H2). `null` if its seat was not
   * taken.
   */
  readonly yieldsTo: TaskId | null;
  /** Names of the signals or tasks for which the task waits. Empty if it does not wait. */
  readonly waitsFor: readonly string[];
  /** Number of unanswered questions to a person. */
  readonly questions: number;
  /** Number of model and tool calls in progress. */
  readonly openCalls: number;
  /**
   * The model or tool call that started last. `null` before the first call. `isFailed` is `true` if its last
   * attempt failed.
   */
  readonly lastCall: {
    readonly kind: "model" | "tool";
    readonly name: string;
    readonly isFailed?: boolean;
  } | null;
  /** Name of the model that the task called last. `null` before its first model call. */
  readonly model: string | null;
  /** The beginning of the output. `null` if the task has not completed or has no output. */
  readonly result: string | null;
  /** Who cancelled the task and why. `null` if it was not cancelled. */
  readonly cancelled: CancelView | null;
  /**
   * The limit that stopped the task: `costUsd`, `turns`, `tokens`, `seats`, `deadlineMs`, or `cap` for a spending
   * cap. `null` if it was not stopped by a limit.
   */
  readonly stoppedAt: string | null;
  /** Number of recorded model and tool calls that a replay of the task would read from its journal. */
  readonly recorded: number;
  /** Cost of those model calls. */
  readonly recordedUsd: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

/** The costs of one agent's calls of one model. */
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

/** A time at which another worker took over the run. */
export interface RecoveryView {
  readonly seq: number;
  readonly at: number;
  /** Time of the last event before. */
  readonly lastAt: number;
  readonly epoch: number;
  /** Name of the worker that took over the run. `null` if the log does not name it. */
  readonly owner: string | null;
  readonly lostOwner: string | null;
  /** Whether the previous owner crashed. If not, it released the run. */
  readonly isCrash: boolean;
  /** Number of recorded calls that the new owner read from the journal, so that they were not repeated. */
  readonly replayed: number;
  /** Cost of the calls that were read from the journal, so that it was not paid again. */
  readonly savedUsd: number;
  /**
   * Number of model calls that were in progress when the previous owner crashed. They are charged, and the new
   * owner repeats them.
   */
  readonly lost: number;
}

/** A time in which no agent of the run was active: all agents waited, or the run was paused or had ended. */
interface WaitView {
  /** Sequence number and time of the event that ended the wait. */
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

/** The original run of a fork, and the last event that both share. */
export interface ForkView {
  readonly runId: RunId;
  readonly at: number;
  readonly inherited: Usage;
  /** Time of the last shared event, and time of the start of the fork. */
  readonly lastAt: number;
  readonly startedAt: number;
  /** If the original run is itself a fork: the starts of the earlier forks, in their order. Otherwise empty. */
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
  /** Who cancelled the run and why. Already set while its tasks still end. `null` if no caller cancelled it. */
  readonly cancelled: CancelView | null;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** Sequence number and time of the last event that this view contains. */
  readonly seq: number;
  readonly at: number;
  /** H1: seats taken, and their maximum. */
  readonly seats: number;
  readonly maxSeats: number | null;
  /** Number of tasks that have not ended. */
  readonly live: number;
  /** Number of tasks that are active: they neither wait nor have ended. */
  readonly active: number;
  /** Number of recorded calls of the tasks that have not ended, and the cost of their model calls. */
  readonly recorded: number;
  readonly recordedUsd: number;
  /** Number of unanswered questions to a person. */
  readonly questions: number;
  /** Number of model calls, tool calls and steps that have a result. */
  readonly results: number;
  /** Number of messages that agents and people sent to one another. */
  readonly messages: number;
  readonly recoveries: readonly RecoveryView[];
  /** The first waits of at least one minute. There are at most 50 of them. */
  readonly waits: readonly WaitView[];
  /** Why the run is paused as a crash loop (rule L7). `null` if it is not. */
  readonly crashLoop: CrashLoop | null;
  /** Whether the run has begun to undo its work. It can then no longer be resumed. */
  readonly isUndone: boolean;
  /**
   * The original run of a fork, and the last event that both share. This event may be earlier than the event at
   * which the run was forked, because the events of one commit can only be shared together. `null` if this run is
   * not a fork.
   */
  readonly forkedFrom: ForkView | null;
}

/** The state of a run, calculated from its events up to one position. */
export interface RunView extends RunFactsView {
  readonly tasks: MapVersion<TaskId, TaskView>;
  readonly money: MapVersion<string, MoneyLine>;
  readonly asked: MapVersion<string, QuestionView>;
}
