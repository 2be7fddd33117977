import {
  bookLedger,
  Fault,
  type Clock,
  type Commit,
  type Delta,
  type DrawOutcome,
  type DrawRequest,
  type Event,
  type EventDraft,
  type FaultCode,
  type HeadcountCommand,
  type HeadcountOutcome,
  type LedgerCommand,
  type LedgerOutcome,
  type Lease,
  type MaybePromise,
  type Rest,
  type StepOpening,
  type StepRecord,
  type Store,
  type Submission,
  type TaskId,
} from "../../kernel/index.ts";
import type { FlushableLog, IdleFlusher, IdleWait } from "../process/idle-flusher.ts";
import type { RunState } from "./run-state.ts";
import type { TaskState } from "./task-state.ts";

/** The parts that `RunLog.add` can put into the next commit. */
export type Addition = Omit<Partial<Commit>, "number" | "at" | "events" | "headcount" | "ledger">;

/** The next commit while it is collected. Its lists grow in place, because a step adds to them several times. */
type Draft = {
  -readonly [Key in keyof Commit]?: Commit[Key] extends readonly (infer Item)[] | undefined
    ? Item[] | undefined
    : Commit[Key];
};

/** What a log needs of its store. */
export interface LogStore {
  readonly journal: Pick<Store["journal"], "append" | "appendAndRelease">;
  readonly events: Pick<Store["events"], "putDelta">;
  readonly leases: Pick<Store["leases"], "check">;
  readonly usage: Pick<Store["usage"], "draw">;
}

export interface RunLogOptions {
  readonly store: LogStore;
  readonly lease: Lease;
  readonly state: RunState;
  readonly clock: Clock;
  readonly idleFlusher: IdleFlusher;
  readonly observers: LogObservers;
  readonly owner: LogOwner;
}

export interface LogObservers {
  /** Receives events once, after the commit that makes them durable. */
  show(events: readonly Event[]): void;
  /** Receives a delta when readers of the run receive it. */
  showDelta(delta: Delta): void;
}

export interface LogOwner {
  /** A step was added to the next commit. */
  onStep(): void;
  /** Called when a commit with `usage` is durable. The run may have returned a part of its cap share (B7). */
  onUsage(): void;
  /** Called when a write failed, because the lease is lost or the store fails. No further write is attempted. */
  onWriteFailure(fault: Fault): void;
}

/**
 * The only way by which the owner of a run writes. An addition changes the run's state immediately and goes into
 * the next commit, which `flush` makes durable. This gives one commit per step, because a record is written
 * together with the reservation of the next effect (B3).
 *
 * States, and the methods that move between them:
 * - clean: nothing is added since the last commit. Every addition moves to dirty.
 * - dirty: the next commit has content. `flush` and `flushAndRelease` move to writing; so does `IdleFlusher` after
 *   a turn of the event loop without a flush.
 * - writing: a commit is on its way to the store. Additions go into the commit after it. The end of the write moves
 *   to clean or dirty.
 * - broken: a write failed. `flush` rejects with that fault, and nothing is written any more.
 * - closed: the run is released. `flush` rejects with `lease_lost`.
 */
export class RunLog implements FlushableLog {
  readonly lease: Lease;
  readonly #store: LogStore;
  readonly #state: RunState;
  readonly #clock: Clock;
  readonly #idleFlusher: IdleFlusher;
  readonly #observers: LogObservers;
  readonly #owner: LogOwner;
  #draft: Draft = {};
  /**
   * The events of the next commit are the first `#eventCount` elements. The list is reused: a commit gets a copy of
   * exact size, because a list that grew by `push` would keep its spare capacity in memory.
   */
  readonly #events: Event[] = [];
  #eventCount = 0;
  /** Time of the latest addition to the next commit, in epoch milliseconds. 0 if no addition had a time. */
  #addedAt = 0;
  #submissions: Submission[] | undefined;
  #dirty = false;
  /** B7: whether the next commit returns the part of the cap share that no call needs. */
  #isReturnDue = false;
  /** U1: whether the next commit ends a call of a live program. */
  #isMetered = false;
  /** Whether the next commit must contain the standing of the run, if it has changed. */
  #isStandingDue = false;
  #writing: Promise<void> | undefined;
  /**
   * The timer of `IdleFlusher`, which writes the next commit if nothing has written it by the next turn of the
   * event loop. Set while the log is dirty.
   */
  #idleWait: IdleWait | undefined;
  #broken: Fault | undefined;
  #isClosed = false;

  constructor({ store, lease, state, clock, idleFlusher, observers, owner }: RunLogOptions) {
    this.lease = lease;
    this.#store = store;
    this.#state = state;
    this.#clock = clock;
    this.#idleFlusher = idleFlusher;
    this.#observers = observers;
    this.#owner = owner;
  }

  /** The present time, in epoch milliseconds. */
  now(): number {
    return this.#clock.now();
  }

  add(addition: Addition, at = this.#clock.now()): void {
    if (at > this.#addedAt) this.#addedAt = at;
    this.#state.apply(addition, at);
    for (const key in addition) this.#put(key as keyof Addition, addition[key as keyof Addition]);
  }

  /** Records that a step has begun. */
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
    this.#owner.onStep();
  }

  /** Adds an event and assigns its final `seq`. */
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
    this.#events[this.#eventCount++] = event;
    if (type === "metered_call") this.#isMetered = true;
    if (!this.#dirty) this.#touch();
    return event;
  }

  /** E2: passes a delta to the readers and observers of the run. A delta is not part of a commit. */
  putDelta(delta: Delta): void {
    this.#store.events.putDelta(this.lease, delta);
    this.#observers.showDelta(delta);
  }

  applySeat(command: HeadcountCommand): HeadcountOutcome {
    const at = this.#clock.now();
    if (at > this.#addedAt) this.#addedAt = at;
    const outcome = this.#state.applySeat(command, at);
    if (outcome.kind === "ignored" || outcome.kind === "refused") return outcome;
    (this.#draft.headcount ??= []).push(command);
    this.#touch();
    return outcome;
  }

  applyLedger(command: LedgerCommand): LedgerOutcome {
    const outcome = bookLedger(this.#state.ledger, command);
    if (!outcome.applied) return outcome;
    if (this.#draft.ledger === undefined) this.#draft.ledger = [command];
    else this.#draft.ledger.push(command);
    if (!this.#dirty) this.#touch();
    return outcome;
  }

  /**
   * K1: makes the next commit contain the standing of the run. After changes of tasks and seats this happens
   * without a call.
   */
  noteStanding(): void {
    this.#isStandingDue = true;
    this.#touch();
  }

  /** B7: makes the next commit return the part of the cap share that no call needs. */
  returnUnused(): void {
    this.#isReturnDue = true;
    this.#touch();
  }

  /** S5: submits another run with the next commit. */
  submit(submission: Submission): void {
    (this.#submissions ??= []).push(submission);
    this.#touch();
  }

  /**
   * Resolves when everything that was added is durable. Returns `undefined` if it already is. J3: rejects when the
   * lease is lost, even if there is nothing to write.
   */
  flush(): Promise<void> | undefined {
    const broken = this.#broken ?? (this.#isClosed ? this.#released() : undefined);
    if (broken !== undefined) return Promise.reject(broken);
    if (this.#writing !== undefined) return this.#flushNext(this.#writing);
    return this.#dirty ? this.#write() : this.#check();
  }

  /**
   * Writes like `flush`, and releases the run in the same transaction. Returns `undefined` and does nothing if the
   * store cannot do this, if there is nothing to write, or if another commit is being written.
   */
  flushAndRelease(rest: Rest): Promise<void> | undefined {
    const { journal } = this.#store;
    if (journal.appendAndRelease === undefined || !this.#dirty || this.#writing !== undefined)
      return undefined;
    if (this.#broken !== undefined || this.#isClosed) return undefined;
    const submissions = this.#submissions;
    this.#submissions = undefined;
    this.#writing = journal
      .appendAndRelease(this.lease, this.#takeCommit(), submissions, rest)
      .then(this.#onWritten, this.#onFailed);
    return this.#writing;
  }

  /**
   * B7: draws from the caps. It first waits for a commit that is being written, because this commit may return the
   * cap share of the run. Fails like `flush`.
   */
  async draw(request: DrawRequest): Promise<DrawOutcome> {
    while (this.#writing !== undefined) await this.#writing;
    const broken = this.#broken ?? (this.#isClosed ? this.#released() : undefined);
    if (broken !== undefined) throw broken;
    try {
      return await this.#store.usage.draw(this.lease, request);
    } catch (error) {
      throw this.#break(error);
    }
  }

  /** Whether everything that was added is stored. */
  get isDurable(): boolean {
    return !this.#dirty && this.#writing === undefined;
  }

  /** Resolves when the write in progress has succeeded or failed. Returns `undefined` if no write is in progress. */
  whenWritten(): Promise<void> | undefined {
    return this.#writing?.catch(() => undefined);
  }

  /** Rejects further writes, because the run is released. */
  close(): void {
    this.#isClosed = true;
    this.#events.length = 0;
    this.#idleWait?.cancel();
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
    this.#idleWait = this.#idleFlusher.add(this, this.#idleWait);
  }

  writeIdle(): void {
    if (this.#isClosed || this.#broken !== undefined) return;
    this.flush()?.catch(() => undefined);
  }

  #write(): Promise<void> | undefined {
    const commit = this.#takeCommit();
    const submissions = this.#submissions;
    this.#submissions = undefined;
    const stored = this.#store.journal.append(this.lease, commit, submissions);
    if (stored instanceof Promise) return (this.#writing = stored.then(this.#onWritten, this.#onFailed));
    this.#onWritten(stored);
    // A store that writes synchronously would let a loop of quick steps keep the event loop to itself.
    return this.#state.nextCommit % commitsInTurn === 0 ? this.#nextTurn() : undefined;
  }

  /** Waits a turn of the event loop, so that timers and network events are handled before the next write. */
  #nextTurn(): Promise<void> {
    return (this.#writing = new Promise((resolve) => {
      this.#idleFlusher.eventLoop.nextTurn(() => {
        this.#writing = undefined;
        resolve();
      });
    }));
  }

  /** Returns everything that was added as a commit, and starts the next one. */
  #takeCommit(): Commit {
    const draft = this.#draft;
    draft.number = this.#state.nextCommit++;
    draft.at = this.#addedAt === 0 ? this.#clock.now() : this.#addedAt;
    this.#addedAt = 0;
    if (this.#eventCount > 0) draft.events = this.#events.slice(0, this.#eventCount);
    this.#eventCount = 0;
    // Only such changes can change the standing. A turn has none of them.
    if (this.#isStandingDue || (draft.headcount ?? draft.tasks ?? draft.mailThrough) !== undefined) {
      this.#isStandingDue = false;
      const standing = this.#state.totals.takeStanding();
      if (standing !== undefined) draft.standing = standing;
    }
    const failedAt = failureIn(draft);
    const taken = this.#state.totals.takeUsage(draft.ledger, this.#isReturnDue, failedAt, this.#isMetered);
    this.#isReturnDue = false;
    this.#isMetered = false;
    if (taken !== undefined) Object.assign(draft, taken);
    const spent = this.#state.totals.takeSpend(draft.ledger, taken !== undefined);
    if (spent !== undefined) draft.spent = spent;
    this.#draft = {};
    this.#dirty = false;
    this.#idleWait?.cancel();
    return draft as Commit;
  }

  readonly #onWritten = ({ events, usage }: Commit): void => {
    this.#writing = undefined;
    if (events !== undefined) this.#observers.show(events);
    if (usage !== undefined) this.#owner.onUsage();
  };

  readonly #onFailed = (error: unknown): never => {
    this.#writing = undefined;
    throw this.#break(error);
  };

  /**
   * Awaits what a call of the run's code reads from the store. If the store fails, the owner loses the run, as
   * after a failed write, and the next owner reads again. The fault is not an outcome of the call, because the run
   * must survive failures of its store.
   */
  async reading<Value>(read: MaybePromise<Value>): Promise<Value> {
    try {
      return await read;
    } catch (error) {
      throw storeFaults.has(Fault.from(error).code) ? this.#break(error) : error;
    }
  }

  /** Like `reading`, for items that the store yields one after another. */
  async *readingEach<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item, undefined> {
    try {
      yield* items;
    } catch (error) {
      throw storeFaults.has(Fault.from(error).code) ? this.#break(error) : error;
    }
  }

  async #check(): Promise<void> {
    try {
      await this.#store.leases.check(this.lease);
    } catch (error) {
      throw this.#break(error);
    }
  }

  #released(): Fault {
    return new Fault(
      "lease_lost",
      `this process has released run ${this.lease.runId} and cannot write to it`,
    );
  }

  #break(error: unknown): Fault {
    const fault = Fault.from(error);
    this.#broken ??= fault;
    this.#owner.onWriteFailure(fault);
    return fault;
  }
}

/** Fault codes with which a store says that it cannot be used at all. */
const storeFaults: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "store_unavailable",
  "store_read_only",
  "store_full",
  "store_lost",
]);

/** Maximum number of commits of a run in one turn of the event loop. */
const commitsInTurn = 128;

/** Returns the time at which a commit ends its run as failed. `undefined` if it does not. */
function failureIn({ at, events }: Draft): number | undefined {
  const last = events?.at(-1);
  return last?.type === "run_end" && last.data.status === "failed" ? at : undefined;
}
