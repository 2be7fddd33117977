import {
  digestOf,
  Fault,
  type AgentId,
  type Clock,
  type Commit,
  type Event,
  type EventDraft,
  type Hash,
  type Lease,
  type RunRecord,
  type SessionChange,
  type StepAddress,
  type StepOutcome,
  type StepRecord,
  type StepScope,
  type Store,
  type TaskId,
} from "../kernel/index.ts";

export interface RunJournalOptions {
  readonly store: Store;
  readonly lease: Lease;
  readonly clock: Clock;
  readonly hash: Hash;
}

/** What tells one step from another: its address, and what the code says it is. */
export type StepIdentity = Omit<StepRecord, "outcome">;

/** Who an event is about. */
export interface EventSource {
  readonly taskId: TaskId;
  readonly agentId: AgentId;
  readonly parentId: TaskId | null;
}

/** What goes into one commit. */
export interface JournalEntry {
  readonly steps?: readonly StepRecord[];
  readonly drafts?: readonly EventDraft[];
  readonly sessions?: readonly SessionChange[];
}

/** One owner's view of its run's journal: what is recorded is found, what is new is appended, one commit at a time. */
export class RunJournal {
  readonly lease: Lease;
  readonly record: RunRecord;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #hash: Hash;
  readonly #records = new Map<string, StepRecord>();
  #commits = 0;
  #events = 0;
  #ended = false;
  #tail: Promise<unknown> = Promise.resolve();

  private constructor({ store, lease, clock, hash }: RunJournalOptions, record: RunRecord) {
    this.lease = lease;
    this.record = record;
    this.#store = store;
    this.#clock = clock;
    this.#hash = hash;
  }

  /** Costs O(commits of the run). */
  static async load(options: RunJournalOptions): Promise<RunJournal> {
    const { store, lease } = options;
    const record = await store.journal.find(lease.runId);
    if (record === undefined) throw new Fault("not_found", `there is no run ${lease.runId} in this store`);
    const journal = new RunJournal(options, record);
    for await (const commit of store.journal.read(lease.runId)) journal.#fold(commit);
    return journal;
  }

  /** The last thing recorded is the run's end: there is nothing left to do. */
  get ended(): boolean {
    return this.#ended;
  }

  /** J1, J4: what the step left behind, if it is recorded; `journal_mismatch` if something else is. */
  find(step: StepIdentity): StepOutcome | undefined {
    const { address, taskId } = step;
    const recorded = this.#records.get(keyOf(taskId, address));
    if (recorded === undefined) return undefined;
    const differs = (["kind", "name"] as const).find((field) => recorded[field] !== step[field]);
    if (differs !== undefined) throw mismatch(address, differs, recorded[differs], step[differs]);
    const [before, now] = [digestOf(recorded, this.#hash), digestOf(step, this.#hash)];
    if (before !== now) throw mismatch(address, `arguments of ${step.kind} ${step.name}`, before, now);
    return recorded.outcome;
  }

  /** C2: whether this scope still has a recorded step at or after `index`. */
  hasRecord(taskId: TaskId, address: StepAddress): boolean {
    return this.#records.has(keyOf(taskId, address));
  }

  /** J3: before an effect. */
  checkLease(): Promise<void> {
    return this.#store.leases.check(this.lease);
  }

  /** Appends one commit; those of parallel branches follow each other. */
  commit(source: EventSource, entry: JournalEntry): Promise<void> {
    const turn = this.#tail.then(() => this.#append(source, entry));
    this.#tail = turn.catch(() => undefined);
    return turn;
  }

  async #append({ taskId, agentId, parentId }: EventSource, entry: JournalEntry): Promise<void> {
    const { steps = [], drafts = [], sessions = [] } = entry;
    const at = this.#clock.now();
    const { runId } = this.lease;
    const events: Event[] = drafts.map((draft, index) => ({
      seq: this.#events + index,
      runId,
      taskId,
      agentId,
      parentId,
      at,
      ...draft,
    }));
    this.#fold(
      await this.#store.journal.append(this.lease, { number: this.#commits, at, steps, events, sessions }),
    );
  }

  #fold({ steps = [], voids = [], events = [] }: Commit): void {
    this.#commits++;
    this.#events += events.length;
    if (events.length > 0) this.#ended = events.at(-1)?.type === "run_end";
    for (const step of steps) this.#records.set(keyOf(step.taskId, step.address), step);
    for (const { taskId, address } of voids) this.#records.delete(keyOf(taskId, address));
  }
}

function keyOf(taskId: TaskId, address: StepScope): string {
  return `${taskId} ${address}`;
}

function mismatch(address: StepAddress, field: string, recorded: string, now: string): Fault {
  return new Fault(
    "journal_mismatch",
    `step ${address} was recorded with another ${field}: ${recorded}, now ${now}. The agent's code or input has changed since this run began`,
    { details: { address, field, recorded, now } },
  );
}
