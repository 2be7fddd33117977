import { totalTokens, type Event, type TaskId } from "../../kernel/index.ts";
import { continuesTask, startsCallAgain } from "./continued-task.ts";
import { answerWords, argumentOf, excerpt } from "./excerpt.ts";
import { isOfProgram, RecordedCalls, type StoredCalls } from "./recorded-calls.ts";

/** Returns the list under a key. If it is missing, an empty list is added. */
function listIn<Key, Value>(lists: Map<Key, Value[]>, key: Key): Value[] {
  const known = lists.get(key);
  if (known !== undefined) return known;
  const list: Value[] = [];
  lists.set(key, list);
  return list;
}

/**
 * Kinds of steps: a model call, a tool call, a step of `ctx.step`, a question to a person, a pause, and a wait for
 * a seat.
 */
export type StepKind = "model" | "tool" | "step" | "person" | "paused" | "seat";

/**
 * One bar of the timeline. The same steps are used for all positions of a run: at a position before `endSeq` the
 * step is in progress, and before `startSeq` it does not exist.
 */
export interface StepView {
  readonly taskId: TaskId;
  readonly kind: StepKind;
  /**
   * Name of the model, tool or step. For a question, the tool that asks. For a wait for a seat, the task that took
   * the seat, if known.
   */
  readonly name: string;
  /** Subject of the call: the argument of a tool call, or the answer of a model call after it has ended. */
  readonly about: string;
  /**
   * The event with which a person changed the arguments of a tool call, and the subject of the call before this
   * change.
   */
  readonly edited: { readonly seq: number; readonly asked: string } | null;
  /** Id of the call or of the question. Empty for other kinds. */
  readonly id: string;
  readonly startSeq: number;
  /**
   * Sequence number of the `message_start` event of a model call, even if the call is a repetition. For other
   * kinds, `startSeq`.
   */
  readonly callSeq: number;
  readonly startAt: number;
  /** Sequence number of the event that ended the step. `null` while the step is in progress. */
  readonly endSeq: number | null;
  readonly endAt: number | null;
  /**
   * The result of the step. `lost`: the worker crashed during the call. `cut`: the step was stopped before it
   * ended, or the call is repeated by a fork or by the worker that took over the run. `refused`: the budget was not
   * sufficient, so the call was not made. `null` while the step is in progress.
   */
  readonly outcome: "ok" | "error" | "denied" | "lost" | "cut" | "refused" | null;
  /** Whether the call repeats a lost or failed call. */
  readonly isAgain: boolean;
  /** Present if a program reports this call, which it makes with its own tool. */
  readonly isOfProgram?: true;
  readonly tokens: number;
  /** Cost of a model call. `null` if its price is unknown. */
  readonly costUsd: number | null;
}

type OpenStep = { -readonly [Member in keyof StepView]: StepView[Member] };

/**
 * Returns the step in its state after the event `seq`: a step that ended later is in progress. `null` if it had not
 * started.
 */
export function stepAt(later: StepView, seq: number): StepView | null {
  if (later.startSeq > seq) return null;
  const { edited } = later;
  const step = edited === null || edited.seq <= seq ? later : { ...later, about: edited.asked, edited: null };
  if (step.endSeq === null || step.endSeq <= seq) return step;
  return {
    ...step,
    endSeq: null,
    endAt: null,
    outcome: null,
    tokens: 0,
    costUsd: 0,
    about: step.kind === "model" ? "" : step.about,
  };
}

/** The newest steps of a run and the other state of a step log, as JSON. */
export interface StoredSteps {
  /** Number of the last event, and its time. */
  readonly seq: number;
  readonly at: number;
  /**
   * Sequence number of an event. `steps` contains all steps in progress, and all steps that ended at or after this
   * event.
   */
  readonly first: number;
  /** The steps of each task in the order in which they started. */
  readonly steps: readonly StepView[];
  /** Tasks that yield their seats, each with the task that takes the seat. */
  readonly takers: readonly (readonly [TaskId, TaskId])[];
  /** Ended tasks, each with the tool calls that were still in progress at its end. */
  readonly endedTasks: readonly (readonly [TaskId, readonly StepView[]])[];
  readonly parents: readonly (readonly [TaskId, TaskId | null])[];
  /** Open questions about tool calls, each with the id of the call. */
  readonly asked: readonly (readonly [approvalId: string, callId: string])[];
  readonly calls: StoredCalls;
  /** For each task, the sequence number of the first event of a failed model call that may be repeated. */
  readonly failed: readonly (readonly [TaskId, startSeq: number])[];
  /** The last recovery, with the time of the last event before it and the number of lost calls. */
  readonly recovery: Recovery;
}

/** The last recovery. `isCrash` is `true` if the previous owner crashed; otherwise it released the run. */
interface Recovery {
  readonly seq: number;
  readonly lastAt: number;
  readonly lost: number;
  readonly isCrash: boolean;
}

export interface StepLogOptions {
  /** Called for every step when it has ended. */
  readonly onEnd?: (step: StepView) => void;
  /**
   * Minimum number of ended steps that the log keeps. When it contains twice as many, the oldest are removed.
   * Default: all are kept.
   */
  readonly most?: number;
  /** The log from which this one continues. If absent, it starts before the first event. */
  readonly from?: StoredSteps;
}

/** The steps of a run, by task, calculated from its events. An event takes O(calls in progress of its task). */
export class StepLog {
  readonly #byTask = new Map<TaskId, OpenStep[]>();
  readonly #open = new Map<TaskId, OpenStep[]>();
  /** The ended steps in the order of their ends. */
  #ended: OpenStep[] = [];
  /** The tasks that take seats of others, by the task that yields its seat. */
  readonly #takers: Map<TaskId, TaskId>;
  readonly #onEnd: (step: StepView) => void;
  readonly #most: number;
  /** The ended tasks, with the tool calls that were still in progress at their end. */
  readonly #endedTasks: Map<TaskId, readonly StepView[]>;
  readonly #parents: Map<TaskId, TaskId | null>;
  /** The calls of open questions, by the id of the question. */
  readonly #asked: Map<string, string>;
  readonly #calls: RecordedCalls;
  /**
   * The last model call of each task if it failed, until the task does something else. If another attempt follows,
   * it continues this call.
   */
  readonly #failed = new Map<TaskId, OpenStep>();
  #first: number;
  #seq: number;
  #at: number;
  #recovery: Recovery;

  constructor({ onEnd = () => undefined, most = Infinity, from }: StepLogOptions = {}) {
    this.#onEnd = onEnd;
    this.#most = most;
    this.#first = from?.first ?? 0;
    this.#seq = from?.seq ?? -1;
    this.#at = from?.at ?? 0;
    this.#takers = new Map(from?.takers);
    this.#endedTasks = new Map(from?.endedTasks);
    this.#parents = new Map(from?.parents);
    this.#asked = new Map(from?.asked);
    this.#calls = new RecordedCalls(from?.calls);
    // No run starts with an unreported call, so that no event follows this recovery.
    this.#recovery = { ...(from?.recovery ?? { seq: -1, lastAt: 0, lost: 0, isCrash: false }) };
    for (const step of from?.steps ?? []) this.#restore({ ...step });
    this.#ended = this.#ended.toSorted((one, other) => (one.endSeq ?? 0) - (other.endSeq ?? 0));
    for (const [taskId, startSeq] of from?.failed ?? []) {
      const call = this.#byTask.get(taskId)?.find((step) => step.startSeq === startSeq);
      if (call !== undefined) this.#failed.set(taskId, call);
    }
  }

  /** Number of the last event, or -1. */
  get seq(): number {
    return this.#seq;
  }

  /** Sequence number of an event. The log contains all steps that ended at or after it. 0 if no steps were removed. */
  get first(): number {
    return this.#first;
  }

  /** Returns the data that another log needs to continue, with the `most` steps that ended last. */
  stored(most: number): StoredSteps {
    const cut = Math.max(0, this.#ended.length - most);
    const dropped = new Set(this.#ended.slice(0, cut));
    return {
      seq: this.#seq,
      at: this.#at,
      first: cut === 0 ? this.#first : (this.#ended[cut - 1]?.endSeq ?? 0) + 1,
      steps: [...this.#byTask.values()].flat().filter((step) => !dropped.has(step)),
      takers: [...this.#takers],
      endedTasks: [...this.#endedTasks],
      parents: [...this.#parents],
      asked: [...this.#asked],
      calls: this.#calls.stored,
      failed: [...this.#failed].map(([taskId, { startSeq }]) => [taskId, startSeq]),
      recovery: { ...this.#recovery },
    };
  }

  /**
   * Yields the steps that were in progress after the event `seq`, if they are still in the log. Takes O(steps since
   * then).
   */
  *inProgressAt(seq: number): Iterable<StepView> {
    for (let at = this.#ended.length - 1; at >= 0; at--) {
      const step = this.#ended[at];
      if (step === undefined || (step.endSeq ?? 0) <= seq) break;
      if (step.startSeq <= seq) yield step;
    }
    for (const step of this.open()) if (step.startSeq <= seq) yield step;
  }

  /** The steps in progress, task by task. */
  *open(): Iterable<StepView> {
    for (const steps of this.#open.values()) yield* steps;
  }

  /** Returns the steps of a task, in the order in which they started. */
  of(taskId: TaskId): readonly StepView[] {
    return this.#byTask.get(taskId) ?? [];
  }

  /** Returns the number of calls of a task that the recovery with the event `seq` read from the journal. */
  replayedAt(seq: number, taskId: TaskId): number {
    return this.#calls.replayedAt(seq, taskId);
  }

  /** Adds the next event. Events that the log already contains are ignored. */
  add(event: Event): void {
    if (event.seq <= this.#seq) return;
    if (event.type === "run_recover") this.#recover(event);
    this.#seq = event.seq;
    this.#calls.add(event);
    this.#parents.set(event.taskId, event.parentId);
    if (continuesTask(event)) this.#continue(event, event.taskId);
    this.#addCall(event);
    this.#at = event.at;
  }

  #recover({ seq, data: { recoveries } }: Event<"run_recover">): void {
    this.#recovery = { seq, lastAt: this.#at, lost: 0, isCrash: recoveries !== undefined };
    this.#calls.recover(seq, (taskId) => this.#endedTasks.has(taskId));
  }

  /**
   * Processes an event of a task that continues after its end. Its tool calls, such as the call of a report,
   * continue without new start events.
   */
  #continue(event: Event, taskId: TaskId): void {
    const cut = this.#endedTasks.get(taskId);
    if (cut === undefined) return;
    this.#endedTasks.delete(taskId);
    for (const { name, id, about } of cut) this.#start(event, "tool", name, id, taskId).about = about;
    const parentId = this.#parents.get(taskId) ?? null;
    if (parentId !== null) this.#continue(event, parentId);
  }

  #addCall(event: Event): void {
    switch (event.type) {
      case "message_start":
        if (isOfProgram(event)) return;
        this.#failed.delete(event.taskId);
        this.#start(event, "model", event.data.model?.modelId ?? "model");
        return;
      case "message_end":
        return isOfProgram(event) ? undefined : this.#endModelCall(event);
      case "attempt_start":
        return this.#endEarlierAttempt(event);
      case "retry_start":
        return this.#retry(event, event.data.delayMs);
      case "model_fallback":
        return this.#retry(event, 0, event.data.to.modelId);
      case "retry_end":
        return this.#endRetry(event);
      case "budget_lost":
        return this.#lose(event);
      case "tool_execution_start": {
        this.#failed.delete(event.taskId);
        const { toolName, callId, input } = event.data;
        // A call that is made again after a crash has the same id, and stays one step.
        const call =
          this.#oldest(event.taskId, "tool", callId) ?? this.#start(event, "tool", toolName, callId);
        call.about = excerpt(argumentOf(input));
        if (isOfProgram(event)) call.isOfProgram = true;
        return;
      }
      case "tool_execution_end": {
        const { callId, status = "ok" } = event.data;
        return this.#end(event, this.#oldest(event.taskId, "tool", callId), status);
      }
      case "step_end": {
        const { name, status = "ok" } = event.data;
        return this.#addStep(event, name, status);
      }
      case "metered_call": {
        const { model, status, usage } = event.data;
        return this.#addStep(event, model.modelId, status === "ok" ? "ok" : "error", usage?.costUsd ?? 0);
      }
      default:
        this.#addWait(event);
    }
  }

  /** Ends the calls of a program. They end together with its attempt, and with the worker's process. */
  #endEarlierAttempt(event: Event<"attempt_start">): void {
    const { isCrash, lastAt } = this.#recovery;
    const open =
      this.#open.get(event.taskId)?.filter(({ isOfProgram: isForeign }) => isForeign === true) ?? [];
    for (const step of open)
      this.#end(
        { ...event, at: Math.max(step.startAt, isCrash ? lastAt : event.at) },
        step,
        isCrash ? "lost" : "cut",
      );
  }

  #addWait(event: Event): void {
    switch (event.type) {
      case "approval_request": {
        const { approvalId, toolName, kind, callId } = event.data;
        this.#start(event, "person", toolName, approvalId);
        if (kind === "tool_call" || kind === "foreign_tool_call") this.#asked.set(approvalId, callId);
        return;
      }
      case "approval_decision":
        return this.#decide(event);
      case "spawn_wait":
        this.#start(event, "seat", "", "", event.data.childTaskId);
        return;
      case "seat_yield":
        this.#takers.set(event.data.taskId, event.data.yieldsTo);
        return;
      case "seat_pause":
        this.#start(event, "paused", this.#takers.get(event.data.taskId) ?? "", "", event.data.taskId);
        return;
      case "seat_grant":
      case "seat_recall":
      case "seat_keep":
        this.#end(event, this.#latest(event.data.taskId, "seat"), "ok");
        return this.#end(event, this.#latest(event.data.taskId, "paused"), "ok");
      case "task_end":
        return this.#endAll(event);
      case "run_fork":
        return this.#fork(event);
      default:
    }
  }

  /** Ends a question. If the person changed the arguments, they replace those of the call. */
  #decide(event: Event<"approval_decision">): void {
    const { approvalId, decision } = event.data;
    const isApproved = decision.decision === "approved";
    this.#end(event, this.#oldest(event.taskId, "person", approvalId), isApproved ? "ok" : "denied");
    const callId = this.#asked.get(approvalId);
    this.#asked.delete(approvalId);
    const call = callId === undefined ? undefined : this.#oldest(event.taskId, "tool", callId);
    if (!isApproved || decision.input === undefined || call === undefined) return;
    call.edited = { seq: event.seq, asked: call.about };
    call.about = excerpt(argumentOf(decision.input));
  }

  #start({ seq, at, taskId: own }: Event, kind: StepKind, name: string, id = "", taskId = own): OpenStep {
    const step: OpenStep = {
      taskId,
      kind,
      name,
      about: "",
      edited: null,
      id,
      startSeq: seq,
      callSeq: seq,
      startAt: at,
      endSeq: null,
      endAt: null,
      outcome: null,
      tokens: 0,
      costUsd: 0,
      isAgain: false,
    };
    listIn(this.#byTask, taskId).push(step);
    listIn(this.#open, taskId).push(step);
    return step;
  }

  /**
   * Ends a model call. `message_end` does not name its `message_start`. If several calls are in progress, the call
   * whose start matches the duration ends.
   */
  #endModelCall(event: Event<"message_end">): void {
    const { usage, durationMs = 0, message, model } = event.data;
    if (message.role !== "assistant") return;
    this.#failed.delete(event.taskId);
    const startedAt = event.at - durationMs;
    const distance = ({ startAt }: StepView): number => Math.abs(startAt - startedAt);
    const calls = (this.#open.get(event.taskId) ?? []).filter(({ kind }) => kind === "model");
    const call = calls.reduce<OpenStep | undefined>(
      (best, each) => (best === undefined || distance(each) < distance(best) ? each : best),
      undefined,
    );
    if (call !== undefined) call.about = answerWords(message);
    // Middleware reports its retries when the call has ended.
    if (call?.isAgain === true) call.startAt = Math.min(call.startAt, startedAt);
    // A fork or a fallback may have replaced the model that the start of the call names.
    if (call !== undefined && model !== undefined) call.name = model.modelId;
    if (call !== undefined && usage !== undefined) {
      call.tokens = totalTokens(usage);
      call.costUsd = usage.costUsd;
    }
    this.#end(event, call, "ok");
  }

  /**
   * Starts the next attempt of a model call. It follows after a delay, without a `message_start`. An attempt that
   * was charged as lost has ended before. The repeated call of a tool has the same event; it is recognized because
   * no model call is in progress or has just failed.
   */
  #retry(event: Event, delayMs: number, model?: string): void {
    const failed = this.#failed.get(event.taskId);
    const call = failed ?? this.#latest(event.taskId, "model");
    if (call === undefined) return;
    this.#failed.delete(event.taskId);
    if (failed === undefined) this.#end(event, call, "error");
    else failed.outcome = "error";
    const again = this.#start(event, "model", model ?? call.name);
    again.isAgain = true;
    again.callSeq = call.callSeq;
    again.startAt = event.at + delayMs;
  }

  /** Ends a later attempt that failed, unless it was charged as lost before. */
  #endRetry(event: Event<"retry_end">): void {
    if (event.data.success || this.#failed.has(event.taskId)) return;
    const call = this.#latest(event.taskId, "model");
    if (call?.isAgain !== true) return;
    this.#end(event, call, "error");
    this.#failed.set(event.taskId, call);
  }

  /**
   * Ends a lost call. A recovery charges the calls that were in progress when the previous owner crashed, and then
   * repeats them without a `message_start`.
   */
  #lose(event: Event<"budget_lost">): void {
    const { seq, lastAt, lost, isCrash } = this.#recovery;
    const isRecovery = event.seq === seq + lost + 1;
    if (isRecovery) this.#recovery = { ...this.#recovery, lost: lost + 1 };
    const call = this.#oldest(event.taskId, "model");
    if (call === undefined) return;
    call.tokens = event.data.tokens;
    call.costUsd = event.data.costUsd;
    if (!isRecovery) {
      this.#failed.set(event.taskId, call);
      return this.#end(event, call, "cut");
    }
    this.#end({ ...event, at: Math.max(call.startAt, lastAt) }, call, isCrash ? "lost" : "cut");
    const again = this.#start(event, "model", call.name);
    again.isAgain = true;
    again.callSeq = call.callSeq;
  }

  #endAll(event: Event<"task_end">): void {
    const isStopped = event.data.status === "budget_exhausted";
    const open = this.#open.get(event.taskId) ?? [];
    for (const step of open) this.#close(step, event, isStopped && step.kind === "model" ? "refused" : "cut");
    this.#endedTasks.set(
      event.taskId,
      open.filter(({ kind }) => kind === "tool"),
    );
    this.#open.delete(event.taskId);
    this.#failed.delete(event.taskId);
  }

  /**
   * Processes the start of a fork. Steps in progress at the cut are split: the first part ends with the last shared
   * event, and the fork continues the step. With an input, other instructions or other tools, the model call of the
   * changed task has a new `message_start`.
   */
  #fork(event: Event<"run_fork">): void {
    const { changedTask = event.taskId } = event.data;
    const renewed = startsCallAgain(event.data) ? this.#latest(changedTask, "model") : undefined;
    for (const step of [...this.#open.values()].flat()) {
      this.#end({ ...event, at: Math.max(step.startAt, this.#at) }, step, "cut");
      if (step === renewed) continue;
      const isChanged = step.kind === "model" && step.taskId === changedTask;
      const name = isChanged ? (event.data.model?.modelId ?? step.name) : step.name;
      const again = this.#start(event, step.kind, name, step.id, step.taskId);
      again.about = step.about;
      again.edited = step.edited;
      again.isAgain = step.kind === "model";
      if (again.isAgain) again.callSeq = step.callSeq;
    }
  }

  /** Adds a step for which only the end has an event. */
  #addStep(
    event: Event<"step_end" | "metered_call">,
    name: string,
    outcome: "ok" | "error",
    costUsd = 0,
  ): void {
    const step = this.#start(event, "step", name);
    step.costUsd = costUsd;
    step.startAt = event.at - event.data.durationMs;
    this.#end(event, step, outcome);
  }

  #oldest(taskId: TaskId, kind: StepKind, id?: string): OpenStep | undefined {
    return this.#open.get(taskId)?.find((step) => step.kind === kind && (id === undefined || step.id === id));
  }

  #latest(taskId: TaskId, kind: StepKind): OpenStep | undefined {
    return this.#open.get(taskId)?.findLast((step) => step.kind === kind);
  }

  #end(event: Event, step: OpenStep | undefined, outcome: NonNullable<StepView["outcome"]>): void {
    if (step === undefined) return;
    const open = listIn(this.#open, step.taskId);
    open.splice(open.indexOf(step), 1);
    this.#close(step, event, outcome);
  }

  #close(step: OpenStep, { seq, at }: Event, outcome: NonNullable<StepView["outcome"]>): void {
    step.endSeq = seq;
    step.endAt = at;
    step.outcome = outcome;
    this.#ended.push(step);
    if (this.#ended.length >= 2 * this.#most) this.#drop(this.#ended.length - this.#most);
    this.#onEnd(step);
  }

  #drop(count: number): void {
    this.#first = (this.#ended[count - 1]?.endSeq ?? 0) + 1;
    const dropped = new Set(this.#ended.splice(0, count));
    for (const taskId of new Set([...dropped].map((step) => step.taskId)))
      this.#byTask.set(
        taskId,
        listIn(this.#byTask, taskId).filter((step) => !dropped.has(step)),
      );
  }

  #restore(step: OpenStep): void {
    listIn(this.#byTask, step.taskId).push(step);
    if (step.endSeq === null) listIn(this.#open, step.taskId).push(step);
    else this.#ended.push(step);
  }
}
