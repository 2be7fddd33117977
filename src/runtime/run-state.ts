import {
  Fault,
  openHeadcount,
  openLedger,
  stepHeadcount,
  stepLedger,
  Priority,
  type CancellationStatus,
  type Commit,
  type Event,
  type Headcount,
  type HeadcountCommand,
  type HeadcountOutcome,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type Message,
  type StepAddress,
  type StepOutcome,
  type StepRecord,
  type TaskChange,
  type TaskId,
  type TaskOutcome,
  type TaskRecord,
  type UnknownPrice,
} from "../kernel/index.ts";

/** What a commit does to the state of its run; its number, and what it does elsewhere, aside. */
export type RunChange = Omit<Commit, "number" | "at" | "sessions" | "mail" | "inbox" | "topics">;

/** A task, as far as the journal knows it. */
export interface TaskState {
  readonly record: TaskRecord;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly steps: Map<StepAddress, StepRecord>;
  /** Steps begun and not recorded, with the seq of the event that says so. */
  readonly opened: Map<StepAddress, number>;
  /** Messages that drains gave it. */
  readonly drained: Set<string>;
  outcome: TaskOutcome | null;
  endedOn: StepAddress | null;
  crashes: number;
  cancelled: { readonly reason: string; readonly status: CancellationStatus } | null;
  /** How long it has been paused in all, and since when it is. Clocks stop meanwhile (H5). */
  pausedMs: number;
  pausedSince: number | null;
}

/** A run as the fold of its commits. The owner changes it ahead of the store; whatever is lost with the owner was never seen. */
export class RunState {
  readonly tasks = new Map<TaskId, TaskState>();
  readonly #resolutions = new Map<string, unknown[]>();
  #headcount: Headcount | undefined;
  #ledger: Ledger;
  nextCommit = 0;
  nextSeq = 0;
  nextTask = 0;
  /** The last place of mail that was consumed. */
  mailThrough = -1;
  ended = false;
  /** By order of a person: nothing starts until it is resumed. */
  paused = false;

  constructor(unknownPrice: UnknownPrice) {
    this.#ledger = openLedger(unknownPrice);
  }

  get ledger(): Ledger {
    return this.#ledger;
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

  /** Applies a stored commit. */
  fold(commit: Commit): void {
    this.nextCommit = commit.number + 1;
    for (const event of commit.events ?? []) this.noteEvent(event);
    this.apply(commit, commit.at);
    for (const command of commit.headcount ?? []) this.seat(command, commit.at);
    for (const command of commit.ledger ?? []) this.book(command);
  }

  noteEvent({ seq, type }: Event): void {
    this.nextSeq = seq + 1;
    this.ended = type === "run_end";
    if (type === "run_pause") this.paused = true;
    if (type === "run_resume") this.paused = false;
  }

  /** Everything but events, seats and money, which have outcomes of their own. */
  apply(
    { tasks = [], opens = [], steps = [], voids = [], resolves = [], mailThrough }: RunChange,
    at: number,
  ): void {
    for (const change of tasks) {
      if (change.type === "create") this.#create(change.task, at);
      else if (change.type === "end") endTask(this.task(change.taskId), change);
      else if (change.type === "reopen") this.#reopen(this.task(change.taskId));
      else if (change.type === "cancel") this.task(change.taskId).cancelled = change;
      else this.task(change.taskId).crashes = change.crashes;
    }
    for (const { taskId, wait, value } of resolves) {
      const key = `${taskId} ${wait}`;
      this.#resolutions.set(key, [...(this.#resolutions.get(key) ?? []), value]);
    }
    for (const { taskId, address, seq } of opens) this.task(taskId).opened.set(address, seq);
    for (const step of steps) {
      const task = this.task(step.taskId);
      task.steps.set(step.address, step);
      task.opened.delete(step.address);
      if (step.kind === "drain") noteDrained(task, step.outcome);
      if (step.kind === "wait") this.#consume(step.taskId, step.name);
    }
    for (const { taskId, address } of voids) this.task(taskId).steps.delete(address);
    if (mailThrough !== undefined) this.mailThrough = mailThrough;
  }

  /** A value that came for a wait nobody has taken yet. */
  resolution(taskId: TaskId, wait: string): { readonly value: unknown } | undefined {
    const values = this.#resolutions.get(`${taskId} ${wait}`);
    return values === undefined || values.length === 0 ? undefined : { value: values[0] };
  }

  seat(command: HeadcountCommand, at: number): HeadcountOutcome {
    const { state, outcome } = stepHeadcount(this.headcount, command);
    this.#headcount = state;
    if ("changes" in outcome) {
      for (const { taskId, change } of outcome.changes) {
        const task = this.tasks.get(taskId);
        if (task === undefined) continue;
        if (change === "paused") task.pausedSince = at;
        if (change === "recalled" && task.pausedSince !== null) {
          task.pausedMs += at - task.pausedSince;
          task.pausedSince = null;
        }
      }
    }
    return outcome;
  }

  book(command: LedgerCommand): LedgerOutcome {
    const { state, outcome } = stepLedger(this.#ledger, command);
    this.#ledger = state;
    return outcome;
  }

  #create(record: TaskRecord, at: number): void {
    const ordinal = Number(record.taskId.slice(1));
    this.nextTask = Math.max(this.nextTask, ordinal + 1);
    this.tasks.set(record.taskId, {
      record,
      startedAt: at,
      steps: new Map(),
      opened: new Map(),
      drained: new Set(),
      outcome: null,
      endedOn: null,
      crashes: 0,
      cancelled: null,
      pausedMs: 0,
      pausedSince: null,
    });
    const { spawnBudget, priority } = record.supervision;
    if (record.parentId === null) {
      this.#headcount ??= openHeadcount(spawnBudget, record.taskId, priority ?? Priority.NORMAL);
    }
  }

  /** A resumed task is not cancelled any more, and its crashes are forgiven. */
  #reopen(task: TaskState): void {
    task.outcome = null;
    task.cancelled = null;
    task.crashes = 0;
    this.ended = false;
  }

  #consume(taskId: TaskId, wait: string): void {
    const key = `${taskId} ${wait}`;
    const [, ...rest] = this.#resolutions.get(key) ?? [];
    if (rest.length > 0) this.#resolutions.set(key, rest);
    else this.#resolutions.delete(key);
  }
}

function endTask(task: TaskState, { outcome, endedOn }: Extract<TaskChange, { type: "end" }>): void {
  task.outcome = outcome;
  task.endedOn = endedOn ?? null;
}

function noteDrained({ drained }: TaskState, outcome: StepOutcome): void {
  if (outcome.kind !== "ok") return;
  for (const { id } of outcome.value as unknown as readonly Message[]) drained.add(id);
}
