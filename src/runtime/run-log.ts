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
  type Store,
  type TaskId,
} from "../kernel/index.ts";
import type { RunState } from "./run-state.ts";

/** What may be added to the next commit. */
export type Addition = Omit<Partial<Commit>, "number" | "at" | "events" | "headcount" | "ledger">;

/** A commit in the making. */
type Draft = { -readonly [Key in keyof Commit]?: unknown };

export interface RunLogOptions {
  readonly store: Store;
  readonly lease: Lease;
  readonly state: RunState;
  readonly clock: Clock;
  /** These are durable, and were not before. */
  readonly onDurable: (events: readonly Event[]) => void;
  /** The run cannot be written to any more: the lease is lost, or the store fails. */
  readonly onBroken: (fault: Fault) => void;
}

/**
 * The one way an owner writes. What is added changes the state at once and goes into the next commit; `flush` makes it durable. One
 * commit per step comes out of that: a record waits for the next effect, whose reservation rides with it (B3).
 */
export class RunLog {
  readonly lease: Lease;
  readonly #store: Store;
  readonly #state: RunState;
  readonly #clock: Clock;
  readonly #onDurable: (events: readonly Event[]) => void;
  readonly #onBroken: (fault: Fault) => void;
  #draft: Draft = {};
  #dirty = false;
  #writing: Promise<void> | undefined;
  #idle: NodeJS.Immediate | undefined;
  #broken: Fault | undefined;

  constructor({ store, lease, state, clock, onDurable, onBroken }: RunLogOptions) {
    this.lease = lease;
    this.#store = store;
    this.#state = state;
    this.#clock = clock;
    this.#onDurable = onDurable;
    this.#onBroken = onBroken;
  }

  add(addition: Addition): void {
    this.#state.apply(addition, this.#clock.now());
    for (const key in addition) this.#put(key as keyof Addition, addition[key as keyof Addition]);
  }

  /** Gives the event its place; the seq is its own from now on. */
  tell(taskId: TaskId, draft: EventDraft): Event {
    const { agentId, parentId } = this.#state.task(taskId).record;
    const { runId } = this.lease;
    const seq = this.#state.nextSeq;
    const { type, data } = draft;
    const event = { seq, runId, taskId, agentId, parentId, type, at: this.#clock.now(), data } as Event;
    this.#state.noteEvent(event);
    this.#put("events", [event]);
    return event;
  }

  seat(command: HeadcountCommand): HeadcountOutcome {
    const outcome = this.#state.seat(command, this.#clock.now());
    if (outcome.kind !== "ignored" && outcome.kind !== "refused") this.#put("headcount", [command]);
    return outcome;
  }

  book(command: LedgerCommand): LedgerOutcome {
    const outcome = this.#state.book(command);
    if (outcome.applied) this.#put("ledger", [command]);
    return outcome;
  }

  /** Everything added so far is durable when this resolves. J3: refused when the lease is lost, also with nothing to write. */
  async flush(): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken;
    if (!this.#dirty && this.#writing === undefined) return this.#guard(this.#store.leases.check(this.lease));
    while (this.#writing !== undefined) await this.#writing;
    if (!this.#dirty) return;
    this.#writing = this.#guard(this.#write()).finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  /** What is being written has been, or has failed. */
  async written(): Promise<void> {
    await this.#writing?.catch(() => undefined);
  }

  /** Nothing more is written. */
  stop(fault: Fault): void {
    this.#broken ??= fault;
    if (this.#idle !== undefined) clearImmediate(this.#idle);
  }

  /** Lists of one commit grow in place: a step adds to it several times. */
  #put(key: keyof Draft, value: unknown): void {
    const list = this.#draft[key];
    if (!Array.isArray(value)) this.#draft[key] = value;
    else if (Array.isArray(list)) for (const item of value as unknown[]) list.push(item);
    else this.#draft[key] = [...(value as unknown[])];
    if (this.#dirty) return;
    this.#dirty = true;
    // Nothing may follow for long: then it is written by itself.
    this.#idle = setImmediate(() => {
      if (this.#dirty) this.flush().catch(() => undefined);
    });
  }

  async #write(): Promise<void> {
    const draft = this.#draft as Partial<Commit>;
    const commit: Commit = { ...draft, number: this.#state.nextCommit, at: this.#clock.now() };
    this.#draft = {};
    this.#dirty = false;
    if (this.#idle !== undefined) clearImmediate(this.#idle);
    this.#state.nextCommit++;
    await this.#store.journal.append(this.lease, commit);
    if (commit.events !== undefined) this.#onDurable(commit.events);
  }

  async #guard(work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      const fault = Fault.from(error);
      this.stop(fault);
      this.#onBroken(fault);
      throw fault;
    }
  }
}
