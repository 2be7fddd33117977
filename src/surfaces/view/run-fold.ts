import {
  addUsage,
  noUsage,
  Priority,
  rootTaskId,
  type ApprovalRequest,
  type Event,
  type ExecutionBudget,
  type Failure,
  type JsonValue,
  type RunId,
  type TaskId,
  type Usage,
} from "../../kernel/index.ts";

/** B3: charges for calls that ended without reported usage. */
export interface UnreportedCalls {
  readonly calls: number;
  readonly tokens: number;
  readonly costUsd: number | null;
}

/** One task of a run, as its events describe it. */
export interface FoldedTask {
  readonly taskId: TaskId;
  readonly agentId: string;
  readonly parentId: TaskId | null;
  priority: Priority;
  /** `pending`, `running`, `waiting`, `paused`, or the status with which the task ended. */
  status: string;
  /** Time of the first start, in epoch milliseconds. `null` while the task is pending. */
  startedAt: number | null;
  endedAt: number | null;
  budget: ExecutionBudget | null;
  /** Answered model calls of the task itself, without its children. */
  calls: number;
  usage: Usage;
  unreported: UnreportedCalls;
}

/** The model calls of one agent with one model. */
export interface FoldedCalls {
  readonly agentId: string;
  readonly model: string;
  calls: number;
  usage: Usage;
}

const noCharges: UnreportedCalls = Object.freeze({ calls: 0, tokens: 0, costUsd: 0 });

/** What the events of a run say about it. Add the events in order. */
export class RunFold {
  readonly tasks = new Map<TaskId, FoldedTask>();
  unreported = noCharges;
  input: JsonValue = null;
  output: JsonValue = null;
  failure: Failure | null = null;
  forkedFrom: { readonly runId: RunId; readonly at: number } | null = null;
  /** Number of events. */
  events = 0;
  readonly #calls = new Map<string, FoldedCalls>();
  readonly #approvals = new Map<string, ApprovalRequest>();

  get calls(): readonly FoldedCalls[] {
    return [...this.#calls.values()];
  }

  /** The approval requests without an answer. */
  get approvals(): readonly ApprovalRequest[] {
    return [...this.#approvals.values()];
  }

  add(event: Event): void {
    this.events++;
    const task = this.#task(event);
    switch (event.type) {
      case "run_start":
        this.input = event.data.input;
        break;
      case "run_fork":
        this.#forked(event);
        break;
      case "task_start":
        task.priority = event.data.priority;
        task.budget = event.data.budget;
        task.startedAt ??= event.at;
        break;
      case "task_suspend":
        task.status = "waiting";
        break;
      case "spawn_start":
      case "spawn_wait":
        this.#spawned(event);
        break;
      case "seat_pause":
        this.#setStatus(event.data.taskId, "paused");
        break;
      case "seat_grant":
      case "seat_recall":
        this.#setStatus(event.data.taskId, "running");
        break;
      case "task_reprioritize":
        this.#setPriority(event);
        break;
      case "message_end":
        this.#called(task, event);
        break;
      case "budget_lost":
        this.unreported = withCharge(this.unreported, event);
        task.unreported = withCharge(task.unreported, event);
        break;
      case "approval_request":
        this.#approvals.set(event.data.approvalId, event.data);
        break;
      case "approval_decision":
        this.#approvals.delete(event.data.approvalId);
        break;
      case "task_end":
        this.#ended(task, event);
        break;
      default:
    }
  }

  /** The events before are the origin's. The fork does not pay for their calls. */
  #forked({ data: { origin, at } }: Event<"run_fork">): void {
    this.forkedFrom = { runId: origin, at };
    this.#calls.clear();
    this.unreported = noCharges;
    for (const task of this.tasks.values())
      Object.assign(task, { calls: 0, usage: noUsage, unreported: noCharges });
  }

  /** The task of an event. A task that has an event of its own after its wait is running again. */
  #task({ taskId, agentId, parentId, type }: Event): FoldedTask {
    const known = this.tasks.get(taskId);
    if (known === undefined) return this.#newTask({ taskId, agentId, parentId }, Priority.NORMAL, "running");
    if (type === "task_start" || type === "task_wake" || type === "turn_start") {
      known.status = "running";
      known.endedAt = null;
    }
    return known;
  }

  #newTask(
    place: Pick<FoldedTask, "taskId" | "agentId" | "parentId">,
    priority: Priority,
    status: string,
  ): FoldedTask {
    const spent = { calls: 0, usage: noUsage, unreported: noCharges };
    const task: FoldedTask = {
      ...place,
      priority,
      status,
      startedAt: null,
      endedAt: null,
      budget: null,
      ...spent,
    };
    this.tasks.set(place.taskId, task);
    return task;
  }

  #spawned({ taskId: parentId, type, data }: Event<"spawn_start"> | Event<"spawn_wait">): void {
    const { childTaskId: taskId, agentId, priority } = data;
    this.#newTask({ taskId, agentId, parentId }, priority, type === "spawn_wait" ? "pending" : "running");
  }

  #setStatus(taskId: TaskId, status: string): void {
    const task = this.tasks.get(taskId);
    if (task !== undefined) task.status = status;
  }

  #setPriority({ data: { taskId, to } }: Event<"task_reprioritize">): void {
    const task = this.tasks.get(taskId);
    if (task !== undefined) task.priority = to;
  }

  #called(task: FoldedTask, { agentId, data: { usage, model } }: Event<"message_end">): void {
    if (usage === undefined) return;
    task.calls++;
    task.usage = addUsage(task.usage, usage);
    const name = model === undefined ? "unknown" : `${model.provider}/${model.modelId}`;
    const key = `${agentId} ${name}`;
    const line = this.#calls.get(key) ?? { agentId, model: name, calls: 0, usage: noUsage };
    line.calls++;
    line.usage = addUsage(line.usage, usage);
    this.#calls.set(key, line);
  }

  #ended(task: FoldedTask, { at, data: { status, output, failure } }: Event<"task_end">): void {
    task.status = status;
    task.endedAt = at;
    if (task.taskId !== rootTaskId) return;
    this.output = output ?? null;
    this.failure = failure ?? null;
  }
}

function withCharge(
  { calls, tokens: before, costUsd: cost }: UnreportedCalls,
  { data: { tokens, costUsd } }: Event<"budget_lost">,
): UnreportedCalls {
  const sum = cost === null || costUsd === null ? null : cost + costUsd;
  return { calls: calls + 1, tokens: before + tokens, costUsd: sum };
}
