import {
  Priority,
  executionBudget,
  smallerBudget,
  tightenBudget,
  unlimitedBudget,
  type CallSettings,
  type HostedAgent,
  type ExecutionBudget,
  type JsonValue,
  type RequestOfTask,
  type SpawnOptions,
  type TaskFolder,
  type TaskId,
  type TaskRecord,
} from "../../kernel/index.ts";
import { supervisionOf, type TaskState } from "./task-state.ts";
import { deadlineOf } from "./task-clock.ts";

/** Options of a new task. */
export interface NewTaskOptions extends SpawnOptions {
  /** The request with which the task starts. If absent, the task has its own prompt. */
  readonly inherited?: InheritedChild;
  /**
   * C2: whether the task is spawned by code that no deadline reaches, so that it does not inherit the deadline of
   * its parent.
   */
  readonly isShielded?: boolean;
  /** D2: the folder in which the parent works. */
  readonly folder?: TaskFolder;
}

export interface ChildTaskOptions extends NewTaskOptions {
  readonly taskId: TaskId;
  readonly agent: HostedAgent;
  readonly input: JsonValue;
  /** The limits that `ownBudget` returns for the agent and the options. */
  readonly ownLimits: ExecutionBudget;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** The parts that a child which shares its parent's prompt inherits. */
export interface InheritedChild {
  readonly request: RequestOfTask;
  /** Settings of the parent's last request. */
  readonly settings: CallSettings | null;
}

/**
 * B6: creates the record of a child task. Its budget never exceeds the parent's, and its deadline is never later
 * than the parent's.
 */
export function childTaskRecord(parent: TaskState, options: ChildTaskOptions): TaskRecord {
  const { taskId, agent, input, now, ownLimits } = options;
  const { record } = parent;
  const deadline = options.isShielded === true ? null : deadlineOf(parent);
  const deadlineMs = deadline === null ? null : Math.max(0, deadline - now);
  const budget = smallerBudget({ ...record.budget, deadlineMs }, ownLimits);
  const supervision = supervisionOf(parent).spawnChild({
    parentId: record.agentId,
    priority: options.priority ?? Priority.NORMAL,
    executionBudget: budget,
    ...(options.retention !== undefined && { retention: options.retention }),
  });
  return {
    taskId,
    agentId: agent.id,
    parentId: record.taskId,
    supervision: supervision.toJSON(),
    budget,
    input,
    messages: [],
    userId: record.userId,
    metadata: record.metadata,
    streaming: record.streaming,
    takesInput: true,
    onParentEnd: options.onParentEnd ?? "cancel",
    onPause: options.onPause ?? "suspend",
    tools: options.tools ?? null,
    ...(agent.version !== undefined && { agentVersion: agent.version }),
    ...(record.timeoutWhileWaiting === true && { timeoutWhileWaiting: true }),
    ...(record.channel !== undefined && { channel: record.channel }),
    ...asksForTopUp(agent),
    ...(options.role !== undefined && { role: options.role }),
    ...inheritedFields(options.inherited),
    ...(options.folder !== undefined && { folder: options.folder }),
  };
}

/** B5: returns the field of the record that says whether the agent asks for a top-up. */
export function asksForTopUp({ onBudget }: HostedAgent): Pick<TaskRecord, "onBudget"> {
  return onBudget === "ask" ? { onBudget } : {};
}

/**
 * J9: whether the task reads steering and follow-ups. The journal of a child of an earlier build has no records of
 * such reads.
 */
export function takesInput({ parentId, takesInput: takes }: TaskRecord): boolean {
  return parentId === null || takes === true;
}

function inheritedFields(
  inherited: InheritedChild | undefined,
): Partial<Pick<TaskRecord, "inherits" | "settings">> {
  if (inherited === undefined) return {};
  const { request: inherits, settings } = inherited;
  return settings === null ? { inherits } : { inherits, settings };
}

/**
 * Returns the caps of the task's own account. They do not include the caps of tasks above it, whose accounts
 * enforce these, also after a top-up (B6).
 */
export function ownBudget(agent: HostedAgent, { budget = unlimitedBudget }: SpawnOptions): ExecutionBudget {
  return tightenBudget(executionBudget(agent.budget ?? unlimitedBudget), budget);
}
