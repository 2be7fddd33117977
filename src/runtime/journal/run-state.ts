import {
  addUsage,
  bookLedger,
  Fault,
  rootTaskId as root,
  HistoryRetention,
  noUsage,
  openHeadcount,
  openLedger,
  seatHeadcount,
  type CancellationStatus,
  type Commit,
  type Event,
  type Headcount,
  type HeadcountCommand,
  type HeadcountOutcome,
  type InputQueue,
  type JsonValue,
  type Ledger,
  type Message,
  type Resolution,
  type SessionChange,
  type SessionId,
  type StepAddress,
  type StepOpening,
  type StepRecord,
  type TaskChange,
  type TaskId,
  type TaskOutcome,
  type TaskRecord,
  type UnknownPrice,
  type Usage,
} from "../../kernel/index.ts";
import { BegunSteps } from "./begun-steps.ts";
import { ContentTable } from "./content-table.ts";
import type { TurnRecord } from "./turn-record.ts";
import { asksPerson, inboxDrain, queueWait, resolutionsTaken } from "./wait-names.ts";

/** What a commit does to the state of its run; its number, and what it does elsewhere, aside. */
export type RunChange = Omit<Commit, "number" | "at" | "erases" | "mail" | "inbox" | "topics">;

/** A task, as far as the journal knows it. */
export interface TaskState {
  readonly record: TaskRecord;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Of its present journal. */
  readonly steps: Map<StepAddress, StepRecord>;
  readonly opened: BegunSteps;
  /** Messages that drains gave it. */
  readonly drained: Message[];
  /** Those it answers for: what it was begun with, and what drains gave it. What a fork shares with its origin is the origin's to answer for. */
  given: readonly Message[];
  /** The ids of messages it has answered. */
  readonly replied: string[];
  /** Which of its journals this is, from 0 (J8), and what it started from. */
  journal: number;
  input: JsonValue;
  outcome: TaskOutcome | null;
  endedOn: readonly StepAddress[];
  /** Of its model calls recorded; a fork's begins with the fork. */
  usage: Usage;
  /** How often it had ended and went on. */
  resumed: number;
  /** Its code was started, and `task_start` says so. */
  begun: boolean;
  crashes: number;
  /** When its code last crashed. */
  crashedAt: number;
  cancelled: { readonly reason: string; readonly status: CancellationStatus } | null;
  /** Without a seat, after having had one. */
  unseated: boolean;
  /** How long its clock has stood still in all, and since when it does (H5, B5). */
  pausedMs: number;
  pausedSince: number | null;
}

type Held = Pick<TurnRecord, "contents">;

interface Writing {
  readonly taskId: TaskId;
  readonly sessionId: SessionId;
}

/** What came for a wait: a value, and of an input that was submitted the run it would have started (S5). */
export type Came = Pick<Resolution, "value" | "runId">;

const none: readonly never[] = [];

/** A run as the fold of its commits. The owner changes it ahead of the store; whatever is lost with the owner was never seen. */
export class RunState {
  readonly tasks = new Map<TaskId, TaskState>();
  readonly contents = new ContentTable();
  /** By task and name; made with the first. */
  #resolutions: Map<string, readonly Came[]> | undefined;
  #headcount: Headcount | undefined;
  readonly ledger: Ledger;
  /** Which tasks have entries in which sessions; made with the first. */
  #wrote: Writing[] | undefined;
  nextCommit = 0;
  nextSeq = 0;
  nextTask = 0;
  /** Tasks that have not ended. */
  live = 0;
  /** The last place of mail that was consumed. */
  mailThrough = -1;
  ended = false;
  /** It shares what was before with another run. */
  #isFork = false;
  /** By order of a person: nothing starts until it is resumed. */
  paused = false;
  /** Of all model calls recorded; a fork's begins with the fork. */
  usage: Usage = noUsage;

  constructor(unknownPrice: UnknownPrice) {
    this.ledger = openLedger(unknownPrice);
  }

  get headcount(): Headcount {
    if (this.#headcount === undefined) throw new Fault("store_corrupt", "the run has no root task");
    return this.#headcount;
  }

  task(taskId: TaskId): TaskState {
    const task = this.tasks.get(taskId);
    if (task === undefined) throw new Fault("not_found", `there is no task ${taskId} in this run`);
    return task;
  }

  /** Nobody goes by it any more. What refers to it for a while yet is not to keep all there was in the run. */
  dispose(): void {
    for (const { steps } of this.tasks.values()) steps.clear();
  }

  /** Applies a stored commit. */
  fold(commit: Commit): void {
    const { number, at, events, tasks, headcount, ledger } = commit;
    this.nextCommit = number + 1;
    if (events !== undefined) for (const event of events) this.noteEvent(event);
    this.apply(commit, at);
    if (headcount !== undefined) for (const command of headcount) this.seat(command, at);
    if (ledger !== undefined) for (const command of ledger) bookLedger(this.ledger, command);
    if (events === undefined) return;
    for (const event of events) {
      // Of a task that this very commit creates.
      if (event.type === "task_start" && tasks !== undefined) this.#noteBeginning(event);
      if (event.type === "run_carry_over") this.carryOver(event.data.kind);
      if (event.type === "run_fork") this.#forget();
    }
  }

  /** The first input of a queue went to another run. */
  carryOver(queue: InputQueue): void {
    this.#take(root, queueWait(queue), 1);
  }

  /** What a fork shares with its origin was the origin's to pay, and is the origin's to answer for. */
  #forget(): void {
    this.#isFork = true;
    this.usage = noUsage;
    for (const task of this.tasks.values()) {
      task.usage = noUsage;
      task.given = none;
    }
  }

  /** Whether an answer to this message is this run's to give. */
  answersFor(messageId: string): boolean {
    if (!this.#isFork) return true;
    for (const { given } of this.tasks.values()) if (given.some(({ id }) => id === messageId)) return true;
    return false;
  }

  noteEvent(event: Event): void {
    const { seq, type, at } = event;
    this.nextSeq = seq + 1;
    this.ended = type === "run_end";
    if (type === "task_start") this.#noteBeginning(event);
    if (type !== "run_pause" && type !== "run_resume") return;
    this.paused = type === "run_pause";
    for (const task of this.tasks.values()) this.#setClock(task, at);
  }

  #noteBeginning({ taskId }: Event): void {
    const task = this.tasks.get(taskId);
    if (task !== undefined) task.begun = true;
  }

  /**
   * Everything but events, seats and money, which have outcomes of their own. A commit's voids are of records that stood before
   * it; what it records itself stands.
   */
  apply({ tasks, opens, steps, voids, resolves, sessions, mailThrough }: RunChange, at: number): void {
    if (sessions !== undefined) for (const change of sessions) this.#noteEntries(change);
    if (voids !== undefined) for (const { taskId, address } of voids) this.task(taskId).steps.delete(address);
    if (tasks !== undefined) for (const change of tasks) this.#change(change, at);
    if (resolves !== undefined) for (const resolution of resolves) this.#keep(resolution);
    if (opens !== undefined) for (const opening of opens) this.open(opening, at);
    if (steps !== undefined) for (const step of steps) this.record(step, at);
    if (mailThrough !== undefined) this.mailThrough = mailThrough;
  }

  #keep({ taskId, wait, value, runId }: Resolution): void {
    const key = `${taskId} ${wait}`;
    const came = runId === undefined ? { value } : { value, runId };
    this.#resolutions ??= new Map();
    this.#resolutions.set(key, [...(this.#resolutions.get(key) ?? []), came]);
  }

  open({ taskId, address, seq }: StepOpening, at: number, task = this.task(taskId)): void {
    task.opened.set(address, seq);
    if (asksPerson(address)) this.#setClock(task, at);
  }

  record(step: StepRecord, at: number, task = this.task(step.taskId)): void {
    const { kind, name, address, outcome } = step;
    task.steps.set(address, step);
    if (task.opened.delete(address) && asksPerson(address)) this.#setClock(task, at);
    if (kind === "tool") return;
    if (kind === "llm") {
      if (outcome.kind === "ok") this.#use(task, outcome.value as unknown as { usage: Usage });
      return;
    }
    const taken = resolutionsTaken(step);
    if (taken !== undefined) this.#take(step.taskId, taken.wait, taken.count);
    if (outcome.kind === "failed") return;
    if (kind === "turn") this.#hold(task.record, outcome.value as unknown as Held | null);
    if (kind === "send" && name.startsWith("reply ")) task.replied.push(name.slice("reply ".length));
    if (kind !== "drain" || name !== inboxDrain) return;
    const messages = outcome.value as unknown as readonly Message[];
    for (const message of messages) task.drained.push(message);
    if (messages.length > 0) task.given = [...task.given, ...messages];
  }

  #use(task: TaskState, { usage }: { readonly usage: Usage }): void {
    const isOnly = this.usage === task.usage;
    task.usage = addUsage(task.usage, usage);
    this.usage = isOnly ? task.usage : addUsage(this.usage, usage);
  }

  /** W2: the first of the values that came for a wait and that no step has taken. */
  resolution(taskId: TaskId, wait: string): Came | undefined {
    return this.resolutions(taskId, wait)[0];
  }

  /** Something came that no step has taken. */
  get hasCome(): boolean {
    return this.#resolutions !== undefined && this.#resolutions.size > 0;
  }

  /** All of them, in the order in which they came. */
  resolutions(taskId: TaskId, wait: string): readonly Came[] {
    if (this.#resolutions === undefined || this.#resolutions.size === 0) return none;
    return this.#resolutions.get(`${taskId} ${wait}`) ?? none;
  }

  seat(command: HeadcountCommand, at: number): HeadcountOutcome {
    const outcome = seatHeadcount(this.headcount, command);
    if (!("changes" in outcome)) return outcome;
    for (const { taskId, change } of outcome.changes) {
      const task = this.tasks.get(taskId);
      if (task === undefined || (change !== "paused" && change !== "recalled")) continue;
      task.unseated = change === "paused";
      this.#setClock(task, at);
    }
    return outcome;
  }

  #noteEntries(change: SessionChange): void {
    if (change.type === "append" || change.type === "say") {
      const { sessionId } = change;
      const { taskId } = change.type === "say" ? change.batch : change.entry;
      if (taskId !== null && !this.sessionsOf(taskId).includes(sessionId))
        (this.#wrote ??= []).push({ taskId, sessionId });
    }
    if (change.type === "remove") {
      const { sessionId, taskId } = change;
      this.#wrote = this.#wrote?.filter((each) => each.taskId !== taskId || each.sessionId !== sessionId);
    }
  }

  /** In which it has entries. */
  sessionsOf(taskId: TaskId): readonly SessionId[] {
    if (this.#wrote === undefined) return none;
    const sessions: SessionId[] = [];
    for (const each of this.#wrote) if (each.taskId === taskId) sessions.push(each.sessionId);
    return sessions;
  }

  #change(change: TaskChange, at: number): void {
    if (change.type === "create") {
      this.#create(change.task, at);
      return;
    }
    const task = this.task(change.taskId);
    switch (change.type) {
      case "end":
        if (task.outcome === null) this.live--;
        task.outcome = change.outcome;
        task.endedOn = change.endedOn ?? none;
        break;
      case "reopen":
        // A resumed task is not cancelled any more, and its crashes are forgiven.
        if (task.outcome !== null) this.live++;
        task.outcome = null;
        task.resumed++;
        task.cancelled = null;
        task.crashes = 0;
        this.ended = false;
        break;
      case "cancel":
        task.cancelled = change;
        break;
      case "crash":
        task.crashes = change.crashes;
        task.crashedAt = at;
        break;
      case "continue":
        task.steps.clear();
        task.opened.clear();
        task.journal++;
        task.input = change.input;
        break;
    }
    this.#setClock(task, at);
  }

  #create(record: TaskRecord, at: number): void {
    const ordinal = Number(record.taskId.slice(1));
    this.nextTask = Math.max(this.nextTask, ordinal + 1);
    this.live++;
    this.tasks.set(record.taskId, {
      record,
      startedAt: at,
      steps: new Map(),
      opened: new BegunSteps(),
      drained: [],
      given: record.messages,
      replied: [],
      journal: 0,
      input: record.input,
      outcome: null,
      endedOn: none,
      usage: noUsage,
      resumed: 0,
      begun: false,
      crashes: 0,
      crashedAt: 0,
      cancelled: null,
      unseated: false,
      pausedMs: 0,
      pausedSince: null,
    });
    const { spawnBudget, priority } = record.supervision;
    if (record.parentId === null) this.#headcount ??= openHeadcount(spawnBudget, record.taskId, priority);
  }

  /** H5, B5: a task's clock stands still while it is paused, while it waits for a person, and once it has ended. */
  #setClock(task: TaskState, at: number): void {
    const stands =
      this.paused || task.unseated || task.outcome !== null || task.opened.keys().some(asksPerson);
    if (stands) {
      task.pausedSince ??= at;
    } else if (task.pausedSince !== null) {
      task.pausedMs += at - task.pausedSince;
      task.pausedSince = null;
    }
  }

  /** Of a turn that retention erased, nothing is left. */
  #hold({ supervision }: TaskRecord, held: Held | null): void {
    const lasts = supervision.retention !== HistoryRetention.NONE;
    const contents = held?.contents ?? {};
    for (const name in contents) this.contents.hold(name, contents[name] as JsonValue, lasts);
  }

  #take(taskId: TaskId, wait: string, count: number): void {
    const key = `${taskId} ${wait}`;
    const rest = this.#resolutions?.get(key)?.slice(count) ?? none;
    if (rest.length > 0) this.#resolutions?.set(key, rest);
    else this.#resolutions?.delete(key);
  }
}
