import type { AgentId, TaskId } from "../base/identity.ts";
import type { JsonObject, JsonValue } from "../base/json-value.ts";
import type { CancellationStatus } from "../errors/cancellation-token.ts";
import type { SpawnBudget } from "../limits/budget.ts";
import type { ExecutionBudget } from "../limits/execution-budget.ts";
import type { SupervisionJson } from "../limits/supervision.ts";
import type { CallSettings } from "../messages/call-settings.ts";
import type { Message } from "../messages/message.ts";
import type { OnBudget, OnParentEnd, OnPause, TaskOutcome } from "./run-result.ts";
import type { StoredChanges } from "./run-changes.ts";
import type { NextRun } from "./schedule.ts";
import type { InheritedRequest } from "./spawn-options.ts";
import type { StepAddress } from "./step.ts";
import type { TaskFolder } from "./task-folder.ts";

/** A task of a run, which is one agent's node in the tree of the run, as it was created. */
export interface TaskRecord {
  /** Id of the task. */
  readonly taskId: TaskId;
  /** Id of the agent. */
  readonly agentId: AgentId;
  /** J9: version of the agent when the task was created. Absent if the agent declares none. */
  readonly agentVersion?: string;
  /** Id of the task that spawned this one. `null` for the root. */
  readonly parentId: TaskId | null;
  /** Position in the run's tree of tasks. */
  readonly supervision: SupervisionJson;
  /** B5: present if the time in which the task waits for a person counts for its deadline. */
  readonly budget: ExecutionBudget;
  /** B5: present if the clock of the task's deadline also runs while the task waits for a person. */
  readonly timeoutWhileWaiting?: true;
  /** The input of the task, or the state that `continueAsNew` passed. */
  readonly input: JsonValue;
  /** The inbox messages that started the task. Empty if an input started it. */
  readonly messages: readonly Message[];
  /** Id of the user. `null` for a run without a user. */
  readonly userId: string | null;
  /** Data of the caller. */
  readonly metadata: JsonObject;
  /** Whether readers receive the task's text while it is written (E2). */
  readonly streaming: boolean;
  /** Channel that the run's input came from. Absent if the submission did not name a channel. */
  readonly channel?: string;
  /** Present on the root of a heartbeat. If its answer reports nothing, it leaves no entry in the session. */
  readonly heartbeat?: true;
  /** Settings for the model calls of the task. Absent if the submission has none, and for a child. */
  readonly settings?: CallSettings;
  /** Text that is added after the agent's instructions. Absent if the submission has none, and for a child. */
  readonly addedInstructions?: string;
  /** What the submission or a fork changes of the agent for this task. Absent if it changes nothing. */
  readonly changes?: StoredChanges;
  /**
   * Present on a root that was submitted with a live context. The context is not stored, so that a worker that
   * resumes the run needs a factory for it.
   */
  readonly hasContext?: true;
  /**
   * L18: present on the root of a run that was started by the name of its workflow, until a worker that hosts the
   * workflow has read the input. It contains the spawn budget of the start.
   */
  readonly byName?: { readonly spawnBudget?: Partial<SpawnBudget> };
  /** L20: present on a root whose input consists of the inputs that its run has collected from several starts. */
  readonly isCollected?: true;
  /** What happens to the task when its parent ends first. */
  readonly onParentEnd: OnParentEnd;
  /**
   * J9: present on a child whose journal records reads of steering and follow-ups. Absent on a child of an earlier
   * build, which receives no such input. Also absent on a root, whose journal always records them.
   */
  readonly takesInput?: true;
  /** H5: what the task does when it is preempted. */
  readonly onPause: OnPause;
  /** B5: present if a person is asked for a top-up when a call does not fit into this task's budget. */
  readonly onBudget?: Extract<OnBudget, "ask">;
  /** L9: time before which the task does not start, in epoch milliseconds. Absent if it starts at once. */
  readonly startAt?: number;
  /** Role in which the parent spawned the task. Absent if the parent did not name a role. */
  readonly role?: string;
  /** Names of the tools that the task may call. `null` means all tools of its agent. */
  readonly tools: readonly string[] | null;
  /**
   * The request with which the task starts. Present if the task shares the prompt of another task
   * (`RunContext.child`).
   */
  readonly inherits?: InheritedRequest;
  /** D2: the folder in which the parent worked when it spawned the task. Absent if the parent had no folder. */
  readonly folder?: TaskFolder;
}

/** A change to a run's tree of tasks, in a commit. */
export type TaskChange =
  /**
   * A task was created. A second `create` of the root replaces the first one: a worker has adopted a run that was
   * started by name (L18).
   */
  | { readonly type: "create"; readonly task: TaskRecord }
  /**
   * A task ended. `endedOn` contains the steps whose faults ended its code. There are several if concurrent
   * branches failed.
   */
  | {
      readonly type: "end";
      readonly taskId: TaskId;
      readonly outcome: TaskOutcome;
      readonly endedOn?: readonly StepAddress[];
      /** Runs that the commit which ends the run submits. Only the end of a root can have them. */
      readonly next?: readonly NextRun[];
    }
  /** J5: an ended task continues after `resume` or `topUp`. */
  | { readonly type: "reopen"; readonly taskId: TaskId }
  /** C1: a task was cancelled. A replay learns of the cancel from this change. */
  | {
      readonly type: "cancel";
      readonly taskId: TaskId;
      readonly reason: string;
      readonly status: CancellationStatus;
    }
  /** J8: a task continues from `input` with an empty journal. */
  | { readonly type: "continue"; readonly taskId: TaskId; readonly input: JsonValue }
  /** The task's code crashed. `crashes` is the number of crashes so far. */
  | { readonly type: "crash"; readonly taskId: TaskId; readonly crashes: number };

/** Status of a task. A task with one of the last three has ended. */
export type TaskStatus =
  /** Created, and waiting for a seat or a slot. */
  | "pending"
  | "running"
  /** Waits for something; keeps its seat. */
  | "suspended"
  /** The task must pause and first finishes its calls in flight (H7). */
  | "pausing"
  /**
   * The task has no seat until it is recalled. If it waits for a larger budget, it is recalled only after a top-up.
   */
  | "paused"
  | "completed"
  | "failed"
  | "cancelled";

/** Whether a task with this status has ended. */
export function isFinal(status: TaskStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
