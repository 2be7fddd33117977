import {
  Fault,
  type Clock,
  type Commit,
  type Event,
  type EventDraft,
  type HeadcountCommand,
  type HeadcountOutcome,
  type LedgerCommand,
  type LedgerOutcome,
  type Lease,
  type Rest,
  type StepOpening,
  type StepRecord,
  type Store,
  type Submission,
  type TaskId,
} from "../../kernel/index.ts";
import type { IdleFlusher, FlushableLog } from "../process/idle-flusher.ts";
import type { RunState, TaskState } from "./run-state.ts";

/** What may be added to the next commit. */
export type Addition = Omit<Partial<Commit>, "number" | "at" | "events" | "headcount" | "ledger">;

/** A commit in the making. Its lists grow in place: a step adds to it several times. */
type Draft = {
  -readonly [Key in keyof Commit]?: Commit[Key] extends readonly (infer Item)[] | undefined
    ? Item[] | undefined
    : Commit[Key];
};

/** With room for what most commits have: members that come one by one cost more than all at once. */
function newDraft(): Draft {
  return { number: 0, at: 0, opens: undefined, steps: undefined, events: undefined, ledger: undefined };
}

export interface RunLogOptions {
  readonly store: Store;
  readonly lease: Lease;
  readonly state: RunState;
  readonly clock: Clock;
  readonly idleWrites: IdleFlusher;
  readonly observers: LogObservers;
  readonly writer: LogWriter;
}

export interface LogObservers {
  /** These are durable, and were not before. */
  show(events: readonly Event[]): void;
}

export interface LogWriter {
  /** The run cannot be written to any more: the lease is lost, or the store fails. */
  broken(fault: Fault): void;
}

/**
 * The one way an owner writes. What is added changes the state at once and goes into the next commit; `flush` makes it durable. One
 * commit per step comes out of that: a record waits for the next effect, whose reservation rides with it (B3).
 */
export class RunLog implements FlushableLog {
  readonly lease: Lease;
  readonly #store: Store;
  readonly #state: RunState;
  readonly #clock: Clock;
  readonly #idleWrites: IdleFlusher;
  readonly #observers: LogObservers;
  readonly #writer: LogWriter;
  #draft = newDraft();
  /** The events of the next commit, at the front; behind them may be some of earlier ones: a list that grows each time holds more than it needs. */
  readonly #told: Event[] = [];
  #toldCount = 0;
  /** When the last of it was added; 0 where that is not known. */
  #addedAt = 0;
  #submissions: Submission[] | undefined;
  #dirty = false;
  #writing: Promise<void> | undefined;
  /** The commit that was being made when it was last looked whether one is left to be written by itself. */
  #watched: Draft | undefined;
  #broken: Fault | undefined;
  #isClosed = false;

  constructor({ store, lease, state, clock, idleWrites, observers, writer }: RunLogOptions) {
    this.lease = lease;
    this.#store = store;
    this.#state = state;
    this.#clock = clock;
    this.#idleWrites = idleWrites;
    this.#observers = observers;
    this.#writer = writer;
  }

  add(addition: Addition, at = this.#clock.now()): void {
    if (at > this.#addedAt) this.#addedAt = at;
    this.#state.apply(addition, at);
    for (const key in addition) this.#put(key as keyof Addition, addition[key as keyof Addition]);
  }

  /** A step has begun. */
  open(opening: StepOpening, at: number, task: TaskState): void {
    if (at > this.#addedAt) this.#addedAt = at;
    this.#state.open(opening, at, task);
    if (this.#draft.opens === undefined) this.#draft.opens = [opening];
    else this.#draft.opens.push(opening);
    if (!this.#dirty) this.#touch();
  }

  record(step: StepRecord, at: number, task: TaskState): void {
    if (at > this.#addedAt) this.#addedAt = at;
    this.#state.record(step, at, task);
    if (this.#draft.steps === undefined) this.#draft.steps = [step];
    else this.#draft.steps.push(step);
    if (!this.#dirty) this.#touch();
  }

  /** Gives the event its place; the seq is its own from now on. */
  emit(
    taskId: TaskId,
    { type, data }: EventDraft,
    at = this.#clock.now(),
    task = this.#state.task(taskId),
  ): Event {
    const { agentId, parentId } = task.record;
    const { runId } = this.lease;
    const seq = this.#state.nextSeq;
    if (at > this.#addedAt) this.#addedAt = at;
    const event = { seq, runId, taskId, agentId, parentId, type, at, data } as Event;
    this.#state.noteEvent(event);
    this.#told[this.#toldCount++] = event;
    if (!this.#dirty) this.#touch();
    return event;
  }

  applySeat(command: HeadcountCommand): HeadcountOutcome {
    const at = this.#clock.now();
    if (at > this.#addedAt) this.#addedAt = at;
    const outcome = this.#state.seat(command, at);
    if (outcome.kind === "ignored" || outcome.kind === "refused") return outcome;
    (this.#draft.headcount ??= []).push(command);
    this.#touch();
    return outcome;
  }

  applyLedger(command: LedgerCommand): LedgerOutcome {
    const outcome = this.#state.book(command);
    if (!outcome.applied) return outcome;
    if (this.#draft.ledger === undefined) this.#draft.ledger = [command];
    else this.#draft.ledger.push(command);
    if (!this.#dirty) this.#touch();
    return outcome;
  }

  /** With the next commit (S5). */
  submit(submission: Submission): void {
    (this.#submissions ??= []).push(submission);
    this.#touch();
  }

  /**
   * Everything added so far is durable when this resolves, or at once where there is nothing to wait for. J3: refused when the lease is
   * lost, also with nothing to write.
   */
  flush(): Promise<void> | undefined {
    const broken = this.#broken ?? (this.#isClosed ? this.#letGo() : undefined);
    if (broken !== undefined) return Promise.reject(broken);
    if (this.#writing !== undefined) return this.#flushNext(this.#writing);
    return this.#dirty ? this.#write() : this.#check();
  }

  /**
   * The same as `flush`, and the run is left as by `Leases.release`, with the one commit or not at all. `undefined`: that cannot be, since
   * there is nothing to write, something is being written, or the store does not do it; nothing was done.
   */
  flushAndRelease(rest: Rest): Promise<void> | undefined {
    const { journal } = this.#store;
    if (journal.appendAndRelease === undefined || !this.#dirty || this.#writing !== undefined)
      return undefined;
    if (this.#broken !== undefined || this.#isClosed) return undefined;
    const submissions = this.#submissions;
    this.#submissions = undefined;
    this.#writing = journal
      .appendAndRelease(this.lease, this.#finished(), submissions, rest)
      .then(this.#written, this.#failed);
    return this.#writing;
  }

  /** What is being written has been, or has failed. Nothing to wait for if nothing is. */
  written(): Promise<void> | undefined {
    return this.#writing?.catch(() => undefined);
  }

  /** Nothing more is written. */
  stop(fault: Fault): void {
    this.#broken ??= fault;
  }

  /** The run was let go of. Most often nobody asks for more, so the fault is made for who does. */
  close(): void {
    this.#isClosed = true;
    this.#told.length = 0;
    if (this.#watched !== undefined) this.#idleWrites.remove(this);
  }

  async #flushNext(writing: Promise<void>): Promise<void> {
    await writing;
    if (this.#dirty || this.#writing !== undefined) await this.flush();
  }

  #put(key: keyof Draft, value: unknown): void {
    const draft = this.#draft as Record<string, unknown>;
    const list = draft[key];
    if (!Array.isArray(value)) draft[key] = value;
    else if (Array.isArray(list)) for (const item of value as unknown[]) list.push(item);
    else draft[key] = [...(value as unknown[])];
    this.#touch();
  }

  #touch(): void {
    if (this.#dirty) return;
    this.#dirty = true;
    if (this.#watched === undefined) this.#watch();
  }

  /** Nothing may follow for long: then it is written by itself, after a turn of the event loop in which nobody wrote it. */
  #watch(): void {
    this.#watched = this.#draft;
    this.#idleWrites.add(this);
  }

  writeIfIdle(): void {
    const watched = this.#watched;
    this.#watched = undefined;
    if (!this.#dirty || this.#isClosed || this.#broken !== undefined) return;
    if (this.#draft === watched) this.flush()?.catch(() => undefined);
    else this.#watch();
  }

  #write(): Promise<void> | undefined {
    const commit = this.#finished();
    const submissions = this.#submissions;
    this.#submissions = undefined;
    const stored = this.#store.journal.append(this.lease, commit, submissions);
    if (stored instanceof Promise) return (this.#writing = stored.then(this.#written, this.#failed));
    this.#written(stored);
    return undefined;
  }

  /** What was added so far, as a commit; another is begun. */
  #finished(): Commit {
    const draft = this.#draft;
    draft.number = this.#state.nextCommit++;
    draft.at = this.#addedAt === 0 ? this.#clock.now() : this.#addedAt;
    this.#addedAt = 0;
    if (this.#toldCount > 0) draft.events = this.#told.slice(0, this.#toldCount);
    this.#toldCount = 0;
    this.#draft = newDraft();
    this.#dirty = false;
    return draft as Commit;
  }

  readonly #written = ({ events }: Commit): void => {
    this.#writing = undefined;
    if (events !== undefined) this.#observers.show(events);
  };

  readonly #failed = (error: unknown): never => {
    this.#writing = undefined;
    throw this.#break(error);
  };

  async #check(): Promise<void> {
    try {
      await this.#store.leases.check(this.lease);
    } catch (error) {
      throw this.#break(error);
    }
  }

  #letGo(): Fault {
    return new Fault("lease_lost", `${this.lease.runId} was let go of`);
  }

  #break(error: unknown): Fault {
    const fault = Fault.from(error);
    this.stop(fault);
    this.#writer.broken(fault);
    return fault;
  }
}
