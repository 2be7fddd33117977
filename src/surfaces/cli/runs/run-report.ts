import {
  addUsage,
  Fault,
  noUsage,
  Priority,
  rootTaskId,
  type ApprovalRequest,
  type Event,
  type Failure,
  type JsonValue,
  type RunId,
  type RunSummary,
  type Store,
  type TaskId,
  type Usage,
} from "../../../kernel/index.ts";

/** One task of a run, as its events describe it. */
export interface TaskReport {
  readonly taskId: TaskId;
  readonly agentId: string;
  readonly parentId: TaskId | null;
  priority: Priority;
  status: string;
}

/** The model calls of one agent with one model. */
interface CallReport {
  readonly agentId: string;
  readonly model: string;
  calls: number;
  usage: Usage;
}

/** A run as its summary and its events describe it. */
export interface RunReport {
  readonly summary: RunSummary;
  readonly tasks: ReadonlyMap<TaskId, TaskReport>;
  readonly calls: readonly CallReport[];
  /** B3: charges for calls that ended without reported usage. */
  readonly unreported: { readonly calls: number; readonly tokens: number; readonly costUsd: number | null };
  /** The approval requests without an answer. */
  readonly approvals: readonly ApprovalRequest[];
  readonly input: JsonValue;
  readonly output: JsonValue;
  readonly failure: Failure | null;
  /** Number of events. */
  readonly events: number;
}

/** Reads the report of a run. Costs O(events of the run). */
export async function readReport(store: Store, runId: RunId): Promise<RunReport> {
  const summary = await store.journal.summary(runId);
  if (summary === undefined) throw new Fault("not_found", `run ${runId} not found in this store`);
  const reader = new ReportReader(summary);
  for await (const event of store.events.read(runId)) reader.take(event);
  return reader;
}

class ReportReader implements RunReport {
  readonly summary: RunSummary;
  readonly tasks = new Map<TaskId, TaskReport>();
  unreported: { calls: number; tokens: number; costUsd: number | null } = noCharges;
  input: JsonValue = null;
  output: JsonValue = null;
  failure: Failure | null = null;
  events = 0;
  readonly #calls = new Map<string, CallReport>();
  readonly #approvals = new Map<string, ApprovalRequest>();

  constructor(summary: RunSummary) {
    this.summary = summary;
  }

  get calls(): readonly CallReport[] {
    return [...this.#calls.values()];
  }

  /** The requests of an ended run can no longer be answered. */
  get approvals(): readonly ApprovalRequest[] {
    return this.summary.endedAt === null ? [...this.#approvals.values()] : [];
  }

  take(event: Event): void {
    this.events++;
    const task = this.#task(event);
    switch (event.type) {
      case "run_start":
        this.input = event.data.input;
        break;
      case "run_fork":
        // The events before are the origin's. The fork does not pay for their calls.
        this.#calls.clear();
        this.unreported = noCharges;
        break;
      case "task_start":
        task.priority = event.data.priority;
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
      case "message_end":
        this.#called(event);
        break;
      case "budget_lost":
        this.#lost(event);
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

  /** The task of an event. A task that has an event of its own after its wait is running again. */
  #task({ taskId, agentId, parentId, type }: Event): TaskReport {
    const known = this.tasks.get(taskId);
    if (known !== undefined) {
      if (type === "task_start" || type === "task_wake" || type === "turn_start") known.status = "running";
      return known;
    }
    const task = { taskId, agentId, parentId, priority: Priority.NORMAL, status: "running" };
    this.tasks.set(taskId, task);
    return task;
  }

  #spawned({ taskId: parentId, type, data }: Event<"spawn_start"> | Event<"spawn_wait">): void {
    const { childTaskId: taskId, agentId, priority } = data;
    const status = type === "spawn_wait" ? "pending" : "running";
    this.tasks.set(taskId, { taskId, agentId, parentId, priority, status });
  }

  #setStatus(taskId: TaskId, status: string): void {
    const task = this.tasks.get(taskId);
    if (task !== undefined) task.status = status;
  }

  #called({ agentId, data: { usage, model } }: Event<"message_end">): void {
    if (usage === undefined) return;
    const name = model === undefined ? "unknown" : `${model.provider}/${model.modelId}`;
    const key = `${agentId} ${name}`;
    const line = this.#calls.get(key) ?? { agentId, model: name, calls: 0, usage: noUsage };
    line.calls++;
    line.usage = addUsage(line.usage, usage);
    this.#calls.set(key, line);
  }

  #lost({ data: { tokens, costUsd } }: Event<"budget_lost">): void {
    const { calls, tokens: before, costUsd: cost } = this.unreported;
    const sum = cost === null || costUsd === null ? null : cost + costUsd;
    this.unreported = { calls: calls + 1, tokens: before + tokens, costUsd: sum };
  }

  #ended(task: TaskReport, { data: { status, output, failure } }: Event<"task_end">): void {
    task.status = status;
    if (task.taskId !== rootTaskId) return;
    this.output = output ?? null;
    this.failure = failure ?? null;
  }
}

const noCharges = { calls: 0, tokens: 0, costUsd: 0 };

/** The sum of all calls of a run. The cost includes unreported calls; `null` if a price is unknown. */
export function totalOf({ calls, unreported }: Pick<RunReport, "calls" | "unreported">): {
  readonly calls: number;
  readonly usage: Usage;
  readonly costUsd: number | null;
} {
  const usage = calls.reduce((sum, line) => addUsage(sum, line.usage), noUsage);
  const { costUsd } = usage;
  return {
    calls: calls.reduce((sum, line) => sum + line.calls, 0) + unreported.calls,
    usage,
    costUsd: costUsd === null || unreported.costUsd === null ? null : costUsd + unreported.costUsd,
  };
}
