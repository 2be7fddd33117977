import { totalTokens, type Event, type TaskId } from "../../kernel/index.ts";

/** Kinds of steps: a model call, a tool call, a step of `ctx.step`, a question to a person, a pause, a wait for a seat. */
export type StepKind = "model" | "tool" | "step" | "person" | "paused" | "seat";

/**
 * One bar of the timeline. All positions of a run share the steps: at an event number before `endSeq` the step is in
 * progress, and before `startSeq` it does not exist.
 */
export interface StepView {
  readonly taskId: TaskId;
  readonly kind: StepKind;
  /** Name of the model, tool or step; for a question, the tool that asks; else the task that took the seat, if any. */
  readonly name: string;
  /** Id of the call or of the question. Empty for other kinds. */
  readonly id: string;
  readonly startSeq: number;
  readonly startAt: number;
  /** Event that ended the step. `null` while the step is in progress. */
  readonly endSeq: number | null;
  readonly endAt: number | null;
  /** `lost`: the worker died during the call. `cut`: the task ended before the step did. `null` while in progress. */
  readonly outcome: "ok" | "error" | "denied" | "lost" | "cut" | null;
  readonly tokens: number;
  /** Cost of a model call. `null` if its price is unknown. */
  readonly costUsd: number | null;
}

type OpenStep = { -readonly [Member in keyof StepView]: StepView[Member] };

/** The steps of a run, by task, as its events describe them. An event costs O(calls in progress of its task). */
export class StepLog {
  readonly #byTask = new Map<TaskId, OpenStep[]>();
  readonly #open = new Map<TaskId, OpenStep[]>();
  #seq = -1;
  #size = 0;

  /** Number of steps of all tasks. */
  get size(): number {
    return this.#size;
  }

  /** Returns the steps of a task, in the order in which they started. */
  of(taskId: TaskId): readonly StepView[] {
    return this.#byTask.get(taskId) ?? [];
  }

  /** Adds the next event. Events that the log contains already are ignored. */
  add(event: Event): void {
    if (event.seq <= this.#seq) return;
    this.#seq = event.seq;
    switch (event.type) {
      case "message_start":
        this.#start(event, "model", event.data.model?.modelId ?? "model");
        return;
      case "message_end":
        return this.#endModelCall(event);
      case "retry_start":
        return this.#end(event, this.#latest(event.taskId, "model"), "error");
      case "budget_lost":
        return this.#lose(event);
      case "tool_execution_start":
        this.#start(event, "tool", event.data.toolName, event.data.callId);
        return;
      case "tool_execution_end": {
        const { callId, status = "ok" } = event.data;
        return this.#end(event, this.#oldest(event.taskId, "tool", callId), status);
      }
      case "step_end":
        return this.#addStep(event);
      default:
        this.#addWait(event);
    }
  }

  #addWait(event: Event): void {
    switch (event.type) {
      case "approval_request":
        this.#start(event, "person", event.data.toolName, event.data.approvalId);
        return;
      case "approval_decision": {
        const { approvalId, decision } = event.data;
        const outcome = decision.decision === "approved" ? "ok" : "denied";
        return this.#end(event, this.#oldest(event.taskId, "person", approvalId), outcome);
      }
      case "spawn_wait":
        this.#start(event, "seat", "", "", event.data.childTaskId);
        return;
      case "seat_yield":
        this.#start(event, "paused", event.data.yieldsTo, "", event.data.taskId);
        return;
      case "seat_grant":
      case "seat_recall":
      case "seat_keep":
        this.#end(event, this.#latest(event.data.taskId, "seat"), "ok");
        return this.#end(event, this.#latest(event.data.taskId, "paused"), "ok");
      case "task_end":
        for (const step of this.#open.get(event.taskId) ?? []) close(step, event, "cut");
        this.#open.delete(event.taskId);
        return;
      default:
    }
  }

  #start({ seq, at, taskId: own }: Event, kind: StepKind, name: string, id = "", taskId = own): OpenStep {
    const step: OpenStep = {
      taskId,
      kind,
      name,
      id,
      startSeq: seq,
      startAt: at,
      endSeq: null,
      endAt: null,
      outcome: null,
      tokens: 0,
      costUsd: 0,
    };
    this.#size++;
    listIn(this.#byTask, taskId).push(step);
    listIn(this.#open, taskId).push(step);
    return step;
  }

  /** `message_end` names no `message_start`. With several calls in progress, the one whose start fits the duration ends. */
  #endModelCall(event: Event<"message_end">): void {
    const { usage, durationMs = 0 } = event.data;
    if (event.data.message.role !== "assistant") return;
    const startedAt = event.at - durationMs;
    const distance = ({ startAt }: StepView): number => Math.abs(startAt - startedAt);
    const calls = (this.#open.get(event.taskId) ?? []).filter(({ kind }) => kind === "model");
    const call = calls.reduce<OpenStep | undefined>(
      (best, each) => (best === undefined || distance(each) < distance(best) ? each : best),
      undefined,
    );
    if (call !== undefined && usage !== undefined) {
      call.tokens = totalTokens(usage);
      call.costUsd = usage.costUsd;
    }
    this.#end(event, call, "ok");
  }

  #lose(event: Event<"budget_lost">): void {
    const call = this.#oldest(event.taskId, "model");
    if (call === undefined) return;
    call.tokens = event.data.tokens;
    call.costUsd = event.data.costUsd;
    this.#end(event, call, "lost");
  }

  #addStep(event: Event<"step_end">): void {
    const { name, durationMs, status } = event.data;
    const step = this.#start(event, "step", name);
    step.startAt = event.at - durationMs;
    this.#end(event, step, status ?? "ok");
  }

  #oldest(taskId: TaskId, kind: StepKind, id?: string): OpenStep | undefined {
    return this.#open.get(taskId)?.find((step) => step.kind === kind && (id === undefined || step.id === id));
  }

  #latest(taskId: TaskId, kind: StepKind): OpenStep | undefined {
    return this.#open.get(taskId)?.findLast((step) => step.kind === kind);
  }

  #end(event: Event, step: OpenStep | undefined, outcome: NonNullable<StepView["outcome"]>): void {
    if (step === undefined) return;
    close(step, event, outcome);
    const open = listIn(this.#open, step.taskId);
    open.splice(open.indexOf(step), 1);
  }
}

function close(step: OpenStep, { seq, at }: Event, outcome: NonNullable<StepView["outcome"]>): void {
  step.endSeq = seq;
  step.endAt = at;
  step.outcome = outcome;
}

function listIn<Key, Value>(lists: Map<Key, Value[]>, key: Key): Value[] {
  const known = lists.get(key);
  if (known !== undefined) return known;
  const list: Value[] = [];
  lists.set(key, list);
  return list;
}
