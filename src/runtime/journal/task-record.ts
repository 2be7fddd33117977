import {
  Priority,
  Supervision,
  tightenBudget,
  unlimitedBudget,
  type HostedAgent,
  type ExecutionBudget,
  type JsonValue,
  type LedgerCommand,
  type SpawnOptions,
  type TaskId,
  type TaskRecord,
} from "../../kernel/index.ts";
import type { RunState, TaskState } from "./run-state.ts";
import { deadlineOf } from "./task-clock.ts";

export interface ChildTaskOptions extends SpawnOptions {
  readonly taskId: TaskId;
  readonly agent: HostedAgent;
  readonly input: JsonValue;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** B6: the budget of a child never exceeds its parent's, and its deadline is never later than the parent's. */
export function childTaskRecord(parent: TaskState, options: ChildTaskOptions): TaskRecord {
  const { taskId, agent, input, now } = options;
  const { record } = parent;
  const deadline = deadlineOf(parent);
  const deadlineMs = deadline === null ? null : Math.max(0, deadline - now);
  const budget = tightenBudget({ ...record.budget, deadlineMs }, ownBudget(agent, options));
  const supervision = Supervision.fromJSON(record.supervision).spawnChild({
    parentId: record.agentId,
    priority: options.priority ?? Priority.NORMAL,
    executionBudget: budget,
    ...(options.retention === undefined ? {} : { retention: options.retention }),
  });
  return {
    taskId,
    agentId: agent.id,
    ...(agent.version !== undefined && { agentVersion: agent.version }),
    parentId: record.taskId,
    supervision: supervision.toJSON(),
    budget,
    input,
    messages: [],
    userId: record.userId,
    metadata: record.metadata,
    streaming: record.streaming,
    ...(record.channel !== undefined && { channel: record.channel }),
    onParentEnd: options.onParentEnd ?? "cancel",
    onPause: options.onPause ?? "suspend",
    ...(options.role !== undefined && { role: options.role }),
    tools: options.tools ?? null,
  };
}

const noChildren: readonly never[] = [];

/** Live children of the task whose `onParentEnd` has this value. */
export function childrenOf(
  { tasks }: RunState,
  parentId: TaskId,
  onParentEnd: TaskRecord["onParentEnd"],
): readonly TaskId[] {
  // Most runs have only a root.
  if (tasks.size === 1) return noChildren;
  const children: TaskId[] = [];
  for (const { record, outcome } of tasks.values()) {
    if (record.parentId === parentId && record.onParentEnd === onParentEnd && outcome === null)
      children.push(record.taskId);
  }
  return children;
}

/** The caps of the task's own account. Without the ancestors' caps: their accounts enforce those, also after a top-up (B6). */
export function ownBudget(agent: HostedAgent, { budget = {} }: SpawnOptions): ExecutionBudget {
  return tightenBudget(tightenBudget(unlimitedBudget, agent.budget ?? {}), budget);
}

/** Command that opens the account of a new task. `warnAt` is the share of a cap at which `budget_warning` is emitted (B5). */
export function openAccountCommand(
  { warnAt }: { readonly warnAt?: number },
  account: Omit<Extract<LedgerCommand, { type: "open" }>, "type" | "warnAt">,
): LedgerCommand {
  return { type: "open", ...account, ...(warnAt === undefined ? {} : { warnAt }) };
}
